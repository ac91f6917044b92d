"""Searches over the rows of files, which a checkpoint may keep."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from asset_svm.data.scan import Scanned
from asset_svm.data.source import RowSource
from asset_svm.search.base import SearchEstimator
from asset_svm.search.inside import journal_of, scanned_for, search_watched
from asset_svm.search.progress import Watch
from asset_svm.search.racing import one_seed
from asset_svm.storage.checkpoint import Checkpoint

Search = TypeVar("Search", bound=SearchEstimator)


def search_rows(
    search: Search,
    source: RowSource | Scanned,
    *,
    checkpoint: Checkpoint | None = None,
    watch: Watch | None = None,
    temp_dir: str | Path | None = None,
) -> Search:
    """Search over the rows of a source, and train the best model on all of them, as ``fit`` does.

    Parameters
    ----------
    search : AssetClassifierCV, AssetRegressorCV or AssetQuantileRegressorCV
    source : RowSource or Scanned
    checkpoint : Checkpoint, optional
        Where what is found is saved, so that a search that was cut goes on. It stays there after the
        search: ``checkpoint.remove()`` removes it, once the model is safe.
    watch : callable, optional
        Called with the progress; returning True ends the search, and the best so far is trained.
    temp_dir : path, optional
        Where rows go that are sorted into cells and do not fit in memory; by default the system's
        folder for temporary files.

    Returns
    -------
    search
    """
    if getattr(search, "intervals", False):
        raise ValueError(
            "intervals=True trains on folds of rows in memory, and these come from a file; pass arrays "
            "to fit, or train AssetRegressor(intervals=True) with what is found."
        )
    journal = None
    if checkpoint is not None:
        reread = source.source if isinstance(source, Scanned) else source
        if not reread.rereadable or not reread.files:
            raise ValueError(f"{reread.name} cannot be read again, and so takes no checkpoint.")
        resumed = checkpoint.read_run()
        if resumed is not None:
            resumed.check_kind(search=True)
        seed = one_seed(search.random_state) if resumed is None else resumed.seed
        if not isinstance(source, Scanned):
            source = scanned_for(search, source, seed, fingerprint=resumed is None)
        journal = journal_of(search, checkpoint, source, resumed, seed)
    search_watched(search, source, None, watch=watch, temp_dir=temp_dir, journal=journal)
    return search
