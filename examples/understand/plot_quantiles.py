"""
Quantile bands
==============

``AssetQuantileRegressor`` learns all quantiles in one pass over one map, and they never cross. Here
the spread of y depends on x, and its distribution is not symmetric, so that no single width around
a mean would do.
"""

import matplotlib.pyplot as plt
import numpy as np

from asset_svm import AssetQuantileRegressor

rng = np.random.default_rng(0)


def draw(n_rows):
    """A wave with gamma-distributed noise whose size changes along x."""
    x = rng.uniform(0, 10, n_rows)
    noise = rng.gamma(1.5, 0.15 + 0.5 * np.sin(x / 2) ** 2)
    return x[:, None], np.sin(x) + noise


X, y = draw(6000)
X_test, y_test = draw(20_000)
quantiles = (0.05, 0.25, 0.5, 0.75, 0.95)
model = AssetQuantileRegressor(
    quantiles=quantiles, gamma=0.5, C=20, n_components=128, random_state=0
).fit(X, y)
shares = model.coverage(X_test, y_test)
print("share of the test rows below each:", dict(zip(quantiles, shares.round(3).tolist(), strict=True)))

# %%
# The bands, and how many test rows really lie below each quantile, in twenty parts of x.

line = np.linspace(0, 10, 400)[:, None]
low, quarter, middle, three, high = model.predict(line).T
figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.4), width_ratios=[1.7, 1])
left.scatter(X[:1500], y[:1500], s=3, color="grey", alpha=0.5)
left.fill_between(line[:, 0], low, high, alpha=0.25, label="5 % to 95 %")
left.fill_between(line[:, 0], quarter, three, alpha=0.45, color="C0", label="25 % to 75 %")
left.plot(line, middle, color="k", label="median")
left.set(xlabel="x", ylabel="y", title="Five quantiles, one fit", ylim=(-1.5, 5))
left.legend()
part = (X_test[:, 0] / 0.5).astype(int)
below = y_test[:, None] <= model.predict(X_test)
for k, quantile in enumerate(quantiles):
    share = [below[part == p, k].mean() for p in range(20)]
    right.plot(np.arange(20) * 0.5 + 0.25, share, "o-", markersize=3, color=f"C{k}")
    right.axhline(quantile, color=f"C{k}", linestyle=":")
right.set(xlabel="x", ylabel="share of test rows below", title="Where the bands hold", ylim=(0, 1))
plt.show()
