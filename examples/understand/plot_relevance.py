"""
Which columns matter
====================

Three of twelve columns matter, and a kernel of distances treats all alike. ``relevance="auto"``
learns a linear map of the columns before the fit, from the gradients of quick fits, and lets
held-out rows judge every round of it.
"""

import matplotlib.pyplot as plt
import numpy as np

from asset_svm import AssetRegressor, RelevanceDisplay

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(3000, 12))
y = np.sin(4 * X[:, 2]) + 2 * X[:, 5] * X[:, 9] + 0.1 * rng.normal(size=3000)

plain = AssetRegressor(C=10, random_state=0).fit(X[:2000], y[:2000])
model = AssetRegressor(C=10, relevance="auto", random_state=0).fit(X[:2000], y[:2000])
for name, each in (("rows as they are", plain), ("relevance", model)):
    rmse = np.sqrt(np.mean((each.predict(X[2000:]) - y[2000:]) ** 2))
    print(f"{name:16}  test RMSE {rmse:.3f}")
for j in np.argsort(-model.feature_importances_)[:4]:
    print(f"column {j:2}  {100 * model.feature_importances_[j]:5.1f} %")

# %%
# On the left are the importances, on the right the error on held-out rows by round, for both shapes
# of the map that were tried: a weight for each column, and any linear map.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
RelevanceDisplay.from_estimator(model, ax=left)
left.set_title("Importance of the columns")
history = model.relevance_history_
first = min((r for r in history if r["round"] == 0), key=lambda r: r["validation_loss"])
for shape, style in (("columns", "o-"), ("directions", "s--")):
    best = {0: first}  # of several bandwidths of a round
    for r in history:
        if r["shape"] == shape and r["round"] > 0:
            best[r["round"]] = min(best.get(r["round"], r), r, key=lambda r: r["validation_loss"])
    rounds = list(best.values())
    errors = [np.sqrt(1 - r["validation_score"]) for r in rounds]  # the score is R2
    right.plot([r["round"] for r in rounds], errors, style, label=shape)
right.axhline(0.1 / y.std(), color="grey", linestyle=":", label="noise")
right.set(xlabel="round", ylabel="held-out RMSE / spread of y", title="Error by round", ylim=(0, None))
right.legend(frameon=False)
plt.show()
