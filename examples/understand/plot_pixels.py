"""
Learnt relevance on a picture
=============================

Each pixel of a digit is a column. Two questions about the same pictures need other pixels: is it a
3 or an 8, and is it a 4 or a 9? ``relevance="columns"`` learns a weight for each pixel, and the
weights can be looked at as a picture.

Thirty-two columns of noise are put beside the sixty-four pixels. They are found out.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from asset_svm import AssetClassifier

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(1).permutation(len(X))
X, y = X[order], y[order]
noise = np.random.default_rng(0).normal(size=(len(X), 32))
rows = np.hstack([X / 16, noise])

figure, axes = plt.subplots(2, 4, figsize=(10.5, 5.4), width_ratios=[1, 1, 1, 1.6])
for line, (one, other) in zip(axes, ((3, 8), (4, 9)), strict=True):
    pair = np.flatnonzero((y == one) | (y == other))
    train, test = pair[: 2 * len(pair) // 3], pair[2 * len(pair) // 3 :]
    plain = AssetClassifier(C=10, random_state=0).fit(rows[train], y[train])
    model = AssetClassifier(C=10, relevance="columns", random_state=0).fit(rows[train], y[train])
    importances = model.feature_importances_
    print(
        f"{one} or {other}: accuracy {plain.score(rows[test], y[test]):.3f} as they are, "
        f"{model.score(rows[test], y[test]):.3f} with relevance; "
        f"the noise has {100 * importances[64:].sum():.1f} % of the importance"
    )
    for ax, digit in zip(line[:2], (one, other), strict=True):
        ax.imshow(X[y == digit].mean(axis=0).reshape(8, 8), cmap="gray_r")
        ax.set_title(f"the mean {digit}")
    line[2].imshow(importances[:64].reshape(8, 8), cmap="viridis")
    line[2].set_title("importance of pixels")
    for ax in line[:3]:
        ax.axis("off")
    line[3].bar(range(96), importances, width=1)
    line[3].axvspan(63.5, 95.5, color="C3", alpha=0.15)
    line[3].text(80, importances.max() / 2, "columns\nof noise", ha="center", color="C3")
    line[3].set(title="all columns", xlabel="column", ylabel="importance")
plt.show()
