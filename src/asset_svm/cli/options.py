"""The parameters of the estimators as options, and the values that people write.

Imports nothing of the library, so that ``asset --help`` answers at once; a test compares this table
with the signatures of the estimators. Values are checked by the estimators themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MOST_ROWS = 1e15


class UsageError(ValueError):
    """An option that cannot be, told in one sentence."""


class Interrupted(Exception):  # noqa: N818
    """Ctrl-C came, and what was done until then is safe: a sentence that says where."""


@dataclass(frozen=True)
class Parameter:
    """An estimator's parameter: its name, the values it takes, what it does.

    A ``flag`` is off unless it is given; one of ``either`` kind is on or off, or not given.
    """

    name: str
    values: str
    help: str
    flag: bool = False
    either: bool = False

    @property
    def option(self) -> str:
        """The option, as it is written on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def declared(self) -> str:
        """The option, and its opposite where it has one."""
        return f"{self.option}/--no-{self.option[2:]}" if self.either else self.option


PARAMETERS = (
    Parameter(
        "kernel",
        "rbf|exponential|matern32|matern52|laplacian|poly|sigmoid|linear",
        "The kernel [rbf].",
    ),
    Parameter(
        "gamma",
        "scale|auto|NUMBER",
        "Its width; of exponential, matern32, matern52 one over a length [scale].",
    ),
    Parameter("degree", "NUMBER", "Of poly [3]."),
    Parameter("coef0", "NUMBER", "Of poly and sigmoid [0]."),
    Parameter("C", "NUMBER", "Inverse regularisation [1]."),
    Parameter("lam", "NUMBER", "Regularisation itself, instead of C."),
    Parameter(
        "loss",
        "hinge|squared_hinge|logistic|epsilon_insensitive|squared_epsilon_insensitive|huber",
        "The loss, of classes or of numbers [hinge, epsilon_insensitive].",
    ),
    Parameter("epsilon", "NUMBER", "Half-width of the tube of a regression [0.1]."),
    Parameter(
        "target_transform",
        "none|standard|log",
        "Units that a regression learns in [standard for csv, tsv and Parquet, else none].",
    ),
    Parameter("intervals", "", "Keep rows out, for intervals around a regression.", flag=True),
    Parameter("quantiles", "Q,...", "Learn these quantiles of numbers, as 0.1,0.5,0.9."),
    Parameter("approximation", "nystroem|fourier", "Of the kernel [nystroem]."),
    Parameter("n_components", "auto|COUNT", "Landmarks or features [up to 2048]."),
    Parameter(
        "landmarks", "uniform|kmeans|rpcholesky|leverage|margin", "How they are chosen [uniform]."
    ),
    Parameter("fourier", "iid|orthogonal|qmc|hadamard", "Of the frequencies [iid]."),
    Parameter("rank", "COUNT", "At most so many eigenpairs of the landmarks."),
    Parameter("rank_threshold", "NUMBER", "Smallest eigenvalue that is kept."),
    Parameter("rank_rule", "relative|absolute", "What the threshold is compared with [relative]."),
    Parameter(
        "relevance", "none|columns|directions|auto", "Learn which columns or directions matter [none]."
    ),
    Parameter("n_cells", "auto|COUNT", "Cells, each with a model of its own [none]."),
    Parameter("n_partitions", "COUNT", "Partitions into cells that are averaged [1]."),
    Parameter("step", "auto|metric|robust|strong", "The rule of the steps [auto]."),
    Parameter("step_scale", "auto|NUMBER", "Multiplier of the steps [auto: a pilot]."),
    Parameter("gradient_sample", "COUNT", "Rows that the steps are estimated from [1000]."),
    Parameter("fit_intercept", "auto|true|false", "Whether there is an intercept [auto]."),
    Parameter("intercept_bound", "NUMBER", "Its largest size."),
    Parameter("average", "auto|FRACTION|COUNT|none", "Iterates that are averaged [auto]."),
    Parameter("sampling", "auto|uniform|shuffle|given", "The order of the rows [auto]."),
    Parameter("max_iter", "COUNT", "Epochs [25; 3 where rows are streamed]."),
    Parameter("tol", "NUMBER", "Stop at this relative duality gap."),
    Parameter("early_stopping", "", "Stop when held-out rows say so.", flag=True),
    Parameter("validation_fraction", "FRACTION", "Rows held out for that, or kept out [0.1]."),
    Parameter("n_iter_no_change", "COUNT", "Epochs without gain before it stops [5]."),
    Parameter("device", "cpu|cuda|auto", "Where the work is done [cpu]."),
    Parameter("precision", "float32|float16", "Of products on the card [float32]."),
    Parameter("class_weight", "balanced|LABEL=NUMBER,...", "Weights of classes."),
    Parameter("multi_class", "ovr|ovo", "Classes one from the rest, or in pairs [ovr]."),
)
FOR_CLASSES = {"class_weight", "multi_class"}
"""Parameters that a classifier alone has."""
ELSEWHERE = {
    "time_limit": "--time-limit",
    "memory_limit": "--memory",
    "random_state": "--seed",
    "n_jobs": "--jobs",
    "verbose": "--verbose",
    "warm_start": "",  # a new process has nothing to start from
    "encoder": "--scale",
}
"""Parameters that have an option of another name, or none."""

TUNED = (
    Parameter(
        "kernel",
        "auto|rbf|exponential|matern32|matern52|laplacian|poly|sigmoid|linear",
        "The kernel [auto: the best of a race; rbf where a grid is given].",
    ),
    Parameter(
        "relevance",
        "auto|none|columns|directions",
        "Of a race: learn which columns or directions matter [auto: where that is better].",
    ),
    Parameter("ensemble", "", "Whether a race may join its best models [it may].", either=True),
    Parameter("Cs", "COUNT|C,C,...", "Values of C: so many from 0.01 to 10000, or these [10]."),
    Parameter("gammas", "auto|none|GAMMA,...", "Values of gamma; none: --gamma only [auto]."),
    Parameter("epsilons", "EPSILON,...", "Values of epsilon of a regression; else --epsilon only."),
    Parameter("cv", "COUNT|FRACTION", "Folds, or a part of the rows to hold out once [5]."),
    Parameter("scoring", "NAME", "One of scikit-learn's scores [accuracy, or r2]."),
    Parameter("search_iter", "COUNT", "Epochs of the models of the search [5, or more]."),
)
"""Parameters of the searches that the estimators have not, or have with other words."""
SEARCHED = (
    "kernel",
    "C",
    "lam",
    "loss",
    "relevance",
    "target_transform",
    "intervals",
    "quantiles",
    "early_stopping",
    "validation_fraction",
    "n_iter_no_change",
)
"""Parameters of the estimators that the searches have not, or have with other words."""
SEARCH_PARAMETERS = (*TUNED, *(each for each in PARAMETERS if each.name not in SEARCHED))

_SIZES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_SIZES |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_TIMES = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def parse_value(text: str) -> Any:
    """The value that is written: none, true, false, an integer, a number, or text."""
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def parse_params(given: dict[str, Any]) -> dict[str, Any]:
    """Parameters of an estimator or a search from the options that were given."""
    params: dict[str, Any] = {}
    for parameter in (*TUNED, *PARAMETERS):
        value = given.get(parameter.name)
        if value is None or (value is False and not parameter.either):
            continue
        if parameter.either:
            params[parameter.name] = bool(value)
        elif parameter.name == "class_weight" and "=" in value:
            params["class_weight"] = _weights(value)
        elif "," in parameter.values and parameter.name != "class_weight":
            params[parameter.name] = _list(value, parameter)
        else:
            params[parameter.name] = True if parameter.flag else parse_value(value)
    return params


def written(name: str, value: Any) -> list[str]:
    """A parameter of the estimators as an option that is parsed back to the same value, to the bit."""
    parameter = next(each for each in PARAMETERS if each.name == name)
    if parameter.flag:
        return [parameter.option] if value else []
    if isinstance(value, float):
        return [parameter.option, repr(float(value))]
    words: dict[Any, str] = {None: "none", True: "true", False: "false"}
    known = value is None or isinstance(value, bool)
    return [parameter.option, words[value] if known else str(value)]


def _list(text: str, parameter: Parameter) -> Any:
    """The word or count that stands alone, where there may be one, else numbers."""
    words = parameter.values.split("|")[:-1]
    value = parse_value(text)
    if text.lower() in words or ("COUNT" in words and isinstance(value, int)):
        return value
    numbers = [parse_value(part) for part in text.split(",")]
    if any(isinstance(number, bool) or not isinstance(number, int | float) for number in numbers):
        raise UsageError(f"{parameter.option} {text}: write {parameter.values} with numbers.")
    return numbers


def _weights(text: str) -> dict[Any, Any]:
    pairs = [part.rpartition("=") for part in text.split(",")]
    if any(not label or not weight for label, _, weight in pairs):
        raise UsageError(f"--class-weight {text}: write LABEL=NUMBER,LABEL=NUMBER, or balanced.")
    return {parse_value(label): parse_value(weight) for label, _, weight in pairs}


def parse_size(text: str) -> int:
    """The bytes of a size: 2GB, 500MiB, 1e9."""
    return int(_with_unit(text, _SIZES, "a size such as 2GB or 500MB", "--memory"))


def parse_seconds(text: str, option: str) -> float:
    """The seconds of a time: 60s, 10m, 2h, 90."""
    return _with_unit(text, _TIMES, "a time such as 60s, 10m or 2h", option)


def parse_count(text: str, option: str) -> int:
    """The number of rows of a text such as 1e8."""
    try:
        count = float(text)
    except ValueError:
        raise UsageError(f"{option} {text}: is not a number of rows, such as 1e6.") from None
    if not 1 <= count < MOST_ROWS or count != int(count):
        raise UsageError(f"{option} {text}: must be a whole number from 1, below {MOST_ROWS:g}.")
    return int(count)


def _with_unit(text: str, units: dict[str, Any], what: str, option: str) -> float:
    digits = text.strip().lower()
    unit = ""
    while digits and (digits[-1].isalpha() or digits[-1].isspace()):
        digits, unit = digits[:-1], (digits[-1] + unit).strip()
    try:
        value = float(digits) * units[unit]
    except (ValueError, KeyError):
        raise UsageError(f"{option} {text}: is not {what}.") from None
    if not 0 < value < float("inf"):
        raise UsageError(f"{option} {text}: must be above 0.")
    return value
