"""
A search as a race
==================

``AssetClassifierCV()`` needs no grid: kinds of models race against each other, and the best of them
are looked at more closely. The picture is the record of one race, ``leaderboard_``: when each
candidate was looked at last, and its score.

``time_limit=60`` would stop the race by the clock. Without it the race counts work, by the number of
rows, so that this program finds the same model wherever it runs.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from asset_svm import AssetClassifierCV

X, y = make_classification(
    6000,
    12,
    n_informative=5,
    n_redundant=2,
    n_classes=3,
    n_clusters_per_class=3,
    class_sep=1.2,
    random_state=2,
)
X[:, 7] *= 50  # columns of any scale
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=600, random_state=0)

search = AssetClassifierCV(random_state=0).fit(X_train, y_train)
board = search.leaderboard_
print(board.head(6).to_string(max_colwidth=60))
print(f"held-out score {search.best_score_:.3f}, test accuracy {search.score(X_test, y_test):.3f}")
print(search.best_params_)

# %%
# Each dot is a candidate, a kind of model with its bandwidth and C, from left to right in the order
# in which they were looked at last. The line is the best so far.

board = board.sort_values("at", kind="stable").reset_index(drop=True)
kinds = board["candidate"].str.split(",").str[:2].str.join(",")
figure, ax = plt.subplots(figsize=(9.5, 4.8))
for k, kind in enumerate(kinds.value_counts().index[:10]):
    part = board[kinds == kind]
    ax.errorbar(part.index, part["score"], part["error"], fmt="o", color=f"C{k}", label=kind, alpha=0.8)
ax.step(board.index, np.maximum.accumulate(board["score"]), where="post", color="k", linewidth=1)
ax.set(xlabel="candidate", ylabel="held-out accuracy", title="A race of kinds of models")
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
plt.show()
