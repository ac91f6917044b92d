"""Serve a model file over HTTP, with numpy, safetensors and the standard library alone.

OPENBLAS_NUM_THREADS=1 python examples/server.py shop.asset --port 8000
curl http://127.0.0.1:8000/
curl http://127.0.0.1:8000/predict --data '{"rows": [{"age": 34, "city": "Bonn"}]}'

A row is an object with the names of columns, or a list of numbers. The answer has a prediction for each
row, and probabilities and decisions where the model has them. What is wrong with a request is said in
its answer: {"error": ...}, with status 400. Put a proxy before it that speaks TLS and knows who may
ask; this server knows neither.
"""

from __future__ import annotations

import argparse
import json
import math
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from asset_svm import runtime

MOST_BYTES = 16 << 20
METHODS = {"probabilities": "predict_proba", "decisions": "decision_function"}


class BadRequestError(ValueError):
    """A request that cannot be answered, and why."""


def plain(value: Any) -> Any:
    """Arrays, and lists of them, as JSON has them: null is a number that is not finite."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list):
        return [plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def not_finite(word: str) -> Any:
    """Refuse NaN and Infinity, which Python reads and JSON does not have."""
    raise BadRequestError(f"{word} is no JSON; write null for what is missing.")


def answer(model: runtime.Model, body: bytes) -> dict[str, Any]:
    """The answer to the body of a request; ``ValueError`` or ``ArithmeticError`` says what is wrong."""
    try:
        asked = json.loads(body, parse_constant=not_finite)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequestError(f"The body is no JSON: {error}.") from None
    if not isinstance(asked, dict) or not isinstance(asked.get("rows"), list) or not asked["rows"]:
        raise BadRequestError('The body must be {"rows": [...]} with a row at least.')
    rows = asked["rows"]
    found = {"predictions": plain(model.predict(rows))}
    for name, method in METHODS.items():
        if hasattr(model, method):
            found[name] = plain(getattr(model, method)(rows))
    return found


def described(model: runtime.Model) -> dict[str, Any]:
    """What the model takes and gives."""
    found: dict[str, Any] = {"columns": model.n_features_in_}
    if hasattr(model, "feature_names_in_"):
        found["names"] = plain(model.feature_names_in_)
    if hasattr(model, "classes_"):
        found["classes"] = plain(model.classes_)
    return found


class Handler(BaseHTTPRequestHandler):
    """One connection; ``model`` is set on the class that is made for a server."""

    model: runtime.Model
    protocol_version = "HTTP/1.1"
    timeout = 30  # seconds that a client may be silent
    disable_nagle_algorithm = True  # else an answer waits 40 ms for the client to acknowledge its head

    def do_GET(self) -> None:
        """Tell what the model takes."""
        if self.path == "/":
            self.reply(200, described(self.model))
        else:
            self.reply(404, {"error": "GET / tells about the model; POST /predict predicts."})

    def do_POST(self) -> None:
        """Predict."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or int(length) > MOST_BYTES:
            self.close_connection = True  # what follows cannot be told from the next request
            self.reply(400, {"error": f"Content-Length must be a number up to {MOST_BYTES}."})
            return
        body = self.rfile.read(int(length))
        if self.path != "/predict":
            self.reply(404, {"error": "POST /predict predicts; GET / tells about the model."})
            return
        try:
            self.reply(200, answer(self.model, body))
        except (ValueError, TypeError, ArithmeticError) as error:
            self.reply(400, {"error": str(error)})

    def reply(self, status: int, content: dict[str, Any]) -> None:
        """Send JSON."""
        text = json.dumps(content, allow_nan=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def server_of(path: str, host: str, port: int) -> ThreadingHTTPServer:
    """A server of a model file; port 0 is any that is free."""
    served = type("ModelHandler", (Handler,), {"model": runtime.load(path)})
    return ThreadingHTTPServer((host, port), served)


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a model file (*.asset)")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    with server_of(options.model, options.host, options.port) as server:
        print(f"http://{options.host}:{server.server_port}/", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped")


if __name__ == "__main__":
    main()
