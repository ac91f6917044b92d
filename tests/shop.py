"""Files that races are run on: a table with categories, gaps and a date, and arrays of numbers."""

from __future__ import annotations

import csv

import numpy as np

ROWS = 240
CITIES = ("Oslo", "Rome", "Bonn", "")
BOUGHT = ["shop.csv", "--target", "bought", "--drop", "price"]
PRICE = ["shop.csv", "--target", "price", "--drop", "bought"]
QUICK = ["--kernel", "rbf", "--relevance", "none"]
RELEVANT = ["noisy.npz", "--kernel", "rbf", "--relevance", "columns", "--cv", "0.3"]


def write_files() -> None:
    """Write shop.csv, rows.npz and noisy.npz into the folder that we are in."""
    rng = np.random.default_rng(0)
    city, age, size = rng.integers(0, 4, ROWS), rng.uniform(18, 80, ROWS), rng.exponential(1.0, ROWS)
    days = np.datetime64("2024-01-01") + rng.integers(0, 700, ROWS)
    price = np.sin(age / 9) + 0.8 * (city == 1) + 0.5 * np.log(size) + 0.05 * rng.normal(size=ROWS)
    with open("shop.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["city", "age", "size", "day", "bought", "price"])
        for i in range(ROWS):
            known = "NA" if i % 17 == 0 else f"{age[i]:.3f}"
            bought = "yes" if price[i] > 0 else "no"
            writer.writerow(
                [CITIES[city[i]], known, f"{size[i]:.4f}", days[i], bought, f"{price[i]:.4f}"]
            )
    np.savez("rows.npz", X=np.column_stack([age, size]), y=(price > 0).astype(int))
    noisy = rng.normal(size=(700, 8))  # one column matters
    np.savez("noisy.npz", X=noisy, y=np.sin(3 * noisy[:, 0]) + 0.2 * rng.normal(size=700))
