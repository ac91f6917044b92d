"""
Dask on one machine
===================

``asset_svm.dask`` trains where the rows lie: each worker steps through its own rows, and the models
are averaged. Where rows are shuffled that costs little; where each worker has rows of another kind
it does, and ten rounds of averaging an epoch make up for some of it.

The cluster of this program is two workers of this process, which show what happens and not how fast
it can be.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client
from sklearn.datasets import make_moons

from asset_svm import AssetClassifier
from asset_svm.dask import DaskAssetClassifier

X, y = make_moons(40_000, noise=0.3, random_state=0)
X_test, y_test = make_moons(20_000, noise=0.3, random_state=1)
settings = dict(gamma=1.0, C=10, n_components=128, max_iter=4, random_state=0)
one = AssetClassifier(**settings).fit(X, y)

orders = {"rows as they come": np.arange(len(X)), "sorted by the first column": np.argsort(X[:, 0])}
found = {}
with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
    for name, order in orders.items():
        rows = da.from_array(X[order], chunks=(10_000, 2))
        targets = da.from_array(y[order], chunks=10_000)
        for rounds in (1, 10):
            model = DaskAssetClassifier(client=client, rounds_per_epoch=rounds, **settings).fit(
                rows, targets
            )
            found[name, rounds] = model.to_local()

# %%
# ``to_local()`` is the plain estimator, which needs no cluster any more. What is drawn are the
# boundaries: of one machine, and of the cluster with one or ten rounds an epoch.

print(f"one machine: objective {one.objective_:.5f}, accuracy {one.score(X_test, y_test):.4f}")
across, up = np.meshgrid(np.linspace(-1.8, 2.8, 200), np.linspace(-1.3, 1.8, 200))
plane = np.column_stack([across.ravel(), up.ravel()])
figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True)
for ax, (name, order) in zip(axes, orders.items(), strict=True):
    part = np.argsort(order)[::10] // 10_000  # the partition of every tenth row
    ax.scatter(*X[::10].T, c=part, cmap="Pastel1", s=4)
    lines = {"one machine": (one, "k", "-")}
    lines |= {f"{rounds} rounds": (found[name, rounds], f"C{rounds % 4}", "--") for rounds in (1, 10)}
    for label, (model, colour, style) in lines.items():
        shade = model.decision_function(plane).reshape(across.shape)
        ax.contour(across, up, shade, [0], colors=colour, linestyles=style, linewidths=2)
        ax.plot([], [], color=colour, linestyle=style, label=label.replace("1 rounds", "1 round"))
        if model is not one:
            excess = 100 * (model.objective_ / one.objective_ - 1)
            score = model.score(X_test, y_test)
            print(f"{name}, {label}: {excess:+.2f} % objective, accuracy {score:.4f}")
    ax.set(title=f"{name}: colours are partitions", xticks=[], yticks=[])
axes[0].legend()
plt.show()
