"""
Calibration
===========

An SVM has decisions, not probabilities. There are two ways to have them: scikit-learn's
``CalibratedClassifierCV``, which fits a sigmoid to decisions of rows held out, and
``loss="logistic"``, whose decisions are logarithms of odds by themselves.

The data are ADULT, which is embedded: does a person earn more than 50 000 dollars a year?
"""

import matplotlib.pyplot as plt
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

from asset_svm import AssetClassifier, load_adult

X, y, n_train = load_adult()
X_train, y_train, X_test, y_test = X[:n_train], y[:n_train], X[n_train:], y[n_train:] > 0

svm = AssetClassifier(gamma=0.01, C=10, n_components=256, random_state=0)
logistic = AssetClassifier(gamma=0.01, C=10, n_components=256, loss="logistic", random_state=0)
calibrated = CalibratedClassifierCV(svm, ensemble=False, cv=3)
for model in (svm, logistic, calibrated):
    model.fit(X_train, y_train)

probabilities = {
    "expit(decision), not calibrated": expit(svm.decision_function(X_test)),
    "CalibratedClassifierCV": calibrated.predict_proba(X_test)[:, 1],
    'loss="logistic"': logistic.predict_proba(X_test)[:, 1],
}
for name, p in probabilities.items():
    print(f"{name:32} log loss {log_loss(y_test, p):.4f}   Brier {brier_score_loss(y_test, p):.4f}")

# %%
# Of the rows with a probability of 0.7, seven of ten should be positive: the nearer to the diagonal
# the better.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.4))
left.plot([0, 1], [0, 1], "k:", label="perfect")
for (name, p), marker in zip(probabilities.items(), "v^o", strict=True):
    true, told = calibration_curve(y_test, p, n_bins=15, strategy="quantile")
    left.plot(told, true, marker=marker, label=name)
    right.hist(p, 60, range=(0, 1), histtype="step", linewidth=1.5)
left.set(xlabel="probability told", ylabel="share of positives", title="Reliability", aspect="equal")
left.legend(fontsize="small")
right.set(xlabel="probability told", ylabel="test rows", title="How often each is told", yscale="log")
plt.show()
