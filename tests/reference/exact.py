"""Exact optima of (PL) from solvers nobody here wrote: LIBSVM on V V^T, LIBLINEAR on V."""

import numpy as np
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR


def classification(V, y, lam, weight=None):
    """(coef, b, objective) of (PL) with the hinge loss and an intercept."""
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, float)
    C = 1.0 / (lam * weight.sum())
    model = SVC(kernel="precomputed", C=C, tol=1e-10).fit(V @ V.T, y, sample_weight=weight)
    coef = model.dual_coef_[0] @ V[model.support_]
    b = float(model.intercept_[0])
    losses = np.maximum(1 - y * (V @ coef + b), 0)
    return coef, b, lam / 2 * coef @ coef + weight @ losses / weight.sum()


def regression(V, y, lam, epsilon, weight=None):
    """(coef, b, objective) of (PL) with the epsilon-insensitive loss and an intercept."""
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, float)
    C = 1.0 / (lam * weight.sum())
    model = SVR(kernel="precomputed", C=C, epsilon=epsilon, tol=1e-10)
    model.fit(V @ V.T, y, sample_weight=weight)
    coef = model.dual_coef_[0] @ V[model.support_]
    b = float(model.intercept_[0])
    losses = np.maximum(np.abs(y - V @ coef - b) - epsilon, 0)
    return coef, b, lam / 2 * coef @ coef + weight @ losses / weight.sum()


def without_intercept(V, y, lam, loss):
    """(coef, objective) of (PL) without b, by LIBLINEAR; ``loss`` is "hinge" or an epsilon."""
    C = 1.0 / (lam * len(y))
    options = dict(C=C, fit_intercept=False, tol=1e-8, max_iter=1_000_000, random_state=0)
    if loss == "hinge":
        coef = LinearSVC(loss="hinge", **options).fit(V, y).coef_[0]
        losses = np.maximum(1 - y * (V @ coef), 0)
    else:
        coef = LinearSVR(epsilon=loss, **options).fit(V, y).coef_
        losses = np.maximum(np.abs(y - V @ coef) - loss, 0)
    return coef, lam / 2 * coef @ coef + losses.mean()
