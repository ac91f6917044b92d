"""
A table as it is
================

A data frame with categories, gaps, dates and columns of any scale goes into ``fit`` unchanged.
``TableEncoder`` makes numbers of it, and tells what it made of each column.

A column that is 0 in nine rows of ten and thousands in the others says little as one standardised
number. Encoded as pieces between its quantiles it can be learnt from: that is what
``numbers="auto"`` finds out by held-out rows.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from asset_svm import AssetRegressor, TableEncoder

rng = np.random.default_rng(0)
n_rows = 6000
frame = pd.DataFrame(
    {
        "opened": pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.uniform(0, 730, n_rows), unit="D"),
        "kind": rng.choice(["private", "firm", "club"], n_rows, p=[0.7, 0.25, 0.05]),
        "gain": np.where(rng.uniform(size=n_rows) < 0.8, 0, np.exp(rng.normal(7, 1.5, n_rows))),
        "age": rng.normal(50, 16, n_rows).clip(18, 95),
    }
)
season = np.sin(2 * np.pi * frame["opened"].dt.dayofyear / 365)
levels = frame["kind"].map({"private": 0.0, "firm": 1.0, "club": -1.0})
jump = np.where(frame["gain"] > 3000, 1.5, 0) + np.where(frame["gain"].between(1, 600), -1.0, 0)
y = (season + levels + jump + 0.02 * frame["age"] + 0.3 * rng.normal(size=n_rows)).to_numpy()
frame.loc[rng.uniform(size=n_rows) < 0.1, "age"] = np.nan
print(frame.head())

# %%
# What the encoder makes of the columns.

encoder = TableEncoder().fit(frame[:4000], y[:4000])
for column in encoder.columns_:
    print(column)

# %%
# Three ways to encode the numbers, and the predictions along the column ``gain``.

models = {
    numbers: AssetRegressor(C=3, encoder=TableEncoder(numbers=numbers), random_state=0)
    for numbers in ("standard", "quantile", "pieces")
}
scores = {
    name: m.fit(frame[:4000], y[:4000]).score(frame[4000:], y[4000:]) for name, m in models.items()
}

gains = np.concatenate([[0], np.geomspace(1, 60_000, 300)])
probe = pd.DataFrame(
    {"opened": pd.Timestamp("2024-04-01"), "kind": "private", "gain": gains, "age": 50.0}
)
truth = np.where(gains > 3000, 1.5, 0) + np.where((gains >= 1) & (gains <= 600), -1.0, 0)
figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4), width_ratios=[1, 2])
left.barh(list(scores), list(scores.values()), color=["C0", "C1", "C2"])
left.set(xlabel="R2 of test rows", title="Encodings of numbers", xlim=(0, 1))
right.plot(gains + 1, truth + 1 + np.sin(2 * np.pi * 92 / 365), "k:", label="truth")
for name, model in models.items():
    right.plot(gains + 1, model.predict(probe), label=name)
right.set(xscale="log", xlabel="gain + 1", ylabel="prediction", title="A spike at 0 and a long tail")
right.legend()
plt.show()
