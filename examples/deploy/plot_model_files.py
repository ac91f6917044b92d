"""
Model files
===========

``save`` writes a fitted model to one file without pickle: nothing in it is code, and whoever loads
it runs nothing but this library. Predictions of a loaded model are those of the saved one, to the
last bit.

This also draws what a file is made of, how its size follows the number of landmarks and not the
number of rows, and that a file which was cut or changed is refused.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from asset_svm import AssetClassifier, ModelFileError, load, save

folder = Path(tempfile.mkdtemp())
X, y = make_classification(20_000, 20, n_informative=6, random_state=0)
X = X.astype(np.float32)

sizes = {}
for rows in (2_000, 20_000):
    for count in (32, 64, 128, 256, 512):
        model = AssetClassifier(n_components=count, max_iter=2, random_state=0).fit(X[:rows], y[:rows])
        path = folder / f"{rows}-{count}.asset"
        save(model, path)
        sizes[rows, count] = path.stat().st_size / 1024
        same = np.array_equal(load(path).decision_function(X[:500]), model.decision_function(X[:500]))
        print(
            f"{rows:6} rows, {count:3} landmarks: {sizes[rows, count]:6.1f} KiB, same decisions: {same}"
        )

# %%
# With ``resumable=True`` a model can go on learning from where it was.

save(model, folder / "resumable.asset", resumable=True)
resumed = load(folder / "resumable.asset")
resumed.partial_fit(X[:100], y[:100])
model.partial_fit(X[:100], y[:100])
print("went on alike:", np.array_equal(resumed.decision_function(X), model.decision_function(X)))

# %%
# Bytes are changed one at a time, all over a small file. Each of the damaged files is either
# refused with a sentence, or is read as the very same model; none is read as another one.

whole = (folder / "2000-32.asset").read_bytes()
truth = load(folder / "2000-32.asset").decision_function(X[:200])
places = np.linspace(0, len(whole) - 1, 400).astype(int)
refused, said = [], ""
for place in places:
    damaged = bytearray(whole)
    damaged[place] ^= 0x10
    (folder / "damaged.asset").write_bytes(damaged)
    try:
        other = load(folder / "damaged.asset").decision_function(X[:200])
        refused.append(False)
        assert np.array_equal(other, truth)
    except ModelFileError as error:
        refused.append(True)
        said = str(error).replace(str(folder), "...")
print(f"{sum(refused)} of {len(refused)} damaged files refused; the last one said:")
print(said)

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 3.8))
for rows, style in ((2_000, "o-"), (20_000, "s--")):
    counts = [32, 64, 128, 256, 512]
    left.plot(counts, [sizes[rows, count] for count in counts], style, label=f"{rows} rows")
left.set(xlabel="landmarks", ylabel="KiB", title="Size of a model file")
left.legend()
width = 128
image = np.zeros(-(-len(whole) // width) * width, dtype=np.uint8)
image[: len(whole)] = np.frombuffer(whole, dtype=np.uint8)
right.imshow(image.reshape(-1, width), cmap="Greys", aspect="auto")
marks = places[np.array(refused)]
right.scatter(marks % width, marks // width, s=5, color="C3", label="change one of these: refused")
right.set(xticks=[], yticks=[], title="The bytes of a file: text, then numbers")
right.legend(loc="upper right", frameon=True)
plt.show()
