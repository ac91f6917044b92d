"""Files of 0.1.0: the part of their header that predicts, as records of today.

They name classes of that version and hold the attributes of an estimator (``persistence.decoding``):
{"$class": name, "fields": ...}, {"$tensor": name}, {"$ref": id} for what was met before, and so on.
Models of one map are served; others are saved anew by ``asset_svm.save(asset_svm.load(path), path)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

KINDS = {"AssetClassifier": "classifier", "AssetRegressor": "regressor"}
AGAIN = "of 0.1.0, which is served after asset_svm.save(asset_svm.load(path), path) has written it anew"


def upgraded(header: Any) -> dict[str, Any]:
    """The header of the same model in the format of today, for prediction."""
    known = dict(_met(header))

    def value(found: Any) -> Any:
        """Of an object of those files that of today."""
        if isinstance(found, list):
            return [value(each) for each in found]
        if not isinstance(found, dict):
            return found
        if "$ref" in found:
            return value(known[found["$ref"]])
        if "$tensor" in found:
            order = {"order": "F"} if found.get("F") else {}
            return {"array": found["$tensor"], **order}
        if "$strings" in found:
            return {"texts": found["$strings"], "type": found["dtype"], "shape": found["shape"]}
        if "$csr" in found:
            names = ("data", "indices", "indptr")
            parts = dict(zip(names, map(value, found["$csr"]), strict=True))
            return {"csr": parts, "shape": found["shape"], "kind": "matrix"}
        if "$tuple" in found:
            return value(found["$tuple"])
        if "$float" in found:
            return found["$float"]
        if "$class" in found:
            fields = {name: value(each) for name, each in found["fields"].items()}
            return {"class": found["$class"], **fields}
        return {name: value(each) for name, each in found.items()}

    model = _model(header, value)
    if header["scaling"] is not None:
        steps = [{"step": _scaler(header["scaling"], value)}, {"step": model}]
        model = {"kind": "Pipeline", "steps": steps}
    return {"model": model}


def _met(found: Any) -> Iterator[tuple[int, Any]]:
    """Every object with the number by which others refer to it."""
    if isinstance(found, list):
        for each in found:
            yield from _met(each)
    elif isinstance(found, dict):
        if "id" in found and any(key.startswith("$") for key in found):
            yield found["id"], found
        for each in found.values():
            yield from _met(each)


def _model(saved: dict[str, Any], value: Any) -> dict[str, Any]:
    fitted, name = saved["fitted"], saved["model"]
    if name == "CalibratedClassifier":
        # The numbers of objects begin anew inside: what it holds is upgraded by itself.
        inner = saved["params"]["estimator"]["$model"]
        return {
            "kind": "calibrated",
            "estimator": upgraded({**inner, "scaling": None})["model"],
            "slope": value(fitted["slope_"]),
            "offset": value(fitted["offset_"]),
        }
    if name not in KINDS:
        raise ValueError(f"{name!r} is not known")
    decision = value(fitted["_decision"])
    if decision["class"] != "Decision":
        raise ValueError(f"it is a model of cells {AGAIN}")
    names = fitted.get("feature_names_in_")
    return {
        "kind": KINDS[name],
        "n_columns": fitted["n_features_in_"],
        "column_names": None if names is None else value(names)["texts"],
        "task": {"kind": "regression"}
        if name == "AssetRegressor"
        else {"kind": "classification", "classes": value(fitted["classes_"])},
        "model": {
            "family": "one map",
            "source": _source(decision["source"]),
            "weights": decision["weights"],
            "intercept": decision["intercept"],
        },
    }


def _source(source: dict[str, Any]) -> dict[str, Any]:
    kind = source["class"]
    if kind in ("NystroemFeatures", "KernelBasis"):
        return {"kind": "landmarks", "kernel": source["kernel"], "landmarks": source["components"]}
    if kind == "FourierFeatures":
        return {"kind": "fourier", **source}
    return {"kind": "hadamard", **source, "columns": source["n_columns"]}


def _scaler(scaling: dict[str, Any], value: Any) -> dict[str, Any]:
    fitted = {name.rstrip("_"): value(each) for name, each in scaling["fitted"].items()}
    count, names = scaling["fitted"]["n_features_in_"], fitted.get("feature_names_in")
    return {
        "kind": scaling["class"],
        "parameters": {name: value(each) for name, each in scaling["params"].items()},
        "n_columns": count,
        "column_names": None if names is None else names["texts"],
        **fitted,
    }
