"""
The paper's four algorithms
===========================

ASSET and ASSET* with Nystroem (M) or Fourier features (F), of Lee and Wright (2012), beside the
steps that this library takes by default. The data are ADULT, which is embedded, with the paper's
lambda and width; the paper's table has 15.1 % for its two Nystroem versions.

``certify`` solves the same problem to a known gap, so that what is drawn is the true distance from
the optimum.
"""

import matplotlib.pyplot as plt
import numpy as np

from asset_svm import AssetClassifier, load_adult

X, y, n_train = load_adult()
X_train, y_train, X_test, y_test = X[:n_train], y[:n_train], X[n_train:], y[n_train:]
problem = dict(gamma=0.001, lam=3.07e-8, n_components=256, fit_intercept=False, random_state=0)
paper = dict(step_scale=1.0, sampling="uniform")
RUNS = {
    "ASSET_M": dict(step="robust", **paper),
    "ASSET*_M": dict(step="strong", sampling="uniform"),
    "ASSET_F": dict(step="robust", approximation="fourier", **paper),
    "ASSET*_F": dict(step="strong", approximation="fourier", sampling="uniform"),
    "default step, M": dict(step="metric"),
}
epochs = [1, 2, 4, 8, 16]

# %%
# Each point is a run by itself of so many epochs: steps depend on how many there will be. The
# optimum of each map is a lower bound, from ``certify`` on the best of the runs.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4))
optimum = {}
for (name, options), marker in zip(RUNS.items(), "o^sDv", strict=True):
    objectives, errors = [], []
    for count in epochs:
        model = AssetClassifier(**problem, **options, max_iter=count).fit(X_train, y_train)
        objectives.append(model.objective_)
        errors.append(100 * (1 - model.score(X_test, y_test)))
    kind = options.get("approximation", "nystroem")
    if kind not in optimum:
        best = AssetClassifier(**problem, approximation=kind, step="metric", max_iter=25).fit(
            X_train, y_train
        )
        objective, gap = best.certify(X_train, y_train)
        optimum[kind] = objective - gap
    style = "--" if "fourier" in kind else "-"
    excess = 100 * (np.array(objectives) / optimum[kind] - 1)
    left.loglog(epochs, excess, style, marker=marker, label=name)
    right.semilogx(epochs, errors, style, marker=marker, label=name)
    print(f"{name:16} {excess[-1]:7.2f} % above the optimum, error {errors[-1]:.2f} %")
left.set(xlabel="epochs", ylabel="% above the optimum", title="Objective")
right.axhline(15.1, color="grey", linestyle=":", label="the paper, s = 512")
right.set(xlabel="epochs", ylabel="%", title="Test error on ADULT")
right.legend(fontsize="small")
for ax in (left, right):
    ax.set_xticks(epochs, [str(count) for count in epochs])
    ax.minorticks_off()
plt.show()
