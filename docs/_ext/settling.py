"""What every program of the gallery begins with: the same figures, whatever ran before it."""

from __future__ import annotations

from typing import Any

STYLE = {
    "figure.dpi": 110,
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "axes.titlesize": "medium",
}


def settle(gallery_conf: dict[str, Any], name: str) -> None:
    """Forget what another program has set, of matplotlib."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    plt.close("all")
    mpl.rcdefaults()
    mpl.use("agg")
    mpl.rcParams.update(STYLE)
