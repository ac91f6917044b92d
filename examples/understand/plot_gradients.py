"""
Explanation of one prediction
=============================

``gradients(X)`` has the slope of every decision by every column. For one row that says which way it
would have to go, and how far, for another decision.

The rows are tumours, of scikit-learn's breast cancer set. One of them is close to the boundary; its
slopes name the measurements that would turn the decision.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from asset_svm import AssetClassifier

data = load_breast_cancer()
X_train, X_test, y_train, y_test = train_test_split(data.data, data.target, random_state=0)
scaler = StandardScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
model = AssetClassifier(gamma=0.02, C=3, random_state=0).fit(X_train, y_train)
print(f"test accuracy {model.score(X_test, y_test):.3f}")

decisions = model.decision_function(X_test)
row = int(np.argmin(np.abs(decisions + 0.2)))
slopes = model.gradients(X_test[row : row + 1])[0]
print(f"decision {decisions[row]:.3f}: {data.target_names[int(decisions[row] > 0)]}")

# %%
# The slopes, and what happens when the row is moved along them, or along as many random directions:
# the decision changes fastest along the gradient.

names, best = data.feature_names, np.argsort(-np.abs(slopes))[:10]
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4))
colours = np.where(slopes[best] > 0, "C0", "C3")
left.barh(range(10), slopes[best], color=colours)
left.set_yticks(range(10), [names[j] for j in best])
left.invert_yaxis()
left.axvline(0, color="k", linewidth=0.8)
left.set(
    title="Slopes of this decision, a standard deviation each", xlabel="to malignant     to benign"
)

lengths = np.linspace(0, 1, 40)
rng = np.random.default_rng(0)
for k in range(40):
    way = rng.normal(size=30)
    path = X_test[row] + lengths[:, None] * way / np.linalg.norm(way)
    right.plot(
        lengths,
        model.decision_function(path),
        color="grey",
        alpha=0.35,
        label="" if k else "random ways",
    )
path = X_test[row] + lengths[:, None] * slopes / np.linalg.norm(slopes)
right.plot(lengths, model.decision_function(path), color="C2", linewidth=3, label="along the gradient")
right.plot(lengths, decisions[row] + lengths * np.linalg.norm(slopes), "k:", label="its tangent")
right.axhline(0, color="k", linewidth=0.8)
right.set(
    xlabel="way, in standard deviations",
    ylabel="decision",
    title="What would turn it",
    ylim=(None, 0.25),
)
right.legend(loc="lower left")
plt.show()
