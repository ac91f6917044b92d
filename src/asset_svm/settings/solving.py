"""All parameters of an estimator, checked and translated into the words of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state

from asset_svm.backends.base import Backend
from asset_svm.backends.cpu import CpuBackend
from asset_svm.backends.device import card_backend, goes_to_card
from asset_svm.losses import Loss
from asset_svm.settings import checks as check
from asset_svm.settings.mapping import DEFAULT_COMPONENTS, MapSettings
from asset_svm.threads.granted import count_threads
from asset_svm.training.recipe import Recipe, StepKind

CELL_ROWS = 1000
"""The number of rows of a cell where ``n_cells="auto"``."""


@dataclass(frozen=True, eq=False)
class Settings:
    """What a run must know of an estimator's parameters.

    Parameters
    ----------
    map : MapSettings
    approximation : str or transformer
        "nystroem", "fourier", or a map of the user's own.
    free_intercept : bool
        ``fit_intercept``, with "auto" decided.
    step_scale : float or None
        None: by a pilot.
    n_threads : int
        ``n_jobs``, counted.
    others
        As the parameters of that name.
    """

    map: MapSettings
    approximation: Any
    C: float
    lam: float | None
    relevance: Literal["columns", "directions", "auto"] | None
    n_cells: int | Literal["auto"] | None
    n_partitions: int
    step: StepKind
    step_scale: float | None
    gradient_sample: int
    free_intercept: bool
    intercept_bound: float | None
    average: Any
    sampling: str
    max_iter: int | None
    tol: float | None
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    time_limit: float | None
    memory_limit: int | None
    warm_start: bool
    random_state: Any
    n_threads: int
    device: str
    precision: Any
    verbose: int

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Settings:
        """The settings that the parameters of an estimator ask for; they are all checked here alone."""
        given = OF_SOME | dict(params)
        mapping = MapSettings.of(given, supervised=True)
        _check(given)
        average, fit_intercept = given["average"], given["fit_intercept"]
        if fit_intercept == "auto":
            fit_intercept = given["step"] != "strong" and given["n_cells"] is None
        as_they_are = {name: given[name] for name in cls.__dataclass_fields__ if name in given}
        translated = dict(
            map=mapping,
            lam=_number(float, given["lam"]),
            step="metric" if given["step"] == "auto" else given["step"],
            step_scale=None if given["step_scale"] == "auto" else float(given["step_scale"]),
            gradient_sample=int(given["gradient_sample"]),
            free_intercept=bool(fit_intercept),
            intercept_bound=_number(float, given["intercept_bound"]),
            average=int(average) if check.is_integer(average) else average,
            early_stopping=bool(given["early_stopping"]),
            memory_limit=_number(int, given["memory_limit"]),
            warm_start=bool(given["warm_start"]),
            n_threads=count_threads(given["n_jobs"]),
            verbose=int(given["verbose"]),
        )
        return cls(**(as_they_are | translated))

    def changed(self, **settings: Any) -> Self:
        """The settings with other values; those of the map are given by their own names."""
        own = {
            name: value for name, value in settings.items() if name in MapSettings.__dataclass_fields__
        }
        others = {name: value for name, value in settings.items() if name not in own}
        return replace(self, map=replace(self.map, **own), **others) if settings else self

    def asked(self, *names: str) -> dict[str, Any]:
        """The parameters among these, which are among ``USUAL``, that ask for something."""
        given = {name: getattr(self.map if hasattr(self.map, name) else self, name) for name in names}
        return {
            name: value
            for name, value in given.items()
            if not isinstance(value, type(USUAL[name])) or value != USUAL[name]
        }

    # The problem --------------------------------------------------------------------------------

    def lam_of(self, total_weight: float) -> float:
        """The regularisation lam: that of C, where none is given."""
        return self.lam if self.lam is not None else 1.0 / (self.C * total_weight)

    def recipe(self, loss: Loss, lam: float, n_models: int, seed: int) -> Recipe:
        """The recipe by which K problems with this lam are solved."""
        return Recipe(
            loss=loss,
            lam=(lam,) * n_models,
            step=self.step,
            step_scale=self.step_scale,
            average=self.average,
            free_intercept=self.free_intercept,
            intercept_bound=self.intercept_bound,
            gradient_sample=self.gradient_sample,
            seed=seed,
        )

    @property
    def centred(self) -> bool:
        """Whether the mean is taken off features.

        Not with the paper's steps, which are those of the paper's map, nor where the intercept has a
        bound of the user's: it is meant for features as they are.
        """
        free = self.free_intercept and self.intercept_bound is None
        return self.step == "metric" and free

    @property
    def map_key(self) -> tuple[Any, ...]:
        """What fits have in common that draw the same map from the same rows."""
        return (*self.map.key, self.approximation, self.step, self.centred)

    @property
    def is_nystroem(self) -> bool:
        """Whether a Nystroem map is drawn, and not given."""
        return isinstance(self.approximation, str) and self.approximation == "nystroem"

    # The run ------------------------------------------------------------------------------------

    def draw_seed(self) -> int:
        """The seed of a run: one draw of ``random_state``."""
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def deadline(self, begun: float) -> float:
        """The moment by which a run that began then must have ended."""
        return begun + self.time_limit if self.time_limit else float("inf")

    def cells_of(self, n_rows: int) -> int:
        """``n_cells`` as a number for so many rows."""
        return resolve_cells(self.n_cells, n_rows)

    def goes_to_card(self, X: Any, n_rows: int | None = None) -> bool:
        """Whether ``device`` sends these rows, or so many of which they are a sample, to the card."""
        if self.n_cells is not None:
            width = X.shape[0] // self.cells_of(X.shape[0])  # kernel values a row
        else:
            width = self.map.number or DEFAULT_COMPONENTS
        return goes_to_card(self.device, X, width, n_rows)

    def backend(self, X: Any, n_rows: int | None = None) -> Backend:
        """The backend that does the work on these rows, or on so many of which they are a sample."""
        return self.card() if self.goes_to_card(X, n_rows) else self.host()

    def card(self) -> Any:
        """The backend of the card, whatever ``device`` says."""
        return card_backend(self.memory_limit, self.precision)

    def host(self) -> CpuBackend:
        """The backend of this machine's own cores, whatever ``device`` says."""
        return CpuBackend(memory_limit=self.memory_limit)


OF_SOME: dict[str, Any] = {
    "C": 1.0,
    "lam": None,
    "relevance": None,
    "early_stopping": False,
    "validation_fraction": 0.1,
    "n_iter_no_change": 5,
    "time_limit": None,
    "warm_start": False,
}
"""Parameters that not every estimator has, with the values that stand for their absence."""
USUAL: dict[str, Any] = {
    "approximation": "nystroem",
    "n_components": None,
    "landmarks": "uniform",
    "fourier": "iid",
    "rank": None,
    "rank_threshold": None,
    "rank_rule": "relative",
    "n_partitions": 1,
    "step": "metric",
    "step_scale": None,
    "gradient_sample": 1000,
    "intercept_bound": None,
    "average": "auto",
    "sampling": "auto",
    "max_iter": None,
}
"""Parameters that some kind of model does not use, with the values that ask for nothing."""


def resolve_cells(n_cells: Any, n_rows: int) -> int:
    """``n_cells`` as a number for so many rows."""
    return max(1, round(n_rows / CELL_ROWS)) if n_cells == "auto" else min(int(n_cells), n_rows)


def is_map(approximation: Any) -> bool:
    """Whether this is a map of the user's own: NystroemMap, FourierMap, or one of them frozen."""
    given = own_map(approximation)
    return not isinstance(given, type) and bool(getattr(given, "draws_features", False))


def own_map(approximation: Any) -> Any:
    """The map of the user's own, out of scikit-learn's FrozenEstimator where it is in one."""
    return approximation.estimator if isinstance(approximation, FrozenEstimator) else approximation


def _number(kind: type, value: Any) -> Any:
    """The value as this kind of number; None stays."""
    return None if value is None else kind(value)


def _check(params: Mapping[str, Any]) -> None:
    """Raise where a parameter cannot be; the map's are checked by ``MapSettings``."""
    get = params.__getitem__
    check.check_positive("C", get("C"))
    check.check_positive("lam", get("lam"), optional=True)
    if not is_map(get("approximation")):
        check.check_choice("approximation", own_map(get("approximation")), ("nystroem", "fourier"))
    check.check_choice("relevance", get("relevance"), (None, "columns", "directions", "auto"))
    if not (isinstance(get("n_cells"), str) and get("n_cells") == "auto"):
        check.check_count("n_cells", get("n_cells"), optional=True)
    check.check_count("n_partitions", get("n_partitions"))
    check.check_choice("step", get("step"), ("auto", *get_args(StepKind)))
    if not (isinstance(get("step_scale"), str) and get("step_scale") == "auto"):
        check.check_positive("step_scale", get("step_scale"))
    check.check_count("gradient_sample", get("gradient_sample"))
    check.check_choice("fit_intercept", get("fit_intercept"), ("auto", True, False))
    if get("step") == "strong" and get("fit_intercept") is True:
        raise ValueError(
            'step="strong" needs a problem that is strongly convex in all variables, and '
            "fit_intercept=True adds one that it is not in; set fit_intercept=False or "
            'step="robust".'
        )
    check.check_positive("intercept_bound", get("intercept_bound"), optional=True)
    if not (isinstance(get("average"), str) and get("average") == "auto"):
        check.check_average(get("average"))
    check.check_choice("sampling", get("sampling"), ("auto", "uniform", "shuffle", "given"))
    check.check_epochs(get("max_iter"))
    check.check_positive("tol", get("tol"), optional=True)
    check.check_flag("early_stopping", get("early_stopping"))
    check.check_fraction("validation_fraction", get("validation_fraction"))
    check.check_count("n_iter_no_change", get("n_iter_no_change"))
    check.check_positive("time_limit", get("time_limit"), optional=True)
    check.check_not_negative("memory_limit", get("memory_limit"), optional=True)
    check.check_flag("warm_start", get("warm_start"))
    check.check_jobs(get("n_jobs"))
    check.check_choice("device", get("device"), ("cpu", "cuda", "auto"))
    check.check_choice("precision", get("precision"), ("float32", "float16"))
    check.check_level("verbose", get("verbose"))
