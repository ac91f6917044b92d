"""
Prediction intervals
====================

``AssetRegressor(intervals=True)`` keeps some rows out of the fit and makes intervals of its errors
there. Where new rows are like those, the intervals hold them as often as was asked for, however
poor the model is. Here that is counted, over fifty fits.
"""

import matplotlib.pyplot as plt
import numpy as np

from asset_svm import AssetRegressor


def draw(n_rows, rng):
    """A curve with noise that grows along x."""
    x = rng.uniform(-3, 3, n_rows)
    return x[:, None], np.sin(2 * x) + (0.05 + 0.12 * (x + 3)) * rng.normal(size=n_rows)


def fitted(seed):
    """A model with intervals of a hundred rows kept out, and fresh rows."""
    rng = np.random.default_rng(seed)
    X, y = draw(500, rng)
    settings = dict(gamma=1.0, C=10, n_components=100, intervals=True, validation_fraction=0.2)
    return AssetRegressor(**settings, random_state=seed).fit(X, y), draw(2000, rng)


asked = (0.5, 0.8, 0.9, 0.95)
held = {coverage: [] for coverage in asked}
for seed in range(50):
    model, (X_new, y_new) = fitted(seed)
    for coverage in asked:
        low, high = model.predict_interval(X_new, coverage=coverage).T
        held[coverage].append(np.mean((low <= y_new) & (y_new <= high)))
for coverage, shares in held.items():
    print(f"asked {coverage:.2f}: held {np.mean(shares):.3f}, {min(shares):.3f} to {max(shares):.3f}")

# %%
# One of the models, and the shares of all fifty. A single fit may hold a little more or less, since
# its rows kept out are a hundred; their mean is what was asked for.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
line = np.linspace(-3, 3, 300)[:, None]
left.scatter(X_new[:800], y_new[:800], s=4, color="grey", alpha=0.6)
for coverage, alpha in ((0.95, 0.2), (0.5, 0.4)):
    low, high = model.predict_interval(line, coverage=coverage).T
    left.fill_between(line[:, 0], low, high, alpha=alpha, color="C0", label=f"{100 * coverage:.0f} %")
left.plot(line, model.predict(line), color="k")
left.set(xlabel="x", ylabel="y", title="Intervals that grow with the noise")
left.legend()
right.violinplot([held[c] for c in asked], positions=range(4), showmeans=True, widths=0.7)
right.scatter(range(4), asked, marker="_", s=900, color="C3", label="asked for")
right.set_xticks(range(4), [f"{100 * c:.0f} %" for c in asked])
right.set(xlabel="coverage asked for", ylabel="share of new rows held", title="Fifty fits")
right.legend(loc="lower right")
plt.show()
