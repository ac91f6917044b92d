"""
One NVIDIA card
===============

``device="cuda"`` does the same work on a card: parameters, attributes and model files are those of
the host. Where there is no card, or no PyTorch, the error says which of the two is missing;
``device="auto"`` takes the host then.

This program trains on a card where it finds one. Elsewhere it shows the sentence, trains on the
host, and draws what can be known without a card: how many operations a fit takes by the number of
landmarks, and from where on ``"auto"`` would ask for one.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from asset_svm import AssetClassifier

X, y = make_classification(30_000, 40, n_informative=10, random_state=0)
X = X.astype(np.float32)
settings = dict(gamma=0.01, C=10, max_iter=2, random_state=0)

devices = ["cpu"]
try:
    AssetClassifier(device="cuda", n_components=64, **settings).fit(X[:2000], y[:2000])
    devices.append("cuda")
except (ImportError, RuntimeError, ValueError) as error:
    print("no card:", error)

# %%
# The fits, on whatever there is. One before them is not timed: it loads what was compiled.

counts = [128, 256, 512, 1024]
seconds = {device: [] for device in devices}
for device in devices:
    AssetClassifier(device=device, n_components=64, **settings).fit(X[:2000], y[:2000])
    for count in counts:
        start = perf_counter()
        model = AssetClassifier(device=device, n_components=count, **settings).fit(X, y)
        seconds[device].append(perf_counter() - start)
        print(f"{device}, {count:5} landmarks: {seconds[device][-1]:6.2f} s, {model.score(X, y):.4f}")

# %%
# On the left, the seconds of this machine. On the right, the operations of one pass of the map, 2 m
# s (n + s) with m rows, n columns and s landmarks, for more rows than were trained on here; the
# line is where ``"auto"`` finds the work worth the way to a card.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4))
for device in devices:
    left.loglog(counts, seconds[device], "o-", label=f'device="{device}"')
left.set(xlabel="landmarks", ylabel="seconds of fit", title="Measured here: 30 000 rows")
left.set_xticks(counts, [str(count) for count in counts])
left.minorticks_off()
left.legend()
landmarks = np.geomspace(64, 16_384, 100)
for rows, style in ((30_000, "-"), (1_000_000, "--"), (30_000_000, ":")):
    right.loglog(
        landmarks, 2.0 * rows * landmarks * (40 + landmarks), style, color="C0", label=f"{rows:,} rows"
    )
right.axhline(2e11, color="C3", label='"auto" takes a card from here on')
right.set(xlabel="landmarks", ylabel="operations", title="By the formula: one pass of the map")
right.legend(fontsize="small")
plt.show()
