"""
Online learning, with drift
===========================

``partial_fit`` learns from batches in constant memory. Here the two moons turn while the rows come
in. A model that stopped learning is soon wrong; one that goes on learning follows, but ever more
slowly, since its steps become shorter with the rows that it has seen; one that is begun anew every
five batches keeps up.

Each batch is predicted before it is learnt from, so that the error is always one of rows that the
model has not seen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_moons

from asset_svm import AssetClassifier


def batch_at(time):
    """A thousand rows; from the 15th batch on the moons turn, by four degrees a batch."""
    X, y = make_moons(1000, noise=0.2, random_state=time)
    angle = np.radians(4 * max(0, time - 15))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return (X - [0.5, 0.25]) @ turn.T, y


# %%
# Three models see the same batches.

steady = AssetClassifier(gamma=1.0, n_components=150, lam=1e-4, random_state=0)
stopped, fresh = clone(steady), clone(steady)
snapshots, errors = {}, {"goes on learning": [], "stopped at batch 15": [], "begun anew every 5": []}
for time in range(46):
    X, y = batch_at(time)
    if time:
        for name, model in zip(errors, (steady, stopped, fresh), strict=True):
            errors[name].append(100 * np.mean(model.predict(X) != y))
    steady.partial_fit(X, y, classes=[0, 1])
    if time < 15:
        stopped.partial_fit(X, y, classes=[0, 1])
    if time % 5 == 0:
        fresh = clone(fresh)
    fresh.partial_fit(X, y, classes=[0, 1])
    if time in (10, 25, 45):
        across, up = np.meshgrid(np.linspace(-2.2, 2.2, 120), np.linspace(-2.2, 2.2, 120))
        plane = np.column_stack([across.ravel(), up.ravel()])
        snapshots[time] = (
            X,
            y,
            [m.decision_function(plane).reshape(across.shape) for m in (stopped, fresh)],
        )
print(f"{steady.t_} rows seen, {steady.components_.shape[0]} landmarks")

# %%
# Above, the rows of three batches, with the boundaries of the stopped model and of the one begun anew;
# below, the errors over time.

figure = plt.figure(figsize=(10, 7))
grid = figure.add_gridspec(2, 3, height_ratios=[1.2, 1])
for k, (time, (X, y, decisions)) in enumerate(snapshots.items()):
    ax = figure.add_subplot(grid[0, k])
    ax.scatter(*X.T, c=y, cmap="coolwarm", s=5, alpha=0.6)
    for shade, colour in zip(decisions, ("C1", "k"), strict=True):
        ax.contour(across, up, shade, [0], colors=colour, linewidths=2)
    ax.set(xticks=[], yticks=[], aspect="equal", title=f"batch {time}")
ax = figure.add_subplot(grid[1, :])
for (name, values), colour in zip(errors.items(), ("C0", "C1", "k"), strict=True):
    ax.plot(range(1, 46), values, color=colour, label=name)
ax.axvline(15, color="grey", linestyle=":")
ax.set(xlabel="batch", ylabel="error before learning, %")
ax.legend()
plt.show()
