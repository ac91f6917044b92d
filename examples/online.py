"""Learn from a stream, in constant memory, and watch the error on what comes next.

python examples/online.py
"""

import numpy as np
from sklearn.datasets import make_moons

from asset_svm import AssetClassifier

model = AssetClassifier(gamma=1.0, n_components=200, lam=1e-4, random_state=0)
for batch in range(20):
    X, y = make_moons(1000, noise=0.25, random_state=batch)
    if batch:
        print(f"batch {batch:2}: error {100 * np.mean(model.predict(X) != y):.1f} % before learning")
    model.partial_fit(X, y, classes=[0, 1])
print(f"{model.t_} rows seen, {model.components_.shape[0]} landmarks")
