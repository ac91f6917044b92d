"""ONNX files: what onnxruntime predicts with them is what the library says."""

import numpy as np
import pandas as pd
import pytest

from asset_svm import AssetClassifier, runtime

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("safetensors")

from asset_svm.export import to_onnx  # noqa: E402
from asset_svm.export.graph import OPSET  # noqa: E402
from deployable import X, Y, differ, file_of, trained  # noqa: E402
from deployed import column_for, run, session_of  # noqa: E402


@pytest.mark.parametrize("name", ["cells", "many cells", "cells of maps", "laplacian float64", "pairs"])
def test_a_batch_may_have_any_number_of_rows(name):
    model, rows = trained(name)
    session = session_of(to_onnx(model))
    whole = run(session, rows)
    for count in (1, 7):
        some = run(session, rows[:count])
        for output, value in some.items():
            if value.dtype.kind == "f":
                assert np.allclose(value, whole[output][:count], rtol=1e-9, atol=1e-9)
    assert all(len(value) == 0 for value in run(session, rows[:0]).values())


def test_categories_that_were_never_seen_and_gaps_are_as_in_the_library():
    model, rows = trained("table logistic")
    session = session_of(to_onnx(model))
    odd = rows.iloc[:8].copy()
    odd["city"] = ["Nowhere", None, "", "Rome", "rome", " Oslo", "Ürümqi", "Bonn"]
    odd["shop"] = ["?", "shop 1", None, "shop 2", "shop 3", "shop 4", "shop 5", "shop 6"]
    found = run(session, odd.drop(index=odd.index[5]))  # text is taken as it is: blanks count
    wanted = model.decision_function(odd.drop(index=odd.index[5]))
    assert differ(found["decisions"], wanted) < 1e-5


def test_inputs_and_outputs_have_names_and_types():
    session = session_of(to_onnx(trained("table logistic")[0]))
    kinds = {each.name: each.type for each in session.get_inputs()}
    assert kinds == {
        "age": "tensor(double)", "size": "tensor(double)", "city": "tensor(string)",
        "shop": "tensor(string)", "member": "tensor(string)", "when": "tensor(int64)",
    }  # fmt: skip
    assert {each.name: each.type for each in session.get_outputs()} == {
        "label": "tensor(string)", "probabilities": "tensor(double)", "decisions": "tensor(double)",
    }  # fmt: skip
    assert session_of(to_onnx(trained("binary")[0])).get_inputs()[0].type == "tensor(double)"
    single = to_onnx(trained("binary")[0], dtype=np.float32)
    assert session_of(single).get_inputs()[0].type == "tensor(float)"
    assert [each.version for each in single.opset_import] == [OPSET, 3]


def test_columns_may_have_the_names_of_outputs():
    rows, frame = X[:, :3], pd.DataFrame(X[:, :3], columns=["label", "asset/1", "decisions"])
    frame["label"] = np.where(frame["label"] > 0, "high", "low")
    model = AssetClassifier(n_components=10, max_iter=1, random_state=0).fit(frame, Y == 1)
    session = session_of(to_onnx(model))
    names = [each.name for each in session.get_inputs()]
    assert names == ["column label", "column asset/1", "column decisions"]
    feeds = {
        f"column {name}": column_for(each.type, frame[name])
        for name, each in zip(frame, session.get_inputs(), strict=True)
    }
    found = dict(zip(["label", "decisions"], session.run(["label", "decisions"], feeds), strict=True))
    assert differ(found["decisions"], model.decision_function(frame)) < 1e-5
    assert len(rows) == len(found["label"])


def test_inputs_have_a_name_each():
    names = ["column label", "label", "column label_2", "probabilities"]
    frame = pd.DataFrame(X[:, :4], columns=names)
    frame["label"] = np.where(frame["label"] > 0, "high", "low")
    model = AssetClassifier(n_components=10, max_iter=1, random_state=0).fit(frame, Y == 1)
    session = session_of(to_onnx(model))
    given = [each.name for each in session.get_inputs()]
    assert given == ["column label", "column label_3", "column label_2", "column probabilities"]
    feeds = {
        each.name: column_for(each.type, frame[name])
        for name, each in zip(frame, session.get_inputs(), strict=True)
    }
    (found,) = session.run(["decisions"], feeds)
    assert differ(found, model.decision_function(frame)) < 1e-5


def test_the_input_is_as_fine_as_the_rows_of_the_fit():
    for name in ("times behind a scaler", "large categories", "fourier iid", "rbf float64", "mean"):
        assert session_of(to_onnx(trained(name)[0])).get_inputs()[0].type == "tensor(double)", name
    assert session_of(to_onnx(trained("rbf float32")[0])).get_inputs()[0].type == "tensor(float)"


def test_rows_that_are_not_finite_have_no_decision():
    session = session_of(to_onnx(trained("rbf float64")[0]))
    rows = X[:3].copy()
    rows[1, 2], rows[2, 0] = np.nan, np.inf
    found = run(session, rows)["decisions"]
    assert np.isfinite(found[0]).all() and np.isnan(found[1:]).all()


def test_what_cannot_be_exported_is_told(tmp_path):
    with pytest.raises(ValueError, match="compares columns with the text 'x'"):
        to_onnx(trained("text pipeline")[0])
    own = AssetClassifier(kernel=lambda A, B: A @ B.T, n_components=10, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="is a function"):
        to_onnx(own)
    with pytest.raises(ValueError, match="coverage=1"):
        to_onnx(trained("intervals")[0], coverage=1)
    with pytest.raises(ValueError, match="dtype='int8'"):
        to_onnx(trained("binary")[0], dtype="int8")
    with pytest.raises(ValueError, match="takes a table"):
        to_onnx(trained("table pieces")[0], dtype=np.float32)
    large = AssetClassifier(n_components=10, max_iter=1).fit(X, Y.astype(np.uint64) + np.uint64(2**63))
    with pytest.raises(ValueError, match=f"class {2**63} is beyond {2**63 - 1}"):
        to_onnx(large)
    with pytest.raises(FileNotFoundError):
        to_onnx(tmp_path / "none.asset")


def test_an_estimator_a_file_and_a_served_model_become_the_same(tmp_path):
    path = file_of("cells")
    wanted = to_onnx(path).SerializeToString()
    assert to_onnx(trained("cells")[0]).SerializeToString() == wanted
    assert to_onnx(runtime.load(path), tmp_path / "m.onnx").SerializeToString() == wanted
    assert (tmp_path / "m.onnx").read_bytes() == wanted


def test_a_table_in_pieces_of_kinds_is_fed_as_documented():
    model, rows = trained("table intervals")
    found = run(session_of(to_onnx(model, coverage=0.8)), rows)
    assert differ(found["interval"], model.predict_interval(rows, 0.8)) < 1e-4
    assert len(found["predictions"]) == len(rows)
