"""Exact optima of (PL) from solvers nobody here wrote: LIBSVM (through SVC and SVR) on V V^T."""

import numpy as np
from sklearn.svm import SVC, SVR


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


def without_intercept(V, y, lam, loss, iterations=200_000):
    """The optimum of (PL) without b, by dual coordinate ascent to a gap of 1e-10 (relative).

    ``loss`` is "hinge" or a float, the epsilon of the insensitive loss.
    """
    m = len(y)
    upper = 1.0 / (lam * m)
    squares = np.einsum("ij,ij->i", V, V)
    alpha, coef = np.zeros(m), np.zeros(V.shape[1])
    value = np.inf
    for _ in range(iterations):
        for i in range(m):
            f = V[i] @ coef
            if loss == "hinge":
                new = np.clip(alpha[i] * y[i] + (1 - y[i] * f) / squares[i], 0, upper) * y[i]
            else:
                rest = alpha[i] + (y[i] - f) / squares[i]
                shrunk = np.sign(rest) * max(abs(rest) - loss / squares[i], 0)
                new = np.clip(shrunk, -upper, upper)
            coef += (new - alpha[i]) * V[i]
            alpha[i] = new
        f = V @ coef
        if loss == "hinge":
            losses, linear = np.maximum(1 - y * f, 0), alpha @ y
        else:
            losses = np.maximum(np.abs(y - f) - loss, 0)
            linear = alpha @ y - loss * np.abs(alpha).sum()
        value = lam / 2 * coef @ coef + losses.mean()
        dual = lam * linear - lam / 2 * coef @ coef
        if value - dual <= 1e-10 * value:
            break
    return coef, value
