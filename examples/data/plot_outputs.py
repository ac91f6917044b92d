"""
Several outputs at once
=======================

``y`` may have several columns: the map of the rows is drawn and evaluated once, and all outputs
learn on it together. Here an arm with two joints is to say where its hand is, as two numbers; and
label indicators, where a row may have any number of labels, are columns of 0 and 1.
"""

import matplotlib.pyplot as plt
import numpy as np

from asset_svm import AssetClassifier, AssetRegressor

rng = np.random.default_rng(0)
angles = rng.uniform([0, 0.2], [np.pi, 2.6], size=(4000, 2))


def hand(angles):
    """Where the hand of an arm of lengths 1 and 0.8 is."""
    first, second = angles.T
    elbow = np.column_stack([np.cos(first), np.sin(first)])
    return elbow + 0.8 * np.column_stack([np.cos(first + second), np.sin(first + second)])


places = hand(angles) + rng.normal(scale=0.02, size=(4000, 2))
arm = AssetRegressor(gamma=1.0, C=100, epsilon=0.01, n_components=256, random_state=0)
arm.fit(angles[:3000], places[:3000])
print("mean R2 of both outputs:", round(arm.score(angles[3000:], places[3000:]), 4))

# %%
# Labels: is the hand up, is it far out, is it to the left?

labels = np.column_stack([places[:, 1] > 0.8, np.hypot(*places.T) > 1.4, places[:, 0] < 0]).astype(int)
tagger = AssetClassifier(gamma=1.0, C=100, n_components=256, random_state=0)
tagger.fit(angles[:3000], labels[:3000])
print("rows with every label right:", round(tagger.score(angles[3000:], labels[3000:]), 4))

# %%
# On the left, hands of test rows and where the model puts them; on the right, the three labels over
# the angles.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.8))
true, told = hand(angles[3000:3150]), arm.predict(angles[3000:3150])
left.scatter(*true.T, s=22, facecolors="none", edgecolors="k", label="hand")
left.scatter(*told.T, s=6, color="C3", label="prediction")
left.set(aspect="equal", title="Two outputs: where is the hand?")
left.legend(loc="lower right")

across, up = np.meshgrid(np.linspace(0, np.pi, 150), np.linspace(0.2, 2.6, 150))
decisions = tagger.decision_function(np.column_stack([across.ravel(), up.ravel()]))
for k, (name, colour) in enumerate({"up": "C0", "far out": "C2", "left": "C3"}.items()):
    shade = decisions[:, k].reshape(across.shape)
    right.contourf(across, up, shade, [0, shade.max()], colors=[colour], alpha=0.25)
    right.contour(across, up, shade, [0], colors=[colour])
    right.plot([], [], color=colour, linewidth=6, alpha=0.4, label=name)
right.set(
    xlabel="angle of the shoulder", ylabel="angle of the elbow", title="Three labels: where each holds"
)
right.legend(loc="upper right", framealpha=0.8, frameon=True)
plt.show()
