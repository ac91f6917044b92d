"""
Decision boundaries
===================

An SVM with a kernel draws curved boundaries. Here is the same estimator on three made sets, with three
settings: a wide kernel, a narrow one, and the exact SVM of every cell of the plane.

The shade is the decision function, the black line is where it is 0, and the dashed lines are the
margins, where it is 1 and -1. A narrow kernel can follow the data more closely than it should.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles, make_classification, make_moons

from asset_svm import AssetClassifier

SETS = {
    "moons": make_moons(2000, noise=0.25, random_state=0),
    "circles": make_circles(2000, noise=0.15, factor=0.5, random_state=0),
    "blobs": make_classification(
        2000, 2, n_informative=2, n_redundant=0, class_sep=1.0, flip_y=0.05, random_state=3
    ),
}
MODELS = {
    "wide kernel, gamma = 0.5": AssetClassifier(gamma=0.5, C=10, n_components=128, random_state=0),
    "narrow kernel, gamma = 20": AssetClassifier(gamma=20, C=10, n_components=512, random_state=0),
    "eight cells, gamma = 2": AssetClassifier(gamma=2, C=10, n_cells=8, random_state=0),
}

# %%
# Each model is fitted to two thirds of the rows, and scored on the others.

figure, axes = plt.subplots(3, 3, figsize=(9.5, 9), sharex="row", sharey="row")
for row, (name, (X, y)) in zip(axes, SETS.items(), strict=True):
    low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    across, up = np.meshgrid(np.linspace(low[0], high[0], 150), np.linspace(low[1], high[1], 150))
    plane = np.column_stack([across.ravel(), up.ravel()])
    for ax, (title, model) in zip(row, MODELS.items(), strict=True):
        model.fit(X[:1300], y[:1300])
        shade = model.decision_function(plane).reshape(across.shape)
        ax.pcolormesh(across, up, shade, cmap="RdBu", vmin=-2.5, vmax=2.5, rasterized=True)
        ax.contour(
            across, up, shade, [-1, 0, 1], colors="k", linestyles=["--", "-", "--"], linewidths=1
        )
        ax.scatter(*X[1300:1450].T, c=y[1300:1450], cmap="RdBu", s=9, edgecolors="k", linewidths=0.3)
        ax.set(xticks=[], yticks=[], title=title if ax in axes[0] else "")
        ax.set_xlabel(f"accuracy {model.score(X[1300:], y[1300:]):.3f}")
    row[0].set_ylabel(name)
plt.show()
