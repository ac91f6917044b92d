"""C files: what they say of rows that are odd, and what cannot be one."""

import ctypes
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from asset_svm import AssetClassifier, AssetRegressor, TableEncoder

pytest.importorskip("safetensors")
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")

from asset_svm.export import c_text, to_c  # noqa: E402
from asset_svm.export.c_file import identifier  # noqa: E402
from deployable import X, Y, Z, differ, trained  # noqa: E402
from deployed import call, compiled, rows_for  # noqa: E402


def test_rows_that_are_not_finite_are_told(tmp_path):
    library = compiled(to_c(trained("rbf float64")[0]), tmp_path)
    rows = X[:3].copy()
    rows[1, 2], rows[2, 0] = np.nan, np.inf
    found, codes = call(library.model_decisions, rows_for(rows, None), 3)
    assert codes == [0, 1, 1]
    assert np.isfinite(found[0]).all() and np.isnan(found[1:]).all()
    found, codes = call(library.model_predict, rows_for(rows, None), 1, ctypes.c_int)
    assert found[1:, 0].tolist() == [-1, -1] and codes == [0, 1, 1]


def test_a_row_too_large_for_its_kernel_is_told(tmp_path):
    library = compiled(to_c(trained("poly float64")[0]), tmp_path)
    _, codes = call(library.model_decisions, rows_for(np.full((1, 6), 1e200), None), 3)
    assert codes == [1]


def test_columns_of_any_name_become_members(tmp_path):
    names = ["a b", "a-b", "int", "1st", "größe */ x", 'say "what??/"']
    frame = pd.DataFrame(X[:, :6], columns=names)
    frame["a b"] = np.where(X[:, 0] > 0, 'tall "\\ ??/ große', "kurz")
    model = AssetRegressor(n_components=20, max_iter=1, random_state=0).fit(frame, Z)
    library = compiled(to_c(model), tmp_path)
    columns = [(name, "levels" if name == "a b" else "number") for name in names]
    found, _ = call(library.model_predict, rows_for(frame[:30], columns), 1)
    assert differ(found[:, 0], model.predict(frame[:30])) < 1e-5
    frame.loc[0, "a b"] = "never seen"
    found, codes = call(library.model_predict, rows_for(frame[:1], columns), 1)
    assert found[0, 0] == pytest.approx(model.predict(frame[:1])[0], rel=1e-5) and codes == [0]
    assert identifier("int") == "int_" and identifier("1st") == "_1st"
    assert identifier("a-b", ["a_b"]) == "a_b_2"


def test_columns_that_compilers_have_macros_for_are_renamed(tmp_path):
    names = ["linux", "unix", "HUGE_VAL", "M_PI", "FP_ZERO", "isnan"]
    frame = pd.DataFrame(X, columns=names).assign(kind="a")
    frame.loc[::2, "kind"] = "b"
    model = AssetRegressor(n_components=8, max_iter=1, encoder=TableEncoder(), random_state=0)
    to_c(model.fit(frame, Z), tmp_path / "2024.c")
    command = ["gcc", "-c", "-Wall", "-Wextra", "-Werror", "2024.c"]  # with the compiler's extensions
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "int model_2024_predict(" in (tmp_path / "2024.c").read_text()


WORDS = (
    "alignas", "alignof", "asm", "bool", "constexpr", "false", "inline", "nullptr", "restrict",
    "static_assert", "thread_local", "true", "typeof", "typeof_unqual", "_Bool", "_Atomic", "_Generic",
    "__asm__", "__typeof", "__typeof_", "__inline__", "__LINE__", "__attribute__",
)  # fmt: skip


@pytest.mark.parametrize("standard", ["c99", "gnu17", "gnu2x"])
def test_columns_may_be_keywords_of_any_standard(standard, tmp_path):
    rows = np.random.default_rng(0).normal(size=(50, len(WORDS)))
    frame = pd.DataFrame(rows, columns=WORDS)
    model = AssetRegressor(n_components=4, max_iter=1, encoder=TableEncoder(), random_state=0)
    to_c(model.fit(frame, rows[:, 0]), tmp_path / "words.c")
    command = ["gcc", "-c", "-Wall", "-Wextra", "-Werror", f"-std={standard}", "words.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_classes_that_a_double_cannot_hold_are_told():
    large = Y.astype(np.int64) + 2**53
    model = AssetClassifier(n_components=8, max_iter=1, random_state=0).fit(X, large)
    with pytest.raises(ValueError, match="class 9007199254740992 is beyond 9007199254740991"):
        to_c(model)


def test_a_program_can_be_written_against_the_head(tmp_path):
    """The file, and a program that knows no more than what its head declares."""
    model = AssetClassifier(n_components=20, max_iter=1, random_state=0)
    model.fit(X, np.array(["ham", "spam", "eggs"])[Y])
    source = to_c(model, tmp_path / "my model.c")
    assert (tmp_path / "my model.c").read_text() == source
    main = """
#include <stdio.h>
extern const char *const my_model_classes[3];
int my_model_predict(const double x[6], int out[1]);
int main(void)
{
    double x[6];
    int out[1];
    while (scanf("%lf %lf %lf %lf %lf %lf", x, x + 1, x + 2, x + 3, x + 4, x + 5) == 6)
        puts(my_model_predict(x, out) ? "?" : my_model_classes[out[0]]);
    return 0;
}
"""
    (tmp_path / "main.c").write_text(main)
    flags = ["-Wall", "-Wextra", "-Werror", "-std=c99"]
    files = [str(tmp_path / "main.c"), str(tmp_path / "my model.c")]
    subprocess.run(["gcc", *flags, *files, "-o", str(tmp_path / "main"), "-lm"], check=True)
    given = "\n".join(" ".join(map(repr, row)) for row in X[:50].tolist())
    done = subprocess.run([tmp_path / "main"], input=given, capture_output=True, text=True, check=True)
    assert done.stdout.split() == model.predict(X[:50]).tolist()


def test_what_has_no_way_in_c_is_told(monkeypatch):
    with pytest.raises(ValueError, match="compares columns with the text"):
        to_c(trained("text pipeline")[0])
    with pytest.raises(ValueError, match="coverage=0"):
        to_c(trained("intervals")[0], coverage=0)
    monkeypatch.setattr(c_text, "MOST_NUMBERS", 200)
    with pytest.raises(ValueError, match="more than 200 numbers, too many for a C file"):
        to_c(trained("binary")[0])
