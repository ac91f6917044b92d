"""``asset export``: a model file as ONNX or as C, by the extension of what is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from asset_svm.cli.options import UsageError
from asset_svm.cli.outputs import check_output
from asset_svm.export import to_c, to_onnx
from asset_svm.runtime.reading import read

KINDS = (".onnx", ".c")
USUAL_COVERAGE = 0.9


def export_file(
    model: str, output: str, *, dtype: str | None, coverage: float | None, name: str | None
) -> None:
    """Write a model file as another kind of file, and tell what is in it."""
    kind = Path(output).suffix.lower()
    if kind not in KINDS:
        raise UsageError(f"{output} ends in neither .onnx nor .c, which say what is written.")
    if dtype is not None and dtype not in ("float32", "float64"):
        raise UsageError(f"--dtype {dtype} is not a type of rows; use float32 or float64.")
    if kind == ".c" and dtype is not None:
        raise UsageError("--dtype is for .onnx: a row of the C functions is float64.")
    if kind == ".onnx" and name is not None:
        raise UsageError("--name is for .c, whose functions begin with it.")
    check_output("OUTPUT", output, {"MODEL": model})
    description = read(model)
    if coverage is not None and description.intervals is None:
        raise UsageError(
            f"--coverage {coverage:g} is for a regression that was trained with intervals."
        )
    given = USUAL_COVERAGE if coverage is None else coverage
    lines = [["model", description.kind]]
    if kind == ".c":
        source = to_c(model, output, name=name, coverage=given)
        lines += [["function", each] for each in _declared(source)]
    else:
        made = to_onnx(model, output, dtype=dtype, coverage=given)
        lines += [["input", _shown(each)] for each in made.graph.input]
        lines += [["output", _shown(each)] for each in made.graph.output]
    from asset_svm.cli.tables import show

    show("exported", [*lines, ["bytes", str(Path(output).stat().st_size)], ["saved in", output]])


def _declared(source: str) -> list[str]:
    """The functions that a C file declares."""
    return [line for line in source.split("static")[0].splitlines() if line.startswith("int ")]


def _shown(value: Any) -> str:
    """The name, type and shape of an input or output."""
    import onnx

    tensor = value.type.tensor_type
    name = onnx.TensorProto.DataType.Name(tensor.elem_type).lower()
    shape = ", ".join(each.dim_param or str(each.dim_value) for each in tensor.shape.dim)
    return f"{value.name}: {name} ({shape})"
