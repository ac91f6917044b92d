"""``asset``: the commands, their options, and how they end.

Exit codes: 0; 1 where the system fails (a full disk); 2 for anything the user can mend, told in one
sentence on standard error; 130 after Ctrl-C.
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer

import asset_svm
from asset_svm.cli.options import (
    PARAMETERS,
    SEARCH_PARAMETERS,
    Interrupted,
    Parameter,
    UsageError,
)

app = typer.Typer(
    help="Kernel support vector machines from the command line: files in, models out.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

INTERRUPTED = 130
FORMATS = "svmlight|csv|tsv|parquet|npy|npz"
Data = Annotated[str, typer.Argument(metavar="DATA", help='A file; "-" is standard input.')]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="A model file (*.asset).")]
Target = Annotated[
    str | None,
    typer.Option("--target", metavar="COLUMN,...", help="The column of the targets, or several."),
]
Format = Annotated[
    str | None, typer.Option("--format", metavar=FORMATS, help="Instead of the extension's.")
]
ZeroBased = Annotated[bool, typer.Option("--zero-based", help="svmlight indices count from 0.")]
Test = Annotated[
    str | None, typer.Option("--test", metavar="FILE", help="Score these rows at the end.")
]
Output = Annotated[
    str | None, typer.Option("-o", "--output", metavar="MODEL", help="Where the model goes.")
]
Task = Annotated[
    str, typer.Option("--task", metavar="auto|classification|regression", help="What to learn.")
]
Width = Annotated[int | None, typer.Option("--n-features", metavar="COUNT", help="Of svmlight rows.")]
Dtype = Annotated[str, typer.Option("--dtype", metavar="float32|float64", help="Of the rows.")]
Scale = Annotated[
    str,
    typer.Option(
        "--scale",
        metavar="auto|none|standard|minmax",
        help="Of the columns; auto encodes csv, tsv and Parquet, and leaves other files alone.",
    ),
]
Categorical = Annotated[
    str | None,
    typer.Option("--categorical", metavar="COLUMN,...", help="Columns that are categories."),
]
Numeric = Annotated[
    str | None, typer.Option("--numeric", metavar="COLUMN,...", help="Columns that are numbers.")
]
Drop = Annotated[str | None, typer.Option("--drop", metavar="COLUMN,...", help="Columns to leave out.")]
Missing = Annotated[
    str | None,
    typer.Option(
        "--missing", metavar="WORD,...", help="Cells that are gaps [NA,N/A,NaN,null,?]; blank ones are."
    ),
]
Decimal = Annotated[
    str | None, typer.Option("--decimal", metavar=".|,", help="What begins decimals in a text table.")
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", metavar="NAME", help="Of a text table [utf-8].")
]
Numbers = Annotated[
    str | None,
    typer.Option(
        "--numbers", metavar="auto|standard|pieces|...", help="How tables' numbers are encoded [auto]."
    ),
]
Probability = Annotated[
    bool, typer.Option("--probability", help="Learn probabilities of classes too, on 5 folds.")
]
Resumable = Annotated[
    bool, typer.Option("--resumable", help="Keep in the model what learning can go on from.")
]
Memory = Annotated[
    str | None, typer.Option("--memory", metavar="SIZE", help="For rows and features, as 2GB.")
]
TimeLimit = Annotated[
    str | None, typer.Option("--time-limit", metavar="TIME", help="Such as 60s, 10m, 2h.")
]
Seed = Annotated[int, typer.Option("--seed", help="Of everything random.")]
Jobs = Annotated[int | None, typer.Option("--jobs", metavar="COUNT", help="Threads; -1 takes all.")]
Report = Annotated[
    str | None, typer.Option("--report", metavar="FILE", help="Write a page about the run.")
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log every epoch.")]


Kept = Annotated[
    str | None, typer.Option("--checkpoint", metavar="DIR", help="Save the run's state here.")
]
Every = Annotated[
    str, typer.Option("--checkpoint-every", "--every", metavar="TIME", help="Between two checkpoints.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint.")]


def _shared(
    data: Data,
    test: Test = None,
    output: Output = None,
    task: Task = "auto",
    target: Target = None,
    format: Format = None,
    zero_based: ZeroBased = False,
    n_features: Width = None,
    dtype: Dtype = "float32",
    scale: Scale = "auto",
    categorical: Categorical = None,
    numeric: Numeric = None,
    drop: Drop = None,
    missing: Missing = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    numbers: Numbers = None,
    probability: Probability = False,
    resumable: Resumable = False,
    memory: Memory = None,
    time_limit: TimeLimit = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    report: Report = None,
    verbose: Verbose = False,
) -> None:
    """The options of every command that learns."""


def _learns(parameters: tuple[Parameter, ...]) -> Callable[..., Any]:
    """Give a command the shared options, and those of these parameters, handed over in a dict."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def wrapped(**options: Any) -> None:
            names = [parameter.name for parameter in parameters]
            command(parameters={name: options.pop(name) for name in names}, **options)

        known = [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for function in (_shared, command)
            for each in inspect.signature(function, eval_str=True).parameters.values()
            if each.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        added = [_option_of(parameter) for parameter in parameters]
        wrapped.__signature__ = inspect.Signature([*known, *added])  # type: ignore[attr-defined]
        wrapped.__name__, wrapped.__doc__ = command.__name__, command.__doc__
        return wrapped

    return decorate


def _option_of(parameter: Parameter) -> inspect.Parameter:
    kind: Any = bool if parameter.flag else bool | None if parameter.either else str | None
    option = typer.Option(
        parameter.declared,
        metavar=None if parameter.flag or parameter.either else parameter.values,
        help=parameter.help,
        show_default=False,
    )
    return inspect.Parameter(
        parameter.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=False if parameter.flag else None,
        annotation=Annotated[kind, option],
    )


@app.callback(invoke_without_command=True)
def _asset(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        print(f"asset-svm {asset_svm.__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
@_learns(PARAMETERS)
def train(
    online: Annotated[bool, typer.Option("--online", help="Learn in one pass, row by row.")] = False,
    classes: Annotated[
        str | None,
        typer.Option("--classes", metavar="LABEL,...", help="All of them, with --online."),
    ] = None,
    checkpoint: Kept = None,
    every: Every = "60s",
    resume: Resume = False,
    temp_dir: Annotated[
        str | None,
        typer.Option(
            "--temp-dir", metavar="DIR", help="For rows that are sorted into cells [beside the model]."
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option("--dask", metavar="ADDRESS|local", help="Learn on a Dask cluster."),
    ] = None,
    one_class: Annotated[
        bool, typer.Option("--one-class", help="Learn where rows are, without targets, for outliers.")
    ] = False,
    nu: Annotated[
        float | None,
        typer.Option("--nu", metavar="SHARE", help="Of the rows outside, with --one-class [0.1]."),
    ] = None,
    auto: Annotated[
        bool, typer.Option("--auto", help="Find the best kind of model by a race, as asset tune does.")
    ] = False,
    **shared: Any,
) -> None:
    """Train a model on the rows of a file, or of several: 'part-*.parquet'."""
    if auto:
        from asset_svm.cli.auto import train_by_race

        given = dict(online=online, classes=classes, one_class=one_class, nu=nu)
        shared |= dict(dask=dask, checkpoint=checkpoint, every=every, resume=resume)
        train_by_race(given, **shared)
        return
    from asset_svm.cli.train import Training

    shared |= dict(online=online, classes=classes, checkpoint=checkpoint, every=every, resume=resume)
    Training(dask=dask, one_class=one_class, nu=nu, temp_dir=temp_dir, **shared).run()


@app.command()
@_learns(SEARCH_PARAMETERS)
def tune(
    dask: Annotated[
        str | None,
        typer.Option("--dask", metavar="ADDRESS|local", help="Search and learn on a Dask cluster."),
    ] = None,
    checkpoint: Kept = None,
    every: Every = "60s",
    resume: Resume = False,
    **shared: Any,
) -> None:
    """Find the best kind of model and its settings, and train it.

    Without --Cs, --gammas or another option of a grid, encodings, kernels, relevances, cells,
    bandwidths and Cs race; with one of them, C, gamma and epsilon are searched by cross-validation.

    asset tune rows.csv --target sold --time-limit 10m

    asset tune rows.csv --target sold --checkpoint run

    asset tune rows.csv --target sold --checkpoint run --resume
    """
    from asset_svm.cli.tune import Tuning

    Tuning(dask=dask, checkpoint=checkpoint, every=every, resume=resume, **shared).run()


@app.command()
def predict(
    model: Model,
    data: Data,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Instead of standard output.")
    ] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Decisions too, as CSV.")] = False,
    probability: Annotated[
        bool, typer.Option("--probability", help="Probabilities of the classes too, as CSV.")
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option("--interval", metavar="COVERAGE", help="Intervals too, as 0.9, as CSV."),
    ] = None,
    target: Target = None,
    format: Format = None,
    zero_based: ZeroBased = False,
) -> None:
    """Predict the rows of a file, one line each."""
    from asset_svm.cli.scoring import write_predictions

    write_predictions(model, data, output, scores=scores, probability=probability, interval=interval,
                      target=target, format=format, zero_based=zero_based)  # fmt: skip


@app.command()
def evaluate(
    model: Model,
    data: Data,
    target: Target = None,
    format: Format = None,
    zero_based: ZeroBased = False,
) -> None:
    """Score a model on the rows of a file."""
    from asset_svm.cli.scoring import evaluate_file
    from asset_svm.cli.tables import show_scores

    show_scores(data, evaluate_file(model, data, target=target, format=format, zero_based=zero_based))


@app.command()
def info(model: Model) -> None:
    """Tell what a model file holds."""
    from asset_svm.cli.tables import show_model

    show_model(model)


@app.command()
@_learns(PARAMETERS)
def plan(
    rows: Annotated[
        str | None, typer.Option("--rows", metavar="COUNT", help="As many as the file has, or would.")
    ] = None,
    **shared: Any,
) -> None:
    """Tell what training on a file would take: time and memory, from a few seconds of trials."""
    from asset_svm.cli.plan import Planning

    shared |= dict(online=False, classes=None, checkpoint=None, every="60s", resume=False)
    Planning(dask=None, one_class=False, nu=None, temp_dir=None, rows=rows, **shared).run()


@app.command()
def make(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Of rows: *.parquet or *.npy.")],
    rows: Annotated[str, typer.Option("--rows", metavar="COUNT", help="Such as 1e8.")] = "1e6",
    noise: Annotated[
        float, typer.Option("--noise", metavar="SHARE", help="Of wrong labels: Bayes's error.")
    ] = 0.05,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the rows.")] = 0,
) -> None:
    """Write made rows of two classes, any number of them, whose least possible error is known."""
    from asset_svm.cli.make import make_file

    make_file(file, rows, noise, seed)


@app.command()
def export(
    model: Model,
    output: Annotated[str, typer.Argument(metavar="OUTPUT", help="What is written: *.onnx, or *.c.")],
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype",
            metavar="float32|float64",
            help="Of the rows that an ONNX file takes; by default that of landmarks, or float64.",
        ),
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option("--coverage", metavar="SHARE", help="Of a regression's intervals [0.9]."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="NAME", help="What C functions begin with; by default the file's name."
        ),
    ] = None,
) -> None:
    """Write a model for onnxruntime (*.onnx) or as one file of C without dependencies (*.c)."""
    from asset_svm.cli.export import export_file

    export_file(model, output, dtype=dtype, coverage=coverage, name=name)


@app.command()
def demo(
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Of the paper's algorithms.")] = 30,
) -> None:
    """The paper's four algorithms on ADULT, beside the paper's numbers."""
    from asset_svm.cli.demo import main as run

    run(epochs)


def main(arguments: list[str] | None = None) -> int:
    """Run a command, and return its exit code."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            code = app(arguments, prog_name="asset", standalone_mode=False)
        if code == INTERRUPTED:  # what some versions of Typer make of a Ctrl-C that nobody caught
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except (typer.Abort, KeyboardInterrupt):
        return _fail(INTERRUPTED, "interrupted.")
    except Interrupted as error:
        return _fail(INTERRUPTED, str(error))
    except (FileNotFoundError, IsADirectoryError, PermissionError, NotADirectoryError) as error:
        return _fail(2, _system_message(error))
    except OSError as error:
        return _fail(1, _system_message(error))
    except (UsageError, ValueError, ImportError, ArithmeticError, MemoryError, RuntimeError) as error:
        return _fail(2, str(error) or type(error).__name__)
    except Exception as error:
        # Typer's own errors have no common class that older versions of it export too.
        if not hasattr(error, "format_message"):
            raise
        return _fail(2, error.format_message())


def _system_message(error: OSError) -> str:
    if error.filename is None or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}."


def _warn(message: Warning | str, *where: Any, **more: Any) -> None:
    """Print a warning as a sentence; the line of code that it comes from helps no user."""
    print(f"asset: {' '.join(str(message).split())}", file=sys.stderr)


def _fail(code: int, message: str) -> int:
    """Print one sentence on standard error, and return the exit code."""
    print(f"asset: {' '.join(message.split())}", file=sys.stderr)
    return code


def run() -> None:
    """The entry point.

    All is written when a command has ended. Python's own way out takes up to a second, in which it
    catches no signal any more: Ctrl-C there would look like a run that was killed.
    """
    from asset_svm.cli.outputs import name_standard_output

    code = 0
    try:
        name_standard_output()
        code = main()
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except OSError as error:  # of what was left to write; a command that failed has told already
        code = code or _fail(1, _system_message(error))
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
