"""
Outliers
========

``AssetOutlierDetector`` is the one-class SVM: it learns where rows are, and tells which lie
outside. ``nu`` is the share of the training rows that does. Its time grows with the rows as a
classifier's does, so that hundreds of thousands are no matter.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

from asset_svm import AssetOutlierDetector

rng = np.random.default_rng(0)


def readings(n_rows, n_outliers):
    """A machine that idles, works, or goes from one to the other; and readings that belong to none."""
    state = rng.choice(3, n_rows, p=[0.45, 0.45, 0.1])
    speed = np.select([state == 0, state == 1], [0.1, 0.8], rng.uniform(0.1, 0.8, n_rows))
    heat = 0.2 + 0.75 * speed**2 + rng.normal(scale=0.025, size=n_rows)
    usual = np.column_stack([speed + rng.normal(scale=0.03, size=n_rows), heat])
    return np.vstack([usual, rng.uniform([-0.1, 0], [1, 1], size=(n_outliers, 2))]).astype(np.float32)


X = readings(200_000, 2_000)
X_test = readings(20_000, 1_000)
outlier = np.arange(len(X_test)) >= 20_000

start = perf_counter()
model = AssetOutlierDetector(gamma=40, nu=0.02, n_components=200, random_state=0).fit(X)
print(f"{len(X):,} rows in {perf_counter() - start:.1f} s")
print(f"share outside: {np.mean(model.predict(X) < 0):.4f} of the training rows, nu is 0.02")
print(f"AUC of the test rows: {roc_auc_score(outlier, -model.decision_function(X_test)):.3f}")

# %%
# The shade is the score, the line the threshold.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), width_ratios=[1.2, 1])
across, up = np.meshgrid(np.linspace(-0.1, 1, 200), np.linspace(0, 1, 200))
plane = np.column_stack([across.ravel(), up.ravel()]).astype(np.float32)
scores = model.decision_function(plane).reshape(across.shape)
image = left.pcolormesh(across, up, scores, cmap="Blues_r", rasterized=True)
left.contour(across, up, scores, [0], colors="k")
inside = model.predict(X_test) > 0
some = np.r_[0:1500, 20_000:20_400]
left.scatter(*X_test[some][inside[some]].T, s=4, color="C0", label="inside")
left.scatter(*X_test[some][~inside[some]].T, s=8, color="C3", label="outside")
left.set(xlabel="speed", ylabel="temperature", title="Where readings are", xlim=(-0.1, 1), ylim=(0, 1))
left.legend(loc="upper left", frameon=True)
right.hist(model.decision_function(X_test[~outlier]), 80, alpha=0.7, label="readings", density=True)
right.hist(
    model.decision_function(X_test[outlier]), 80, alpha=0.7, color="C3", label="put in", density=True
)
right.axvline(0, color="k")
right.set(xlabel="score less the threshold", yticks=[], title="Scores of test rows")
right.legend()
plt.show()
