"""
Cells, drawn
============

Where the kernel is narrow beside the data, no affordable number of landmarks describes it.
``n_cells`` splits the space by a tree of k-means into cells, and solves the exact SVM of each.
Crowded places get more cells than empty ones.

The board below has 256 squares: one map of 256 landmarks cannot tell them apart, cells can.
Averaging several partitions (``n_partitions``) smooths the seams between cells.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

from asset_svm import AssetClassifier

rng = np.random.default_rng(0)


def board(n_rows):
    """A board of 16 x 16 squares, with more rows in one corner and five in a hundred labels wrong."""
    X = rng.beta(1, 1.6, size=(n_rows, 2))
    y = np.floor(16 * X).sum(axis=1).astype(int) % 2
    return X.astype(np.float32), np.where(rng.uniform(size=n_rows) < 0.05, 1 - y, y)


X, y = board(40_000)
X_test, y_test = board(20_000)
settings = dict(gamma=600, C=3, random_state=0)
models = {
    "one map, 256 landmarks": AssetClassifier(n_components=256, **settings),
    "40 cells": AssetClassifier(n_cells=40, **settings),
    "40 cells, mean of 4 partitions": AssetClassifier(n_cells=40, n_partitions=4, **settings),
}

# %%
# The pictures are of the decisions. In the last one are the cells of the first partition, as a row
# finds its own.

across, up = np.meshgrid(np.linspace(0, 1, 320), np.linspace(0, 1, 320))
plane = np.column_stack([across.ravel(), up.ravel()]).astype(np.float32)
figure, axes = plt.subplots(2, 2, figsize=(9, 9.4))
for ax, (name, model) in zip(axes.flat, models.items(), strict=False):
    start = perf_counter()
    model.fit(X, y)
    seconds, accuracy = perf_counter() - start, model.score(X_test, y_test)
    print(f"{name:32} {seconds:5.1f} s, accuracy {accuracy:.3f} (at most 0.95)")
    shade = model.decision_function(plane).reshape(across.shape)
    ax.imshow(shade, origin="lower", extent=(0, 1, 0, 1), cmap="RdBu", vmin=-1.5, vmax=1.5)
    ax.set(xticks=[], yticks=[], title=f"{name}: accuracy {accuracy:.3f}")

partition = models["40 cells"].cells_[0].partition
cells = partition.assign(plane).reshape(across.shape)
colours = rng.permutation(partition.n_cells)[cells]
last = axes[1, 1]
last.imshow(colours, origin="lower", extent=(0, 1, 0, 1), cmap="tab20", alpha=0.6)
last.scatter(*X[:3000].T, s=1, color="k", alpha=0.5)
last.set(
    xticks=[],
    yticks=[],
    xlim=(0, 1),
    ylim=(0, 1),
    title=f"the {partition.n_cells} cells, and some rows",
)
plt.show()
