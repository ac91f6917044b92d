"""Averages over windows: what they cover, and that they equal the weighted mean."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asset_svm.solvers import Average, CountWindow, FractionWindow, NoWindow, SolverState


def run(window, stops, *, power=0.5, seed=0, d=3):
    """Feed random iterates through an average, as the driver does; yields (step, result, all)."""
    rng = np.random.default_rng(seed)
    state, average = SolverState.zeros(1, d, np.float64), Average(window)
    iterates, etas = [], []
    for stop in stops:
        while average.step < stop:
            room = average.steps_to_boundary(stop - average.step)
            if room <= 0:
                average.close_segment(state)
                continue
            for _ in range(min(room, stop - average.step)):
                eta = 1.0 / (average.step + 1) ** power
                x, b = rng.normal(size=d), rng.normal()
                state.direction[0], state.intercept[0] = x, b
                state.total[0] += eta * x
                state.weight[0] += eta
                state.intercept_total[0] += eta * b
                average.step += 1
                iterates.append(np.append(x, b))
                etas.append(eta)
        coef, intercept = average.result(state)
        yield average.step, np.append(coef[0], intercept[0]), np.array(iterates), np.array(etas)


def mean(iterates, etas, first):
    return etas[first:] @ iterates[first:] / etas[first:].sum()


@given(
    fraction=st.sampled_from([0.1, 0.25, 0.5, 0.75, 0.9, 1.0]),
    stops=st.lists(st.integers(1, 700), min_size=1, max_size=5).map(sorted),
)
def test_a_fraction_covers_between_half_of_it_and_all_of_it(fraction, stops):
    for step, result, iterates, etas in run(FractionWindow(fraction), stops):
        exact = [mean(iterates, etas, first) for first in range(step)]
        covered = {
            step - first for first in range(step) if np.allclose(exact[first], result, atol=1e-12)
        }
        assert covered, "the result is no average of the last iterates at all"
        # One step of rounding either way.
        assert any(fraction * step / 2 - 1 <= n <= fraction * step + 1 for n in covered)


@given(fraction=st.floats(0.05, 1.0), total=st.integers(1, 500))
def test_a_known_end_is_covered_exactly(fraction, total):
    window = FractionWindow(fraction, total)
    *_, (step, result, iterates, etas) = run(window, [total // 3, total // 2, total])
    if step:
        n = round(fraction * total)
        expected = mean(iterates, etas, total - n) if n else iterates[-1]
        np.testing.assert_allclose(result, expected, atol=1e-12)


@given(
    count=st.integers(1, 30),
    stops=st.lists(st.integers(1, 200), min_size=1, max_size=12, unique=True).map(sorted),
)
def test_a_stream_averages_exactly_the_last_k(count, stops):
    for step, result, iterates, etas in run(CountWindow(count, every_step=True), stops):
        expected = mean(iterates, etas, max(step - count, 0))
        np.testing.assert_allclose(result, expected, atol=1e-12)


def test_a_count_is_exact_at_the_known_end_however_short_the_epochs():
    *_, (_, result, iterates, etas) = run(CountWindow(25, total=60), range(5, 61, 5))
    np.testing.assert_allclose(result, mean(iterates, etas, 35), atol=1e-12)


def test_no_window_gives_the_last_iterate():
    for _, result, iterates, _ in run(NoWindow(), [1, 5, 9]):
        np.testing.assert_array_equal(result, iterates[-1])


@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.9])
def test_few_segments_are_alive(fraction):
    state, average = SolverState.zeros(1, 1, np.float64), Average(FractionWindow(fraction))
    most = 0
    while average.step < 100_000:
        if average.steps_to_boundary(1) <= 0:
            average.close_segment(state)
        average.step += max(1, min(average.steps_to_boundary(10**9), 1000))
        if average.step > 100:
            most = max(most, len(average.segments))
    assert most <= 5
