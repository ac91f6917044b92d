"""Algorithm 1 of Lee & Wright, line by line, in float64; slow, and meant to be."""

import numpy as np


def subgradient_factor(task, y, f, epsilon):
    """d_j of Table 1."""
    if task == "classification":
        return -y if y * f < 1 else 0.0
    if y > f + epsilon:
        return -1.0
    if y < f - epsilon:
        return 1.0
    return 0.0


def asset(
    V,
    y,
    order,
    *,
    lam,
    radius,
    bound=None,
    task="classification",
    epsilon=0.0,
    step="robust",
    d_x=None,
    d_g=None,
    average_from=1,
    weight=None,
    start=None,
):
    """Run over the rows ``order``; returns every iterate and the running averages.

    ``bound=None``: no intercept. ``weight``: multiplies d_j; a negative one skips the row.
    """
    d = V.shape[1]
    gamma, b, j = (np.zeros(d), 0.0, 0) if start is None else start
    average, b_average, eta_total = np.zeros(d), 0.0, 0.0
    iterates, averages = [], []
    for row in order:
        w = 1.0 if weight is None else weight[row]
        if w >= 0:
            j += 1
            eta = d_x / (d_g * np.sqrt(j)) if step == "robust" else 1.0 / (lam * j)
            factor = w * subgradient_factor(task, y[row], V[row] @ gamma + b, epsilon)
            gamma = gamma - eta * (lam * gamma + factor * V[row])
            norm = np.sqrt(gamma @ gamma)
            if norm > radius:
                gamma = gamma * (radius / norm)
            if bound is not None:
                b = min(max(b - eta * factor, -bound), bound)
            if j >= average_from:
                average = eta_total / (eta_total + eta) * average + eta / (eta_total + eta) * gamma
                b_average = (eta_total * b_average + eta * b) / (eta_total + eta)
                eta_total += eta
        iterates.append((gamma.copy(), b))
        averages.append((average.copy(), b_average))
    return iterates, averages


def nystroem(X, landmarks, kernel, threshold):
    """V = K_.S Q D^(-1/2) with eigenvalues of at least ``threshold`` kept."""
    gram = np.array([[kernel(s, t) for t in landmarks] for s in landmarks])
    D, Q = np.linalg.eigh(gram)
    keep = threshold <= D
    rows = np.array([[kernel(x, t) for t in landmarks] for x in X])
    return rows @ Q[:, keep] / np.sqrt(D[keep])


def primal(V, y, weight, lam, gamma, b, task="classification", epsilon=0.0):
    """(PL), one row at a time."""
    total = 0.0
    for v, target, w in zip(V, y, weight, strict=True):
        f = v @ gamma + b
        loss = max(1 - target * f, 0) if task == "classification" else max(abs(target - f) - epsilon, 0)
        total += w * loss
    return lam / 2 * gamma @ gamma + total / np.sum(weight)


def asset_in_metric(
    V,
    y,
    order,
    *,
    lam,
    radius,
    H,
    d_x,
    d_g,
    bound=None,
    task="classification",
    epsilon=0.0,
    horizon=None,
    every=64,
    reach=np.inf,
):
    """Robust stochastic approximation in the norm |x|_H, in the basis of V; every iterate.

    The loss's subgradient is followed at every step, the regulariser's flow once in ``every`` steps.
    ``horizon``: steps decay linearly to 0 over so many, from d_x / (d_g sqrt horizon). ``reach``: a
    step moves f by at most so many times what would bring this row's loss to 0.
    """
    values, vectors = np.linalg.eigh(H)
    inverse = vectors / values @ vectors.T
    gamma, b, due = np.zeros(V.shape[1]), 0.0, 0.0
    iterates = []
    for j, row in enumerate(order, start=1):
        eta = d_x / (d_g * np.sqrt(j))
        if horizon is not None:
            eta = d_x / (d_g * np.sqrt(horizon)) * (1 - (j - 1) / horizon)
        factor = subgradient_factor(task, y[row], V[row] @ gamma + b, epsilon)
        length = eta
        if factor != 0:
            f = V[row] @ gamma + b
            gain = V[row] @ inverse @ V[row] + (bound is not None)
            loss = 1 - y[row] * f if task == "classification" else abs(y[row] - f) - epsilon
            length = min(eta, reach * loss / gain)
        gamma = gamma - length * factor * inverse @ V[row]
        norm = np.sqrt(gamma @ H @ gamma)
        if norm > radius:
            gamma = gamma * (radius / norm)
        if bound is not None:
            b = min(max(b - length * factor, -bound), bound)
        due += eta
        if j % every == 0:
            gamma = vectors * np.exp(-lam * due / values) @ vectors.T @ gamma
            due = 0.0
        iterates.append((gamma.copy(), b))
    return iterates


def averaged_asset(shards, shares, steps, *, average_from=1, **options):
    """Parallel SGD with a round after every step: (mean of the iterates, mean of the averages).

    ``shards``: (V, y, order) each. All shards step from the mean of their last iterates, weighted by
    ``shares``; each averages its own iterates, by their step lengths.
    """
    gamma, b = np.zeros(shards[0][0].shape[1]), 0.0
    totals = [[np.zeros(len(gamma)), 0.0, 0.0] for _ in shards]
    for j in range(1, steps + 1):
        found = []
        for (V, y, order), total in zip(shards, totals, strict=True):
            row = [order[j - 1]]
            iterates, _ = asset(V, y, row, start=(gamma, b, j - 1), **options)
            found.append(iterates[0])
            robust = options["step"] == "robust"
            eta = options["d_x"] / options["d_g"] / np.sqrt(j) if robust else 1 / (options["lam"] * j)
            if j >= average_from:
                total[0] = total[0] + eta * found[-1][0]
                total[1] += eta * found[-1][1]
                total[2] += eta
        gamma = sum(share * model[0] for share, model in zip(shares, found, strict=True))
        b = sum(share * model[1] for share, model in zip(shares, found, strict=True))
    average = sum(share * t[0] / t[2] for share, t in zip(shares, totals, strict=True))
    b_average = sum(share * t[1] / t[2] for share, t in zip(shares, totals, strict=True))
    return (gamma, b), (average, b_average)
