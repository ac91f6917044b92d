"""The example of a small server: what it answers, and what it says of bad requests."""

import http.client
import importlib.util
import json
import socket
import threading
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("safetensors")

from asset_svm import runtime
from deployable import X, file_of, trained, unseen_table

EXAMPLE = Path(__file__).parent.parent / "examples" / "server.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("server_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def ask(example, monkeypatch):
    """A function that asks a server of a model, on loopback."""
    monkeypatch.setattr(example.Handler, "log_message", lambda *_: None)
    running = []

    def begin(name):
        server = example.server_of(str(file_of(name)), "127.0.0.1", 0)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        running.append((server, thread))

        def request(method, path, body=None, headers=None):
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            found = response.status, json.loads(response.read())
            connection.close()
            return found

        return request

    yield begin
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


def test_rows_with_names_are_predicted(ask):
    model, frame = trained("table logistic")[0], unseen_table().iloc[:20]
    request = ask("table logistic")
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    for row in rows:
        row["when"] = None if row["when"] is None else row["when"].isoformat()
    status, found = request("POST", "/predict", json.dumps({"rows": rows}))
    assert status == 200 and found["predictions"] == model.predict(frame).tolist()
    assert np.allclose(found["probabilities"], model.predict_proba(frame), atol=1e-5)
    status, about = request("GET", "/")
    assert status == 200 and about["names"] == list(frame) and about["classes"] == ["no", "yes"]


def test_rows_of_numbers_are_predicted(ask):
    status, found = ask("quantiles")("POST", "/predict", json.dumps({"rows": X[:3].tolist()}))
    assert status == 200 and np.allclose(found["predictions"], trained("quantiles")[0].predict(X[:3]))
    assert set(found) == {"predictions"}


def test_what_is_not_finite_is_null(ask, example, monkeypatch):
    status, found = ask("logarithms")("POST", "/predict", json.dumps({"rows": X[:2].tolist()}))
    assert status == 200 and all(each > 0.0 for each in found["predictions"])
    monkeypatch.setattr(runtime.Regressor, "predict", lambda *_: np.array([1.0, np.inf, np.nan]))
    status, found = ask("logarithms")("POST", "/predict", json.dumps({"rows": X[:3].tolist()}))
    assert status == 200 and found["predictions"] == [1.0, None, None]


def test_an_answer_does_not_wait_for_its_head_to_be_acknowledged(ask, example, monkeypatch):
    request, seen = ask("binary"), []

    def note(handler, *_):
        seen.append(handler.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(example.Handler, "log_message", note)
    assert request("GET", "/")[0] == 200
    assert len(seen) == 1 and seen[0] != 0


def test_bad_requests_are_told_and_the_server_goes_on(ask):
    request = ask("binary")
    row = X[0].tolist()
    cases = [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "rows"),
        (b'{"rows": []}', "rows"),
        (b'{"rows": 5}', "rows"),
        (b'{"rows": [[NaN, 1, 1, 1, 1, 1]]}', "null for what is missing"),
        (b'{"rows": [[null, 1, 1, 1, 1, 1]]}', "row 0, column 0"),
        (b'{"rows": [[1, 2, 3]]}', "3 columns, and the model takes 6"),
        (b'{"rows": [1, 2]}', "1 dimension"),
        (b'{"rows": [["a", 1, 1, 1, 1, 1]]}', "the text 'a'"),
        (b'{"rows": [[{}, 1, 1, 1, 1, 1]]}', "no number"),
        (b'{"rows": [[1, 2, 3, 4, 5, 6], [1]]}', "inhomogeneous"),
        (b'{"rows": [[1e999, 1, 1, 1, 1, 1]]}', "inf in row 0"),
        (b'{"rows": [{"a": 1}]}', "without names"),
        (b'{"rows": [{"a": 1}, 5]}', "Row 1"),
    ]
    for body, told in cases:
        status, found = request("POST", "/predict", body)
        assert status == 400 and told in found["error"], (body[:40], found)
    assert request("POST", "/predict", b"", {"Content-Length": "-1"})[0] == 400
    assert request("POST", "/predict", b"", {"Content-Length": str(1 << 40)})[0] == 400
    assert request("POST", "/elsewhere", b"{}")[0] == 404
    assert request("GET", "/elsewhere")[0] == 404
    assert request("POST", "/predict", json.dumps({"rows": [row]}))[0] == 200
