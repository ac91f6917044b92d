"""
One million rows
================

``sklearn.svm.SVC`` takes time that grows with the square of the rows, or faster. A model here has a
fixed number of landmarks, so that its time grows with the rows, and prediction costs the same after
a million rows as after a thousand.

Two spirals with much noise: the more rows there are, the more of the spiral can be told from the noise.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm

from asset_svm import AssetClassifier


def spirals(n_rows, seed):
    """Rows on two spirals, with noise that grows outwards."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    angle = 3.2 * np.pi * np.sqrt(rng.uniform(0.02, 1, n_rows))
    turn = angle + np.pi * y
    X = angle[:, None] * np.column_stack([np.cos(turn), np.sin(turn)]) / 10
    X += rng.normal(scale=0.11, size=X.shape)
    return X.astype(np.float32), y


X, y = spirals(1_000_000, seed=0)
X_test, y_test = spirals(50_000, seed=1)

# %%
# The same settings for 1000, 10 000, 100 000 and 1 000 000 rows. The first fit of a process is not
# timed: it loads what was compiled.

settings = dict(gamma=10.0, C=10.0, n_components=256, max_iter=2, random_state=0)
AssetClassifier(**settings).fit(X[:2000], y[:2000])

sizes, seconds, errors = [1_000, 10_000, 100_000, 1_000_000], [], []
for size in sizes:
    start = perf_counter()
    model = AssetClassifier(**settings).fit(X[:size], y[:size])
    seconds.append(perf_counter() - start)
    errors.append(100 * (1 - model.score(X_test, y_test)))
    print(f"{size:9,} rows  {seconds[-1]:6.2f} s  error {errors[-1]:5.2f} %")

# %%
# On the left are all million rows as a density, and the boundary; on the right, time and error by
# the number of rows.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), width_ratios=[1, 1.1])
edges = np.linspace(-1.35, 1.35, 300)
density = np.histogram2d(*X.T, bins=[edges, edges])[0].T
left.pcolormesh(edges, edges, density + 0.5, norm=LogNorm(), cmap="Greys", rasterized=True)
across, up = np.meshgrid(edges[::2], edges[::2])
decisions = model.decision_function(np.column_stack([across.ravel(), up.ravel()]).astype(np.float32))
left.contourf(across, up, decisions.reshape(across.shape), [-9, 0, 9], colors=["C0", "C3"], alpha=0.25)
left.contour(across, up, decisions.reshape(across.shape), [0], colors="k", linewidths=1.5)
left.set(xticks=[], yticks=[], aspect="equal", title="1 000 000 rows and what was learnt")

right.loglog(sizes, seconds, "o-", label="seconds of fit")
right.set(xlabel="rows", ylabel="seconds", title="Time grows with the rows, the error falls")
error_axis = right.twinx()
error_axis.semilogx(sizes, errors, "s--", color="C3", label="test error")
error_axis.set_ylabel("test error, %")
error_axis.spines["right"].set_visible(True)
right.legend(handles=[*right.lines, *error_axis.lines], loc="upper center")
plt.show()
