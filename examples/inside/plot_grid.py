"""
A grid of C and gamma
=====================

All values of C, all folds and all classes train together on one map of the rows, so that a grid of
them costs little more than its gammas. Here 21 values of C and 7 of gamma, five folds, ten classes:
7350 models.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from asset_svm import AssetClassifierCV

X, y = load_digits(return_X_y=True)
gammas = np.geomspace(0.01, 10, 7)
start = perf_counter()
search = AssetClassifierCV(
    Cs=np.geomspace(0.01, 1000, 21), gammas=gammas, n_components=300, random_state=0
)
search.fit(X / 16, y)
print(f"{21 * 7 * 5 * 10} models in {perf_counter() - start:.1f} s")
print(search.best_params_, round(search.best_score_, 4))

# %%
# The map of mean scores over the folds; the star is the best. On the right are its neighbours of
# the same gamma, with the spread over the folds.

results = search.cv_results_
Cs = np.unique(results["param_C"].astype(float))
scores, spread = np.full((len(gammas), len(Cs)), np.nan), np.full((len(gammas), len(Cs)), np.nan)
for C, gamma, mean, deviation in zip(
    results["param_C"],
    results["param_gamma"],
    results["mean_test_score"],
    results["std_test_score"],
    strict=True,
):
    at = np.argmin(np.abs(gammas - gamma)), np.argmin(np.abs(Cs - C))
    scores[at], spread[at] = mean, deviation
figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4), width_ratios=[1.3, 1])
image = left.pcolormesh(Cs, gammas, scores, vmin=0.9, cmap="viridis", shading="nearest")
figure.colorbar(image, ax=left, label="accuracy over five folds")
best = search.best_params_
left.scatter(best["C"], best["gamma"], marker="*", s=220, color="w", edgecolors="k")
left.set(xscale="log", yscale="log", xlabel="C", ylabel="gamma", title="Mean scores")
row = np.argmin(np.abs(gammas - best["gamma"]))
right.fill_between(Cs, scores[row] - spread[row], scores[row] + spread[row], alpha=0.3)
right.semilogx(Cs, scores[row], "o-", markersize=4)
right.set(xlabel="C", ylabel="accuracy", title=f"gamma = {best['gamma']:.3g}, mean and spread")
plt.show()
