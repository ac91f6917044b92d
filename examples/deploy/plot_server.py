"""
Serving with a small web server
===============================

A model file, Python's own web server, and no framework: rows come as JSON, decisions go back.
``asset_svm.runtime`` reads the file with NumPy alone, so that a server starts in a fraction of a
second and needs none of the libraries that training does. It checks the rows, and says what is
wrong with them.

The server of this program listens on this machine alone, on a port that is free, and is stopped at
the end. ``examples/server.py`` is one to copy: it takes tables too, and bounds what it is sent.
"""

import json
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import perf_counter
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from asset_svm import AssetClassifier, runtime, save

X, y = load_breast_cancer(return_X_y=True)
pipeline = make_pipeline(StandardScaler(), AssetClassifier(gamma=0.02, C=3, random_state=0)).fit(
    X[:400], y[:400]
)
path = Path(tempfile.mkdtemp()) / "tumours.asset"
save(pipeline, path)

# %%
# The server: one model, loaded once. A request that is no table of thirty finite numbers gets a
# sentence and the status 400.

model = runtime.load(path)


class Decisions(BaseHTTPRequestHandler):
    """POST {"rows": [[...], ...]} and get {"decisions": [...]}."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        """Answer one request."""
        try:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            rows = json.loads(body)["rows"]
            self.answer(200, {"decisions": model.decision_function(rows).tolist()})
        except (ValueError, KeyError, TypeError, ArithmeticError) as error:
            self.answer(400, {"error": str(error)})

    def answer(self, status, content):
        """Send content as JSON."""
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        """Say nothing of each request."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Decisions)
Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}/"


def ask(rows):
    """The decisions of rows, from the server."""
    request = Request(
        address, json.dumps({"rows": rows}).encode(), {"Content-Type": "application/json"}
    )
    with urlopen(request, timeout=10) as reply:
        return json.loads(reply.read())["decisions"]


told = np.array(ask(X[400:].tolist()))
print(
    "the server decides as the pipeline does:", np.allclose(told, pipeline.decision_function(X[400:]))
)
try:
    ask([[1.0, 2.0]])
except HTTPError as error:
    print(error.code, json.loads(error.read())["error"])

# %%
# How long a request takes, from here to the server and back, for one row and for more at a time;
# 200 requests each, on this machine. NumPy's products get one thread: with so few rows, more of them
# wait for each other longer than they work. A server of its own sets ``OPENBLAS_NUM_THREADS=1``.

batches = [1, 10, 100]
times = []
for size in batches:
    rows = X[400 : 400 + size].tolist()
    clock = []
    with threadpool_limits(1):
        for _ in range(200):
            start = perf_counter()
            ask(rows)
            clock.append(1e3 * (perf_counter() - start))
    times.append(np.array(clock))
    print(
        f"{size:4} rows: median {np.median(clock):.2f} ms, {1e3 * np.median(clock) / size:.0f} us a row"
    )
server.shutdown()
server.server_close()

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 3.8))
for size, clock in zip(batches, times, strict=True):
    left.ecdf(clock, label=f"{size} rows")
left.set(xscale="log", xlabel="milliseconds", ylabel="share of requests", title="Time of a request")
left.legend()
colours = np.where(y[400:] == (told > 0), "C0", "C3")
right.scatter(np.arange(len(told)), told, s=10, color=colours)
right.axhline(0, color="k", linewidth=0.8)
right.set(xlabel="tumour", ylabel="decision", title="What it answered (red: wrong)")
plt.show()
