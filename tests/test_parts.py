"""Losses, feasible sets, steps, orders: each definition as a property."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asset_svm
from asset_svm.data import ShuffledOrder, UniformOrder
from asset_svm.feasible import FeasibleSet
from asset_svm.losses import LOSSES as LOSS_TYPES
from asset_svm.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Pinball,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    loop_arguments,
    scalar_excess,
    scalar_slope,
)
from asset_svm.solvers.row_form import step_length
from asset_svm.steps import RobustStep, StrongStep, gradient_bound
from emulation.functions import compile_function

reals = st.floats(-100, 100, allow_nan=False)
LOSSES = [Hinge(), EpsilonInsensitive(0.0), EpsilonInsensitive(0.5)]
ON_CARD = [
    *LOSSES,
    SquaredHinge(),
    SquaredEpsilonInsensitive(0.5),
    Huber(0.5),
    Logistic(),
    Pinball((0.3,)),
]


def target(loss, y):
    return float(np.where(y >= 0, 1.0, -1.0)) if isinstance(loss, Hinge) else y


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@given(y=reals, f=reals, other=reals)
def test_slopes_satisfy_the_subgradient_inequality(loss, y, f, other):
    y = target(loss, y)
    rise = loss.slope(y, f) * (other - f)
    assert loss.value(y, other) >= loss.value(y, f) + rise - 1e-9


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@given(y=reals, f=reals)
def test_compiled_slopes_equal_those_of_the_losses(loss, y, f):
    y = target(loss, y)
    assert scalar_slope(*loop_arguments(loss), y, f) == loss.slope(y, f)
    assert max(scalar_excess(*loop_arguments(loss), y, f), 0.0) == loss.value(y, f)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@given(y=reals, f=reals, fraction=st.floats(0, 1))
def test_conjugates_satisfy_fenchel_and_young(loss, y, f, fraction):
    y = target(loss, y)
    slope = fraction * (-y if isinstance(loss, Hinge) else np.sign(y) or 1.0)
    assert loss.value(y, f) + loss.conjugate(y, slope) >= slope * f - 1e-9
    touching = loss.slope(y, f)
    assert loss.value(y, f) + loss.conjugate(y, touching) == pytest.approx(touching * f, abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@given(y=reals, f=reals, cost=st.floats(0.1, 10))
def test_the_box_holds_all_slopes(loss, y, f, cost):
    y = target(loss, y)
    low, high = loss.box(np.array([y]), np.array([cost]))
    assert low[0] <= -cost * loss.slope(y, f) <= high[0]


def test_a_constant_stands_for_a_class_that_is_alone():
    y = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    assert Hinge().is_trivial(y).tolist() == [True, True, False]
    assert not EpsilonInsensitive(0.1).is_trivial(y).any()


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++ to compile the source")
@pytest.mark.parametrize("loss", ON_CARD, ids=str)
def test_the_source_for_the_card_says_the_same_as_the_loss(loss, tmp_path):
    """Signs of y - f, both sides of every kink, and the kinks themselves."""
    call = compile_function(
        tmp_path,
        loss.cuda,
        """
        extern "C" void all(double y, double f, double parameter, double cost, double* out) {
          out[0] = Loss::excess(y, f, parameter);
          out[1] = -Loss::turned(y, f, Loss::unit(y)) * Loss::steepness(y, f, parameter);
          out[2] = Loss::low(cost, y, parameter), out[3] = Loss::high(cost, y, parameter);
        }""",
    )
    of_classes, parameter = isinstance(loss, Hinge | SquaredHinge | Logistic), loop_arguments(loss)[1]
    cost = np.array([1.5])
    for y in (1.0, -1.0) if of_classes else (-2.0, 0.25):
        for f in (-3.0, -1.0, -0.25, 0.0, 0.25, 0.75, 1.0, 2.0):
            excess, slope, low, high = call(4, y, f, parameter, 1.5)
            assert max(excess, 0.0) == pytest.approx(float(loss.value(y, f)), rel=1e-14, abs=0.0)
            assert (slope if excess > 0.0 else 0.0) == pytest.approx(float(loss.slope(y, f)), rel=1e-14)
            box = [float(end[0]) for end in loss.box(np.array([y]), cost)]
            if loss.steepest < np.inf:
                assert [low, high] == pytest.approx(box)
            else:  # no bound is needed where no solution is
                assert low <= box[0] <= box[1] <= high
                assert not of_classes or (low == 0.0, high == 0.0) == (y > 0.0, y < 0.0)


def test_every_loss_has_the_code_of_its_place_and_others_are_refused():
    assert [loss.code for loss in LOSS_TYPES] == list(range(len(LOSS_TYPES)))
    assert {type(loss) for loss in LOSSES} <= set(LOSS_TYPES)  # test_losses has the others

    @dataclass(frozen=True)
    class Stray:
        code: int
        parameter: float = 0.0

    for code in (0, 1, 2, -1):
        with pytest.raises(ValueError, match=r"^loss=.*Stray.* is no loss that compiled loops have"):
            loop_arguments(Stray(code))


SOURCE = Path(asset_svm.__file__).parent
ASKS = re.compile(
    r"isinstance\([^)]*\b(Hinge|EpsilonInsensitive|Formula|Gaussian|Laplacian)\b"
    r"|kernel\.name (==|!=|in|not in) |kernel == \"|callable\([a-z_.]*kernel\.name\)"
)


def test_nobody_asks_a_loss_or_kernel_for_its_type():
    """But the folders of losses and of kernels themselves."""
    files = [path for path in SOURCE.rglob("*.py") if path.parent.name not in ("losses", "kernels")]
    assert len(files) > 100
    found = [path.name for path in files if ASKS.search(path.read_text())]
    assert found == ["checks.py"], 'there kernel="precomputed" gets an answer of its own'


def test_kinks_by_name():
    """The strict inequalities of the paper's Table 1: at a kink the slope is 0."""
    hinge, tube = Hinge(), EpsilonInsensitive(0.5)
    assert hinge.slope(1.0, 1.0) == 0 and hinge.slope(-1.0, -1.0) == 0
    assert hinge.slope(1.0, np.nextafter(1, 0)) == -1 and hinge.slope(-1.0, -0.999) == 1
    assert tube.slope(1.0, 0.5) == 0 and tube.slope(1.0, 1.5) == 0
    assert tube.slope(1.0, 0.49) == -1 and tube.slope(1.0, 1.51) == 1
    absolute = EpsilonInsensitive(0.0)
    assert absolute.slope(2.0, 2.0) == 0
    assert absolute.value(2.0, -1.0) == 3.0


def test_radii_are_those_of_the_paper():
    assert Hinge().radius(0.25, 1.0) == 2.0
    assert EpsilonInsensitive(0.5).radius(0.5, 2.5) == pytest.approx(np.sqrt(8.0))
    assert EpsilonInsensitive(0.5).radius(0.5, 0.5) == 0.0
    assert EpsilonInsensitive(0.5).radius(0.5, 0.2) == 0.0
    assert Hinge().intercept_bound(1.0, 3.0) == 4.0
    assert EpsilonInsensitive(0.5).intercept_bound(2.0, 3.0) == 5.5


def test_without_an_intercept_the_size_of_the_feasible_set_is_its_radius():
    assert FeasibleSet(3.0).size == 3.0
    assert FeasibleSet(3.0, 4.0).size == 5.0


def lengths(rule, *steps):
    """eta_j of these steps j, as the compiled loops have them."""
    return [step_length(rule.scale, rule.power, rule.horizon, j) for j in steps]


def test_steps_are_the_papers():
    robust = RobustStep(size=6.0, gradient_bound=2.0)
    assert lengths(robust, 1, 4, 9) == [3.0, 1.5, 1.0]
    assert lengths(RobustStep(6.0, 2.0, step_scale=0.1), 4) == pytest.approx([0.15])
    strong = StrongStep(lam=0.5)
    assert lengths(strong, 1, 2, 4) == [2.0, 1.0, 0.5]
    assert robust.metric is None and strong.metric is None


def test_gradient_bound_is_the_papers_estimate():
    alone, y = np.array([25.0, 0.0]), np.array([1.0, -1.0])  # |v|^2 of two rows
    norms = alone + 1.0  # with an intercept
    assert gradient_bound(Hinge(), norms, y) == pytest.approx(np.sqrt(27 / 2))
    assert gradient_bound(Hinge(), alone, y) == pytest.approx(np.sqrt(25 / 2))
    # No slope is active at (0, 0): slopes of 1 stand in.
    assert gradient_bound(EpsilonInsensitive(2.0), norms, y) == pytest.approx(np.sqrt(27 / 2))
    only = gradient_bound(EpsilonInsensitive(0.5), norms, np.array([0.1, 1.0]))
    assert only == pytest.approx(np.sqrt(1 / 2))
    weighted = gradient_bound(Hinge(), norms, y, weight=np.array([2.0, 0.0]))
    assert weighted == pytest.approx(np.sqrt(4 * 26 / 2))


@given(start=st.integers(0, 200_000), length=st.integers(0, 3000), cut=st.integers(0, 3000))
def test_orders_are_functions_of_the_step_alone(start, length, cut):
    for order in (UniformOrder(100, 7), ShuffledOrder(1000, 7), UniformOrder(3, 7, np.ones(3))):
        cut = min(cut, length)
        whole = order.rows(start, start + length)
        parts = [order.rows(start, start + cut), order.rows(start + cut, start + length)]
        np.testing.assert_array_equal(whole, np.concatenate(parts))
        assert len(whole) == length


def test_uniform_order_follows_the_weights_and_shuffling_visits_every_row():
    drawn = UniformOrder(4, 0, np.array([1.0, 0.0, 2.0, 1.0])).rows(0, 40_000)
    counts = np.bincount(drawn, minlength=4)
    assert counts[1] == 0
    # 20 000 expected, standard deviation 100.
    assert abs(counts[2] - 20_000) < 500
    shuffled = ShuffledOrder(50, 3)
    for epoch in range(3):
        rows = shuffled.rows(50 * epoch, 50 * (epoch + 1))
        np.testing.assert_array_equal(np.sort(rows), np.arange(50))
    assert (shuffled.rows(0, 50) != shuffled.rows(50, 100)).any()
