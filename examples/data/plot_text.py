"""
Text, with sparse rows
======================

Which library is a sentence of documentation from? The sentences come from docstrings of packages
that are installed in any case: NumPy, SciPy, scikit-learn and Python's own modules. As counts of
words and pairs of words they are sparse rows of many thousands of columns, which are never made
dense.
"""

import importlib
import inspect
import re
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from asset_svm import AssetClassifier

MODULES = {
    "numpy": ["numpy", "numpy.linalg", "numpy.fft", "numpy.random", "numpy.polynomial"],
    "scipy": ["scipy.stats", "scipy.sparse", "scipy.signal", "scipy.optimize", "scipy.special"],
    "sklearn": ["linear_model", "ensemble", "metrics", "preprocessing", "cluster", "decomposition"],
    "python": [
        "os",
        "pathlib",
        "logging",
        "threading",
        "socket",
        "email.message",
        "argparse",
        "decimal",
    ],
}
MODULES["sklearn"] = [f"sklearn.{name}" for name in MODULES["sklearn"]]


def sentences_of(module_name):
    """Sentences of the docstrings of what a module holds, each once."""
    module = importlib.import_module(module_name)
    found = set()
    for name in sorted(vars(module)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            thing = getattr(module, name)
        parts = vars(thing).values() if inspect.isclass(thing) else ()
        for each in (thing, *parts):
            text = getattr(each, "__doc__", None)
            if callable(each) and isinstance(text, str):
                found |= set(re.split(r"(?<=[.])\s+", re.sub(r"\s+", " ", text)))
    names = re.compile(r"numpy|scipy|sklearn|scikit|python|\bnp\b|>>>", re.IGNORECASE)
    return {one for one in found if 40 < len(one) < 300 and not names.search(one)}


texts, libraries = [], []
for library, names in MODULES.items():
    found = sorted(set().union(*(sentences_of(name) for name in names)))
    texts += found
    libraries += [library] * len(found)
y = np.array(libraries)
print({library: int(np.sum(y == library)) for library in MODULES})

# %%
# Sentences that name a library, or show code, were left out. Rows of words have length 1, for which
# gamma = 1 is a kernel that is neither flat nor narrow.

train, test, y_train, y_test = train_test_split(texts, y, test_size=0.3, random_state=0, stratify=y)
words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2, dtype=np.float32)
model = make_pipeline(
    words,
    AssetClassifier("rbf", gamma=1.0, C=10, n_components=1500, class_weight="balanced", random_state=0),
)
model.fit(train, y_train)
rows = model[0].transform(test)
print(f"{rows.shape[1]} columns, of which a row fills {rows.nnz / rows.shape[0]:.0f}")
print(f"accuracy {model.score(test, y_test):.3f}")
print(f"accuracy of always the most frequent library {np.mean(y_test == 'scipy'):.3f}")

# %%
# On the left, what is taken for what; on the right, the words that say most for each library: those
# along which the decisions change most, by the mean gradient over the test rows.

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.8), width_ratios=[1, 1.3])
ConfusionMatrixDisplay.from_predictions(
    y_test,
    model.predict(test),
    normalize="true",
    values_format=".2f",
    cmap="Blues",
    ax=left,
    colorbar=False,
)
slopes = model[-1].gradients(rows[:150]).mean(axis=0)
vocabulary = model[0].get_feature_names_out()
right.axis("off")
right.set(xlim=(0, 4), ylim=(-12.5, 1))
for k, library in enumerate(model[-1].classes_):
    best = np.argsort(-slopes[k])[:12]
    right.text(k, 0.4, library, weight="bold", color=f"C{k}")
    for place, j in enumerate(best):
        size = 7 + 5 * slopes[k, j] / slopes[k, best[0]]
        right.text(k, -place - 0.5, vocabulary[j], fontsize=size, color=f"C{k}")
right.set_title("words that speak for a library")
plt.show()
