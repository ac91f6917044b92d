"""
Landmarks, drawn
================

A Nystroem map compares each row with s landmarks, and knows nothing else of it. Where they lie
decides what the model can see. This draws the choices of ``landmarks=``: rows at random, centres of
clusters, pivots of the kernel matrix, leverage scores, and rows near the decision boundary of a
first quick fit.

Twenty landmarks are too few here, so that the differences show. With enough of them all choices do
the same.
"""

import matplotlib.pyplot as plt
import numpy as np

from asset_svm import AssetClassifier


def draw(n_rows, seed):
    """A dense spiral, and a thin one around it."""
    rng = np.random.default_rng(seed)
    y = (rng.uniform(size=n_rows) < 0.2).astype(int)
    angle = 2.6 * np.pi * np.sqrt(rng.uniform(0.03, 1, n_rows))
    X = angle[:, None] * np.column_stack([np.cos(angle + np.pi * y), np.sin(angle + np.pi * y)]) / 8
    return X + rng.normal(scale=0.05, size=X.shape), y


X, y = draw(4000, 0)
X_test, y_test = draw(8000, 1)
across, up = np.meshgrid(np.linspace(-1.2, 1.2, 140), np.linspace(-1.2, 1.2, 140))
plane = np.column_stack([across.ravel(), up.ravel()])

# %%
# Each picture has the rows, the landmarks, the boundary, and two numbers: the accuracy, and what
# the landmarks leave of the kernel matrix (``approximation_error_``, 0 is nothing).

figure, axes = plt.subplots(2, 3, figsize=(10.5, 7.4))
choices = ["uniform", "kmeans", "rpcholesky", "leverage", "margin"]
for ax, landmarks in zip(axes.flat, choices, strict=False):
    scores = []
    for seed in range(5):
        model = AssetClassifier(gamma=12, C=10, n_components=20, landmarks=landmarks, random_state=seed)
        scores.append(model.fit(X, y).score(X_test, y_test))
    ax.scatter(*X.T, c=y, cmap="coolwarm", s=2, alpha=0.25)
    ax.contour(across, up, model.decision_function(plane).reshape(across.shape), [0], colors="k")
    ax.scatter(*np.asarray(model.components_).T, s=38, color="gold", edgecolors="k", zorder=3)
    ax.set(xticks=[], yticks=[], aspect="equal")
    left = model.approximation_error_
    ax.set_title(f'"{landmarks}": accuracy {np.mean(scores):.3f}\nkernel left out {left:.2f}')

counts = [5, 10, 20, 40, 80]
last = axes.flat[-1]
for landmarks in choices:
    accuracies = []
    for count in counts:
        model = AssetClassifier(gamma=12, C=10, n_components=count, landmarks=landmarks, random_state=0)
        accuracies.append(model.fit(X, y).score(X_test, y_test))
    last.semilogx(counts, accuracies, "o-", label=landmarks, markersize=4)
last.set_xticks(counts, [str(count) for count in counts])
last.minorticks_off()
last.set(xlabel="landmarks", title="accuracy by their number")
last.legend(fontsize="small")
plt.show()
