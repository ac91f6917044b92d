"""(PL): lam/2 |coef|^2 + (1/W) sum_i w_i loss(y_i, v_i.coef + b), and a certificate for it.

The certificate is Proposition 1 put to work. For slopes beta_i in the range of the loss's
subdifferential, the dual value

    D(beta) = -(1/W) sum_i w_i loss*(beta_i) - (1/(2 lam)) |(1/W) sum_i w_i beta_i v_i|^2

is a lower bound of (PL) (with an intercept: if sum_i w_i beta_i = 0), and the coefficient that beta
stands for is alpha_i = -w_i beta_i / (lam W). A run provides beta: the average slope that each row
had when it was visited. The positive and the negative slopes may each be shrunk by a factor in
[0, 1] without leaving the range; the two factors are chosen to make the bound as high as it gets,
and, with an intercept, to balance the sum.

With K models, arrays carry a leading model axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from asset_svm.arrays import Array
from asset_svm.features import Metric
from asset_svm.losses import Loss


class RowProducts(Protocol):
    """What a certificate needs of mapped rows: products in float64, whatever their type.

    (PL) is that of the features as they were computed; rounding of sums over them, divided by lam,
    would make bounds of it that are too high.
    """

    def exact_margins(self, coef: Array) -> Array:
        """Return V coef^T, of shape (K, B)."""

    def exact_sums(self, beta: Array) -> Array:
        """Return min(beta, 0) V and max(beta, 0) V, of shape (2, K, d), for beta of shape (K, B)."""


@dataclass(frozen=True)
class Certificate:
    """Objective and duality gap of K models, arrays of shape (K,)."""

    objective: Array
    dual_gap: Array


@dataclass(eq=False)
class CertificateSums:
    """What a certificate of K models is made of, as sums over rows: those of two parts add up.

    Parameters
    ----------
    weight : float
        Of the rows so far.
    loss : array of shape (K,)
    parts : array of shape (2, K, d)
        sum w beta v over negative and over positive slopes.
    linear : array of shape (2, K)
        -sum w loss*(beta), likewise.
    slopes : array of shape (2, K)
        sum w |beta|, likewise.
    """

    weight: float
    loss: Array
    parts: Array
    linear: Array
    slopes: Array

    @classmethod
    def zeros(cls, n_models: int, dimension: int) -> CertificateSums:
        """The sums over no row."""
        K = n_models
        return cls(0.0, np.zeros(K), np.zeros((2, K, dimension)), np.zeros((2, K)), np.zeros((2, K)))

    def add(
        self,
        loss: Loss,
        model: tuple[Array, Array],
        rows: RowProducts,
        y: Array,
        weight: Array,
        slope: Array,
    ) -> None:
        """Add rows: targets (K, B), weights (B,), average slopes (K, B).

        A slope of NaN (the row was never visited) is replaced by the slope at the given model, whose
        coef is in float64.
        """
        f = rows.exact_margins(model[0]) + model[1][:, None]
        self.weight += float(weight.sum())
        self.loss += loss.value(y, f) @ weight
        slope = np.where(np.isnan(slope), loss.slope(y, f), slope)
        self.parts = self.parts + rows.exact_sums(slope * weight)
        for sign, part in enumerate((np.minimum(slope, 0.0), np.maximum(slope, 0.0))):
            self.linear[sign] -= loss.conjugate(y, part) @ weight
            self.slopes[sign] += np.abs(part) @ weight

    def __add__(self, other: CertificateSums) -> CertificateSums:
        return CertificateSums(
            self.weight + other.weight,
            self.loss + other.loss,
            self.parts + other.parts,
            self.linear + other.linear,
            self.slopes + other.slopes,
        )

    def certificate(
        self, lam: Array, coef: Array, *, free_intercept: bool, metric: Metric | None = None
    ) -> Certificate:
        """Objective and gap of the model that the sums are of.

        With a ``metric`` the rows are those of V T, and ``coef`` is coef' = T^(-1) coef.
        """
        coef, parts, total = coef.astype(np.float64), self.parts, self.weight
        if metric is not None:
            coef, parts = metric.apply(coef), np.stack([metric.invert(part) for part in parts])
        primal = 0.5 * lam * np.einsum("kd,kd->k", coef, coef) + self.loss / total
        dual = np.array(
            [
                best_dual(
                    lam[k],
                    parts[:, k] / total,
                    self.linear[:, k] / total,
                    self.slopes[:, k],
                    free_intercept,
                )
                for k in range(len(lam))
            ]
        )
        return Certificate(primal, np.maximum(primal - dual, 0.0))


def best_dual(lam: float, parts: Array, linear: Array, sums: Array, free_intercept: bool) -> float:
    """max over the factors (s, t) in [0, 1]^2 of linear.(s, t) - |s parts_0 + t parts_1|^2/(2 lam).

    With an intercept (s, t) must also satisfy s sums_0 = t sums_1.
    """
    gram = parts @ parts.T / lam

    def along(start: Array, direction: Array) -> Array:
        """The best point start + r direction, r in [0, 1]."""
        curve = direction @ gram @ direction
        rise = direction @ (linear - gram @ start)
        r = 1.0 if curve <= 0.0 and rise > 0.0 else (rise / curve if curve > 0.0 else 0.0)
        return start + min(max(r, 0.0), 1.0) * direction

    def value(point: Array) -> float:
        return float(linear @ point - 0.5 * point @ gram @ point)

    zero = np.zeros(2)
    if free_intercept:
        if sums.min() <= 0.0:
            return 0.0
        balanced = np.array([sums.min() / sums[0], sums.min() / sums[1]])
        return value(along(zero, balanced))
    inside = np.linalg.lstsq(gram, linear, rcond=None)[0]
    corners, sides = (zero, np.ones(2)), np.eye(2)
    points = [along(corner, side) for corner in corners for side in sides * (1 - 2 * corner[0])]
    if ((inside >= 0.0) & (inside <= 1.0)).all():
        points.append(inside)
    return max(value(point) for point in points)
