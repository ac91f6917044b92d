"""
Beside gradient boosting
========================

Trees cut the columns one at a time; kernels see distances between rows. Where a target is smooth in
several columns at once, the kernel needs fewer rows; where it jumps at thresholds of single
columns, trees do. Two made sets show both.

LightGBM is drawn where it is installed; scikit-learn's ``HistGradientBoostingRegressor`` always.
All are trained with more and more rows, at fixed settings, and scored on the same test rows.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from asset_svm import AssetRegressor

try:
    from lightgbm import LGBMRegressor
except ImportError:
    LGBMRegressor = None


def smooth(X):
    """A wave along a sum of columns."""
    return np.sin(2.5 * (X[:, 0] + X[:, 1] - X[:, 2])) + X[:, 3] * X[:, 4]


def stepped(X):
    """Jumps at thresholds of single columns."""
    return 1.0 * (X[:, 0] > 0.2) + 1.5 * (X[:, 1] > -0.3) * (X[:, 2] > 0.1) - (X[:, 3] > 0.6)


METHODS = {
    "asset-svm": lambda: AssetRegressor(
        C=30, n_components=1024, target_transform="standard", random_state=0
    ),
    "asset-svm, relevance": lambda: AssetRegressor(
        C=30, n_components=1024, target_transform="standard", relevance="auto", random_state=0
    ),
    "HistGradientBoosting": lambda: HistGradientBoostingRegressor(max_iter=150, random_state=0),
}
if LGBMRegressor is not None:
    METHODS["LightGBM"] = lambda: LGBMRegressor(n_estimators=150, n_jobs=1, random_state=0, verbose=-1)

# %%
# Ten columns, of which some have no part in the target, and noise of 0.1.

sizes = [250, 1000, 4000]
rng = np.random.default_rng(0)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2))
for ax, function in zip(axes, (smooth, stepped), strict=True):
    X, X_test = rng.uniform(-1, 1, (max(sizes), 10)), rng.uniform(-1, 1, (5000, 10))
    y, y_test = (function(rows) + 0.1 * rng.normal(size=len(rows)) for rows in (X, X_test))
    for (name, make), marker in zip(METHODS.items(), "os^D", strict=False):
        start = perf_counter()
        errors = []
        for size in sizes:
            with threadpool_limits(1):  # threads are no help with so few rows
                model = make().fit(X[:size], y[:size])
            errors.append(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))
        print(f"{function.__name__:8} {name:22} RMSE {errors[-1]:.3f}  {perf_counter() - start:5.1f} s")
        ax.loglog(sizes, errors, marker=marker, label=name)
    ax.axhline(0.1, color="grey", linestyle=":", label="noise")
    ax.set(xlabel="training rows", ylabel="test RMSE", title=function.__doc__.rstrip("."))
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.set_yticks([0.1, 0.2, 0.4, 0.8], ["0.1", "0.2", "0.4", "0.8"])
    ax.minorticks_off()
axes[1].legend(loc="center right")
plt.show()
