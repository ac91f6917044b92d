"""The data sets of the benchmarks, found under ASSET_DATA, with the paper's splits and parameters."""

from __future__ import annotations

import bz2
import gzip
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from asset_svm import load_adult


def folder() -> Path:
    """Where the data lies."""
    if "ASSET_DATA" not in os.environ:
        raise SystemExit("Set ASSET_DATA to the folder that holds the data sets.")
    return Path(os.environ["ASSET_DATA"])


@dataclass(frozen=True)
class Paper:
    """The paper's Table 2: sizes of the splits, lam and sigma."""

    train: int
    test: int
    lam: float
    sigma: float


PAPER = {
    "adult": Paper(32561, 8141, 3.07e-8, 0.001),
    "mnist": Paper(58100, 5950, 1.72e-7, 0.01),
    "ijcnn": Paper(113352, 14169, 8.82e-8, 1.0),
    "covtype": Paper(464809, 58101, 7.17e-7, 1.0),
}


def _svmlight(name: str, n_features: int) -> tuple[Any, np.ndarray]:
    with bz2.open(folder() / name) as stream:
        X, y = load_svmlight_file(stream, n_features=n_features, dtype=np.float32)
    return X.toarray(), y


def load(name: str) -> tuple[Any, np.ndarray]:
    """All rows of a set, float32; binary sets with y in {-1, 1}."""
    if name == "adult":
        X, y, _ = load_adult()
        return X.toarray(), y
    if name == "ijcnn":
        parts = [_svmlight("ijcnn1.bz2", 22), _svmlight("ijcnn1.t.bz2", 22)]
        return np.vstack([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    if name == "mnist":
        images, labels = [], []
        for part in ("train", "t10k"):
            with gzip.open(folder() / f"{part}-images-idx3-ubyte.gz") as stream:
                images.append(np.frombuffer(stream.read(), np.uint8, offset=16).reshape(-1, 784))
            with gzip.open(folder() / f"{part}-labels-idx1-ubyte.gz") as stream:
                labels.append(np.frombuffer(stream.read(), np.uint8, offset=8))
        return np.vstack(images).astype(np.float32) / 255, np.where(np.concatenate(labels) < 5, 1, -1)
    if name == "covtype":
        with np.load(folder() / "covtype.npz") as file:
            X, y = file["X"].astype(np.float32), file["y"]
        low, high = X.min(axis=0), X.max(axis=0)
        return (X - low) / np.maximum(high - low, 1e-12), np.where(y == 1, 1, -1)
    if name == "letter":
        parts = [_svmlight("letter.scale.bz2", 16), _svmlight("letter.scale.t.bz2", 16)]
        return np.vstack([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    if name == "abalone":
        return _svmlight("abalone_scale.bz2", 8)
    files = {"cal_housing": "cal_housing.npz", "kin40k": "uci_kin40k.npz"}
    files["protein"] = "uci_protein.npz"
    with np.load(folder() / files[name]) as file:
        return file["X"].astype(np.float32), file["y"].astype(np.float64).ravel()


def paper_split(name: str, seed: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """A random split of all rows with the paper's sizes: X, y, X_test, y_test."""
    X, y = load(name)
    paper = PAPER[name]
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[: paper.train], order[-paper.test :]
    return X[train], y[train], X[test], y[test]
