"""Draws of the frequencies nu and phases omega of Fourier features.

nu follows the kernel's spectral density (``kernels``), omega is uniform on [0, 2 pi]. Each
nu has this distribution, whatever the kind; kinds differ in how they go together:

    iid          independent (the paper's), and a feature each
    orthogonal   in blocks of n orthogonal directions with independent lengths: for densities that are
                 the same in all directions
    qmc          points of a scrambled Sobol sequence, sent through the inverse distribution function

All but the paper's are used twice, with omega and omega - pi/2: cos cos + sin sin = cos(nu^T (x - z)),
so that what omega adds to the variance, more than a better choice of nu can save, is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.linalg as la

from asset_svm.arrays import Array
from asset_svm.kernels import SPECTRAL, Kernel, SpectralDensity
from asset_svm.threads.blas import few_threads

TURN = 2.0 * np.pi
SOBOL_COLUMNS = 21_201
"""The most that scipy has sequences for."""
SOBOL_BITS = 30
Draw = Callable[[Kernel, int, int, np.random.Generator], tuple[Array, Array]]


def spectral_density(kernel: Kernel, *, rotation_invariant: str | None = None) -> SpectralDensity:
    """The density of the kernel, which must have one, and one that a structured kind can use."""
    density = kernel.spectral_density
    if density is None:
        raise ValueError(
            f"kernel={kernel.name!r} has no spectral density to draw Fourier features from; use "
            f"kernel={_listed(SPECTRAL)}, or the Nystroem approximation."
        )
    if rotation_invariant is not None and not density.rotation_invariant:
        round_ones = [name for name in SPECTRAL if _is_round(name)]
        raise ValueError(
            f'fourier="{rotation_invariant}" needs a spectral density that is the same in all '
            f"directions, and that of kernel={kernel.name!r} is not; use "
            f'kernel={_listed(round_ones)}, or fourier="iid" or "qmc".'
        )
    return density


def _is_round(name: str) -> bool:
    density = Kernel(name).spectral_density
    return density is not None and density.rotation_invariant


def _listed(names: Sequence[str]) -> str:
    *others, last = map(repr, names)
    return f"{', '.join(others)} or {last}" if others else last


def paired_phases(d: int, rng: np.random.Generator) -> tuple[int, Array]:
    """How many frequencies d features need, two of them each, and the d phases."""
    count = -(-d // 2)
    phases = rng.uniform(0.0, TURN, size=count)
    return count, np.concatenate([phases, phases - 0.5 * np.pi])[:d]


def draw_iid(kernel: Kernel, n: int, d: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The (n, d) frequencies and d phases, all independent."""
    frequencies = spectral_density(kernel).sample(n, d, rng)
    return frequencies, rng.uniform(0.0, TURN, size=d)


def draw_orthogonal(kernel: Kernel, n: int, d: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Directions from the uniform distribution on orthogonal matrices; 2 n^2 d operations once."""
    density = spectral_density(kernel, rotation_invariant="orthogonal")
    count, phases = paired_phases(d, rng)
    frequencies = np.empty((n, count))
    with few_threads(n):
        for start in range(0, count, n):
            width = min(n, count - start)
            Q, R = la.qr(rng.normal(size=(n, width)), mode="economic", check_finite=False)
            # The signs of R's diagonal make Q uniform: LAPACK fixes them in its own way.
            frequencies[:, start : start + width] = Q * np.sign(R.diagonal())
    return frequencies * density.lengths(n, count, rng), phases


def draw_qmc(kernel: Kernel, n: int, d: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The first points of a scrambled Sobol sequence, made for a power of two of them."""
    from scipy.stats.qmc import Sobol  # half a second to import

    density = spectral_density(kernel)
    coordinates = density.coordinates(n)
    if coordinates > SOBOL_COLUMNS:
        raise ValueError(
            f'fourier="qmc" has no sequence for {n} features; use fourier="orthogonal" or "iid" above '
            f"{SOBOL_COLUMNS}."
        )
    count, phases = paired_phases(d, rng)
    sequence = Sobol(coordinates, scramble=True, bits=SOBOL_BITS, seed=rng)
    points = sequence.random_base2((count - 1).bit_length())[:count].T
    u = points + 0.5**SOBOL_BITS / 2  # the middle of each cell: never 0, never 1
    return density.quantiles(u), phases


DRAWS: dict[str, Draw] = {"iid": draw_iid, "orthogonal": draw_orthogonal, "qmc": draw_qmc}
