"""Bad inputs to ``fit``, ``partial_fit``, ``predict`` and the command.

What is bad is refused with a ``ValueError`` or ``TypeError``, and a model that was there predicts as
before; what is only odd (another container, type or order of the same numbers) gives what plain arrays
give, row by row. The command ends with 0, 1 or 2, and in the last two with one sentence.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

import asset_svm
from asset_svm import AssetClassifier, AssetRegressor, NonFiniteError
from asset_svm.cli.main import main
from asset_svm.cli.options import PARAMETERS
from fuzz import readers
from fuzz.readers import GOLDEN
from soak.attack import Attack, Case
from soak.mutations import mutated
from test_bad_input import SHARED

REFUSALS = (ValueError, TypeError, NonFiniteError)
ROWS = np.random.default_rng(0).integers(-8, 9, size=(60, 4)) / 4.0
"""Numbers that every type of floats holds."""
LABELS = (ROWS[:, 0] + ROWS[:, 1] ** 2 > 1).astype(int)
REALS = ROWS[:, 0] - 2 * ROWS[:, 1]
SHORT = {"max_iter": 3, "n_components": 30, "random_state": 0, "time_limit": 20.0, "encoder": None}
"""Without an encoder, which would make numbers of frames with gaps, dates and categories."""

SAME: dict[str, Callable[[Any], Any]] = {
    "Fortran": np.asfortranarray,
    "strided": lambda rows: np.repeat(rows, 2, axis=1)[:, ::2],
    "backwards": lambda rows: rows[::-1].copy()[::-1],
    "a list": lambda rows: rows.tolist(),
    "objects": lambda rows: rows.astype(object),
    "big-endian": lambda rows: rows.astype(">f8"),
    "long double": lambda rows: rows.astype(np.longdouble),
    "float16": lambda rows: rows.astype(np.float16),
    "float32": lambda rows: rows.astype(np.float32),
    "a frame": pd.DataFrame,
    "a nullable frame": lambda rows: pd.DataFrame(rows).convert_dtypes(),
    "CSR": sp.csr_matrix,
    "CSR array": sp.csr_array,
    "CSC": sp.csc_matrix,
    "COO": sp.coo_array,
    "LIL": sp.lil_matrix,
    "DOK": sp.dok_matrix,
    "BSR": sp.bsr_matrix,
    "DIA": sp.dia_matrix,
    "CSR with entries twice": lambda rows: _doubled(rows),
    "CSR out of order": lambda rows: _reversed(rows),
    "masked nowhere": np.ma.masked_array,
}
ODD_VALUES = [np.nan, np.inf, -np.inf]
ODD_OBJECTS = [None, "x", "1.5", b"1", 1j, [1], {}, pd.NA, pd.NaT, np.datetime64("2020-01-01")]
ANY = [
    *(0, -1, 1, 2, 0.5, -0.0, 1e-300, 1e300, 2**31, 2**63, 10**30, True, False, None, "", "auto", "x"),
    *(
        np.nan,
        np.inf,
        [],
        {},
        (),
        np.zeros(3),
        np.float32(0.5),
        np.int8(3),
        np.str_("rbf"),
        1j,
        b"x",
        len,
    ),
]
WORDS = [
    "",
    "-1",
    "0",
    "1e400",
    "nan",
    "x",
    "1,2",
    "ü",
    "9" * 30,
    "0.5",
    "auto",
    "true",
    "--",
    "a=1",
    "=",
]


def _doubled(rows: Any) -> Any:
    S = sp.csr_matrix(rows)
    parts = (np.repeat(S.data, 2) / 2, np.repeat(S.indices, 2), 2 * S.indptr)
    return sp.csr_matrix(parts, shape=S.shape)


def _reversed(rows: Any) -> Any:
    S = sp.csr_matrix(rows)
    for begin, end in zip(S.indptr[:-1], S.indptr[1:], strict=True):
        S.indices[begin:end] = S.indices[begin:end][::-1].copy()
        S.data[begin:end] = S.data[begin:end][::-1].copy()
    return S


def bad_rows(rng: np.random.Generator) -> Any:
    """Rows that no model can be learnt from, nor be asked about."""
    rows, kind = ROWS.copy(), rng.integers(12)
    place = int(rng.integers(60)), int(rng.integers(4))
    container = list(SAME.values())[rng.integers(len(SAME))]
    if kind <= 1:
        rows[place] = ODD_VALUES[rng.integers(3)]
        return container(rows)
    if kind <= 3:
        rows = rows.astype(object)
        rows[place] = ODD_OBJECTS[rng.integers(len(ODD_OBJECTS))]
        return rows if rng.random() < 0.5 else pd.DataFrame(rows)
    if kind == 4:
        masked = np.ma.masked_array(rows)
        masked[place] = np.ma.masked
        return masked
    if kind <= 6:
        make = [sp.csr_matrix, sp.csr_array, sp.csc_matrix][rng.integers(3)]
        S = make(rows)
        part = getattr(S, ["indices", "indptr"][rng.integers(2)])
        part[rng.integers(1, len(part))] = rng.choice([-1, -(2**31), 10**6, 2**31 - 1])
        return S
    if kind == 7:
        return rows.astype(["S", "U", "m8[s]", "M8[s]", "c16"][rng.integers(5)])
    if kind == 8:
        return [rows[:, 0], rows[:, :, None], rows[0, 0], None, "rows", {}, rows[:0], rows[:, :0]][
            rng.integers(8)
        ]
    if kind == 9:
        ragged = rows.tolist()
        ragged[place[0]] = ragged[place[0]][:-1]
        return ragged
    if kind == 10:
        frame = pd.DataFrame(rows)
        frame[2] = [frame[2].astype(str), pd.to_datetime(frame[2]), pd.Categorical(["a", "b"] * 30)][
            rng.integers(3)
        ]
        return frame
    return [container(rows)] * 2


def bad_targets(rng: np.random.Generator, y: Any) -> Any:
    """Targets of no use to anybody."""
    kind = rng.integers(6)
    if kind == 0:
        return [y[:-1], y[:0], np.r_[y, y], np.c_[y, y], None, 3][rng.integers(6)]
    if kind == 1:
        y = y.astype(float)
        y[rng.integers(60)] = ODD_VALUES[rng.integers(3)]
        return y
    if kind == 2:
        y = y.astype(object)
        y[rng.integers(60)] = [None, [1], {}, pd.NA, pd.NaT, np.nan][rng.integers(6)]
        return y if rng.random() < 0.5 else pd.Series(y)
    if kind == 3:
        return np.ma.masked_array(y, np.arange(60) == rng.integers(60))
    if kind == 4:
        return y.astype(["m8[s]", "M8[s]", "c16"][rng.integers(3)])
    return np.full(60, np.nan) if rng.random() < 0.5 else y[None, :]


def bad_weights(rng: np.random.Generator) -> Any:
    """Weights that cannot be."""
    w, kind = np.ones(60), rng.integers(4)
    if kind == 0:
        w[rng.integers(60)] = rng.choice([-1.0, np.nan, np.inf, -1e-300])
        return w
    if kind == 1:
        return [w[:-1], w[:0], np.c_[w, w], 0 * w, "balanced", {}, w[:, None, None]][rng.integers(7)]
    if kind == 2:
        return np.ma.masked_array(w, np.arange(60) == rng.integers(60))
    return w.astype(["m8[s]", "c16"][rng.integers(2)])


class BadInputs(Attack):
    """A case is one call."""

    name, count, short, patience = "inputs", 300, 300, 120.0

    def prepare(self) -> None:
        """Models that are asked, and files for the command."""
        self.y = {AssetClassifier: LABELS, AssetRegressor: REALS}
        self.models = {cls: cls(**SHORT).fit(ROWS, y) for cls, y in self.y.items()}
        self.expected = {cls: _decisions(model, ROWS) for cls, model in self.models.items()}
        asset_svm.save(self.models[AssetClassifier], "model.asset")
        readers.FOLDER = Path.cwd()
        table = "a,b,c,d,y\n" + "".join(
            ",".join(map(str, row)) + f",{label}\n" for row, label in zip(ROWS, LABELS, strict=True)
        )
        Path("rows.csv").write_text(table)
        self.files = {"csv": table.encode(), "asset": (GOLDEN / "0.1.0-classes.asset").read_bytes()}
        for name in ("svmlight", "npy", "npz", "parquet"):
            self.files[name] = readers.seeds(name)[0].lstrip(b"\0")

    def run(self, case: Case) -> str:
        """Draw a way to be bad."""
        warnings.simplefilter("ignore")
        ways = [self.same, self.rows, self.targets, self.weights, self.parameter, self.command]
        way = ways[case.number % len(ways)]
        return f"{way.__name__}: {way(case.rng)}"

    def _drawn(self, rng: np.random.Generator) -> tuple[Any, Any, Any]:
        """(class, a method that learns, targets)."""
        cls = [AssetClassifier, AssetRegressor][rng.integers(2)]
        model = cls(**SHORT)
        if rng.random() < 0.3:
            model.set_params(n_cells=int(rng.integers(1, 4)))
        if rng.random() < 0.5:
            return cls, model.fit, self.y[cls]
        extra = {"classes": [0, 1]} if cls is AssetClassifier else {}
        return cls, lambda X, y, w=None: model.partial_fit(X, y, sample_weight=w, **extra), self.y[cls]

    def same(self, rng: np.random.Generator) -> str:
        """The same rows in other clothes."""
        name = list(SAME)[rng.integers(len(SAME))]
        cls, learn, y = self._drawn(rng)
        rows = SAME[name](ROWS)
        found = _decisions(self.models[cls], rows)
        assert np.allclose(found, self.expected[cls], atol=1e-3), f"other predictions for {name}"
        learnt = _decisions(learn(rows, y), ROWS)
        assert learnt.shape == (60,) and np.isfinite(learnt).all(), name
        return "as plain rows"

    def rows(self, rng: np.random.Generator) -> str:
        """Rows that cannot be."""
        cls, learn, y = self._drawn(rng)
        rows = bad_rows(rng)
        if rng.random() < 0.5:
            return self._refused(lambda: self.models[cls].predict(rows), rows)
        return self._refused(lambda: learn(rows, y), rows)

    def targets(self, rng: np.random.Generator) -> str:
        """Targets that cannot be."""
        _, learn, y = self._drawn(rng)
        bad = bad_targets(rng, y)
        return self._refused(lambda: learn(ROWS, bad), bad)

    def weights(self, rng: np.random.Generator) -> str:
        """Weights that cannot be."""
        _, learn, y = self._drawn(rng)
        bad = bad_weights(rng)
        return self._refused(lambda: learn(ROWS, y, bad), bad)

    def _refused(self, call: Callable[[], Any], given: Any) -> str:
        try:
            call()
        except REFUSALS as error:
            said = str(error)
        else:
            raise AssertionError(f"accepted: {type(given).__name__} {str(given)[:300]}")
        assert said.strip(), "an error without a word"
        for cls, model in self.models.items():
            assert np.array_equal(_decisions(model, ROWS), self.expected[cls]), "another model"
        return "refused"

    def parameter(self, rng: np.random.Generator) -> str:
        """A parameter that is known to be bad, or anything at all."""
        cls = [AssetClassifier, AssetRegressor][rng.integers(2)]
        names = list(SHARED)
        name, known = names[rng.integers(len(names))], rng.random() < 0.3
        values = SHARED[name] if known else ANY
        value = values[rng.integers(len(values))]
        model = cls(**(SHORT | {name: value}))
        try:
            found = _decisions(model.fit(ROWS, self.y[cls]), ROWS)
        except REFUSALS as error:
            said = str(error)
        else:
            assert not known, f"accepted: {name}={value!r}"
            assert np.isfinite(found).all(), f"{name}={value!r} gives what is not finite"
            return "a model"
        assert name in said, f"{name}={value!r}: {said}"
        return "refused"

    def command(self, rng: np.random.Generator) -> str:
        """The command, with odd options or files."""
        kind = list(self.files)[rng.integers(len(self.files))]
        odd = Path(f"odd.{'svm' if kind == 'svmlight' else kind}")
        odd.write_bytes(mutated(self.files[kind], rng))
        files = ["rows.csv", str(odd), "nothing.csv", ".", "", "model.asset", "/dev/null"]

        def file() -> str:
            return files[min(rng.integers(len(files), size=2))]

        verb = rng.choice(["train", "train", "predict", "evaluate", "info", "tune"])
        if verb in ("train", "tune"):
            arguments = [verb, file(), "-o", "out.asset", "--max-iter", "2", "--time-limit", "10s"]
            if verb == "train":
                option = PARAMETERS[rng.integers(len(PARAMETERS))]
                arguments += [option.option] if option.flag else [option.option, str(rng.choice(WORDS))]
            other = [
                "--memory",
                "--target",
                "--scale",
                "--task",
                "--jobs",
                "--test",
                "--seed",
                "--format",
            ]
            if rng.random() < 0.5:
                arguments += [str(rng.choice(other)), str(rng.choice([*WORDS, "y", "b"]))]
        else:
            model = "model.asset" if rng.random() < 0.5 else file()
            arguments = [verb, model] + ([] if verb == "info" else [file()])
        out, told = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
            try:
                code = main(arguments)
            except Exception as error:
                raise AssertionError(f"a traceback of asset {arguments}") from error
        said = told.getvalue()
        assert code in (0, 1, 2), (arguments, code)
        assert "Traceback" not in said, (arguments, said)
        if code:
            assert said.splitlines()[-1].startswith("asset: "), (arguments, said)
        return f"exit {code}"


def _decisions(model: Any, rows: Any) -> Any:
    method = model.decision_function if hasattr(model, "decision_function") else model.predict
    return np.asarray(method(rows))
