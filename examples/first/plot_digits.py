"""
Handwritten digits
==================

Ten classes are ten models on one map of the rows, trained together. This draws the digits that are
misread, and for each of them the landmarks that say most for the class that was chosen.

A decision is a sum over landmarks, ``k(x, components_) @ dual_coef_.T + intercept_``, so that its
largest terms tell which examples a digit was compared with.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split

from asset_svm import AssetClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.4, random_state=0)

model = AssetClassifier(gamma=0.5, C=10, n_components=600, random_state=0).fit(X_train, y_train)
predicted = model.predict(X_test)
wrong = np.flatnonzero(predicted != y_test)
print(f"{len(wrong)} of {len(y_test)} digits misread")

# %%
# Which digits are taken for which.

figure, ax = plt.subplots(figsize=(5.5, 5))
ConfusionMatrixDisplay.from_predictions(y_test, predicted, ax=ax, cmap="Blues", colorbar=False)
ax.set_title("Handwritten digits, test rows")
plt.show()

# %%
# The misread digits, and the three landmarks that spoke most for what they were taken for.

shown = wrong[:6]
terms = rbf_kernel(X_test[shown], model.components_, gamma=0.5)
figure, axes = plt.subplots(len(shown), 4, figsize=(5.5, 1.35 * len(shown)))
for row, (i, kernel) in zip(axes, zip(shown, terms, strict=True), strict=True):
    chosen = int(predicted[i])
    loudest = np.argsort(-kernel * model.dual_coef_[chosen])[:3]
    images = [X_test[i], *model.components_[loudest]]
    names = [f"a {y_test[i]}, read as {chosen}"]
    names += [f"a {y_train[model.component_indices_[j]]}" for j in loudest]
    for ax, image, name in zip(row, images, names, strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r")
        ax.set_title(name, fontsize="small")
        ax.axis("off")
plt.show()
