"""Rows from files, as Dask collections."""

from __future__ import annotations

from typing import Any

import dask.dataframe as dd


def read_parquet(pattern: str, target: str, weight: str | None = None) -> tuple[Any, Any, Any]:
    """X, y and weights (or None) of Parquet files, as Dask collections of a partition a file or more.

    Parameters
    ----------
    pattern : str
        A path, or several by "*".
    target, weight : str
        The columns of the targets and of the weights; all others are X.
    """
    frame = dd.read_parquet(pattern)
    for role, name in (("target", target), ("weight", weight)):
        if name is not None and name not in frame.columns:
            raise ValueError(
                f'{role}="{name}" is not among the columns of {pattern}; choose one of '
                f"{', '.join(map(str, frame.columns))}."
            )
    columns = [name for name in frame.columns if name not in (target, weight)]
    return frame[columns], frame[target], None if weight is None else frame[weight]
