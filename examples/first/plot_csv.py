"""
From a CSV to a report
======================

A file and a terminal are enough. This writes a small CSV with a category, gaps and numbers of any
scale, trains from it with the command ``asset``, and looks at the same model in Python.

The commands are those that one would type::

    asset train shop.csv --target bought --report shop.html
    asset evaluate shop.asset later.csv
    asset predict shop.asset later.csv --scores

``shop.html`` is a page that needs no network: what was trained, on what, how well, with charts.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from asset_svm import load

rng = np.random.default_rng(0)


def customers(n_rows):
    """Made customers, of whom the young, the rich and those of two cities buy more."""
    age = rng.normal(45, 15, n_rows).clip(18, 90).round()
    income = np.exp(rng.normal(10.5, 0.6, n_rows)).round(-2)
    city = rng.choice(["Arles", "Bath", "Cork", "Delft"], n_rows, p=[0.4, 0.3, 0.2, 0.1])
    logit = (
        np.sin(age / 9) + 1.2 * np.log(income / 36_000) + 1.5 * np.isin(city, ["Bath", "Delft"]) - 0.5
    )
    frame = pd.DataFrame({"age": age, "income": income, "city": city})
    frame.loc[rng.uniform(size=n_rows) < 0.05, "age"] = np.nan
    frame["bought"] = np.where(rng.uniform(size=n_rows) < 1 / (1 + np.exp(-2 * logit)), "yes", "no")
    return frame


folder = Path(tempfile.mkdtemp())
customers(6000).to_csv(folder / "shop.csv", index=False)
customers(3000).to_csv(folder / "later.csv", index=False)
print((folder / "shop.csv").read_text()[:150])


# %%
# The command, as a terminal would run it.


def asset(*words):
    """Run ``asset`` with these words, and show what it says."""
    command = [sys.executable, "-c", "from asset_svm.cli.main import run; run()", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    print("$ asset", *words)
    print(done.stdout)


asset("train", "shop.csv", "--target", "bought", "--report", "shop.html", "--n-components", "256")
asset("evaluate", "shop.asset", "later.csv")
print(sorted(file.name for file in folder.iterdir()))

# %%
# The model file is the same one in Python, where ``load`` returns an ordinary estimator. It takes
# the table as it is.

model = load(folder / "shop.asset")
ages = np.arange(18, 91)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True)
for city in ("Arles", "Bath", "Cork", "Delft"):
    frame = pd.DataFrame({"age": ages.astype(float), "income": 36_000.0, "city": city})
    axes[0].plot(ages, model.decision_function(frame), label=city)
incomes = np.geomspace(8_000, 200_000, 80)
for city in ("Arles", "Bath", "Cork", "Delft"):
    frame = pd.DataFrame({"age": 45.0, "income": incomes, "city": city})
    axes[1].semilogx(incomes, model.decision_function(frame), label=city)
for ax, name in zip(axes, ("age, income 36 000", "income, age 45"), strict=True):
    ax.axhline(0, color="k", linewidth=0.8)
    ax.set_xlabel(name)
axes[0].set_ylabel("decision: above 0 is yes")
axes[0].legend(title="city")
figure.suptitle("What the model has learnt of the customers")
plt.show()
