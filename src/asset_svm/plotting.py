"""Displays: what a model has learnt, drawn by matplotlib (the extra ``plot``) as scikit-learn's are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from asset_svm.arrays import Array
from asset_svm.pages.figure import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure, SubFigure

BAR, EDGES = 0.26, 1.1
"""Inches of a bar with its gap, and of what is above and below all of them."""


class RelevanceDisplay:
    """The importance of the columns of a model with ``relevance=``, as bars.

    Make one by ``from_estimator``.

    Parameters
    ----------
    importances : array of shape (n,)
        ``feature_importances_``; their sum is 1.
    names : sequence of str
        The names of the n columns.
    n_columns : int, default=20
        The most columns that are shown, the most important ones.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
        The bars, the longest first.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from asset_svm import AssetRegressor, RelevanceDisplay
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> model = AssetRegressor(relevance="columns", random_state=0).fit(X, np.sin(2 * X[:, 1]))
    >>> display = RelevanceDisplay.from_estimator(model, names=["a", "b", "c"])
    >>> display.ax_.get_yticklabels()[0].get_text()
    'b'
    """

    bars_: BarContainer
    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, importances: Any, *, names: Sequence[str], n_columns: int = 20) -> None:
        self.importances = importances
        self.names = names
        self.n_columns = n_columns

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        ax: Axes | None = None,
        n_columns: int = 20,
        names: Sequence[str] | None = None,
    ) -> RelevanceDisplay:
        """Draw the importance of the columns of a fitted model.

        Parameters
        ----------
        estimator : AssetClassifier or AssetRegressor
            Fitted with ``relevance=``; of a pipeline its last step.
        ax : matplotlib Axes, optional
            Where to draw; by default axes of a new figure.
        n_columns : int, default=20
            The most columns that are shown, the most important ones.
        names : sequence of str, optional
            The names of all columns; by default those that the rows had, else "column 0" and so on.

        Returns
        -------
        display : RelevanceDisplay
        """
        kind = type(estimator).__name__
        if hasattr(estimator, "steps"):
            raise TypeError(
                f"A {kind} has no relevance of its own; give the model in it, for example pipeline[-1]."
            )
        check_is_fitted(estimator)
        if not hasattr(estimator, "relevance_history_"):
            raise ValueError(
                f"This {kind} has no learnt relevance; set relevance= to "
                '"columns", "directions" or "auto", and fit it again.'
            )
        shares = estimator.feature_importances_
        if names is None:
            known = getattr(estimator, "feature_names_in_", None)
            names = [f"column {j}" for j in range(len(shares))] if known is None else known.tolist()
        return cls(shares, names=names, n_columns=n_columns).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> RelevanceDisplay:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default axes of a new figure.

        Returns
        -------
        display : RelevanceDisplay
            Itself.
        """
        shares, names = self._checked()
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError(
                "RelevanceDisplay needs matplotlib, which is not installed; run: "
                'pip install "asset-svm[plot]"'
            ) from error
        order = np.argsort(-shares, kind="stable")[: self.n_columns]
        if ax is None:
            size = (6.4, BAR * len(order) + EDGES)
            _, ax = plt.subplots(figsize=size, layout="constrained")
        percent = 100.0 * shares[order]
        bars = ax.barh(np.arange(len(order)), percent)
        ax.bar_label(bars, [f"{value:.1f} %" for value in percent], padding=3)
        ax.set_yticks(np.arange(len(order)), [plain(names[j]) for j in order.tolist()])
        ax.set_ylim(len(order) - 0.5, -0.5)
        ax.set_xlim(0.0, 1.18 * (float(percent.max()) or 1.0))  # room for the label of the longest
        ax.set_xlabel("importance, %")
        ax.spines[["top", "right"]].set_visible(False)
        self.bars_, self.ax_, self.figure_ = bars, ax, ax.figure
        return self

    def _checked(self) -> tuple[Array, list[str]]:
        """The importances and names, as many of each."""
        shares, names = np.asarray(self.importances, dtype=np.float64), [str(n) for n in self.names]
        if shares.ndim != 1 or not len(shares) or len(names) != len(shares):
            raise ValueError(
                f"There are {len(names)} names, and importances of shape {shares.shape}; give a name "
                "for each column."
            )
        count = self.n_columns
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise ValueError(f"n_columns={count!r} must be an integer of at least 1.")
        return shares, names
