"""Tests of the rivals' losses: values, derivatives, and the normalisation of t-logistic regression."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lns.errors import InvalidInput
from lns.paper.rivals import losses

LOSSES = {
    "logistic": losses.logistic,
    "square": losses.square,
    "smoothed hinge": losses.smoothed_hinge,
    "sigmoid": losses.sigmoid,
    "probit": losses.probit,
    "t-logistic 1.1": losses.t_logistic(1.1),
    "t-logistic 1.6": losses.t_logistic(1.6),
    "t-logistic 2": losses.t_logistic(2.0),
}


@pytest.fixture(params=LOSSES)
def loss(request):
    """Every loss."""
    return LOSSES[request.param]


def test_slopes_are_the_derivatives(loss):
    """Tests the slope against central differences, on the bends, too."""
    m = np.concatenate([np.linspace(-30, 30, 997), [0.0, 1.0]])
    h = 1e-5
    numeric = (loss(m + h)[0] - loss(m - h)[0]) / (2 * h)
    np.testing.assert_allclose(loss(m)[1], numeric, atol=5e-6)


@pytest.mark.parametrize("name", LOSSES)
@given(m=st.floats(-50, 50))
def test_slopes_are_the_derivatives_anywhere(name, m):
    """Tests the slope against central differences at margins that nobody chose."""
    h = 1e-5
    above, below = LOSSES[name](np.array([m + h, m - h]))[0]
    assert LOSSES[name](np.array([m]))[1][0] == pytest.approx((above - below) / (2 * h), abs=1e-5)


def test_far_margins_stay_finite(loss):
    """Tests that nothing overflows, and that a good margin never costs more than a bad one."""
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        value, slope = loss(np.array([-1e5, -800.0, 800.0, 1e5]))
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()
    assert value[1] >= value[2]


@pytest.mark.parametrize(
    ("name", "at_minus_two", "at_zero", "at_one"),
    [
        ("logistic", 2.126928011, np.log(2), 0.313261688),
        ("square", 9.0, 1.0, 0.0),
        ("smoothed hinge", 2.5, 0.5, 0.0),
        ("sigmoid", 0.880797078, 0.5, 0.268941421),
        ("probit", 0.977249868, 0.5, 0.158655254),
    ],
)
def test_known_values(name, at_minus_two, at_zero, at_one):
    """Tests each loss at three margins worked out from its definition."""
    value, _ = LOSSES[name](np.array([-2.0, 0.0, 1.0]))
    np.testing.assert_allclose(value, [at_minus_two, at_zero, at_one], rtol=1e-8, atol=1e-12)


# ---- t-logistic ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [1.05, 1.3, 1.7, 2.0])
def test_the_normaliser_makes_probabilities(t):
    """Tests that exp_t(±m/2 - G_t) sum to one and are the probabilities behind the loss."""
    m = np.linspace(0.0, 40.0, 101)
    Z, _ = losses.t_partition(m, t)
    log_t = lambda x: (x ** (1 - t) - 1) / (1 - t)  # noqa: E731
    G = m / 2 - log_t(1 / Z)
    right, wrong = losses.exp_t(m / 2 - G, t), losses.exp_t(-m / 2 - G, t)
    np.testing.assert_allclose(right + wrong, 1.0, rtol=1e-12)
    np.testing.assert_allclose(losses.t_logistic_exactly(m, t)[0], -np.log(right), atol=1e-12)
    np.testing.assert_allclose(losses.t_logistic_exactly(-m, t)[0], -np.log(wrong), rtol=1e-10)


def test_t_two_has_a_closed_form():
    """Tests t = 2, where 1/(1 - m/2 + G) + 1/(1 + m/2 + G) = 1 gives G = sqrt(1 + m²/4)."""
    m = np.linspace(-20, 20, 81)
    p = 1 / (1 - m / 2 + np.sqrt(1 + m**2 / 4))
    np.testing.assert_allclose(LOSSES["t-logistic 2"](m)[0], -np.log(p), atol=1e-10)


def test_t_near_one_is_logistic():
    """Tests that the family ends in logistic regression."""
    m = np.linspace(-5, 5, 41)
    np.testing.assert_allclose(losses.t_logistic(1.0001)(m)[0], losses.logistic(m)[0], atol=2e-3)


@pytest.mark.parametrize("t", [1.1, 1.5, 2.0])
def test_the_table_is_as_good_as_the_fixed_point(t):
    """Tests values and slopes looked up between the knots."""
    m = np.sinh(np.random.default_rng(0).uniform(-12, 12, 20_000))
    for looked_up, exact in zip(losses.t_logistic(t)(m), losses.t_logistic_exactly(m, t), strict=True):
        np.testing.assert_allclose(looked_up, exact, atol=1e-9)


def test_bad_examples_pull_less_the_larger_t_is():
    """Tests what t is for: the slope of a hopeless margin."""
    pulls = [-losses.t_logistic(t)(np.array([-50.0]))[1][0] for t in (1.1, 1.5, 2.0)]
    assert 1.0 > pulls[0] > pulls[1] > pulls[2] > 0.0


@pytest.mark.parametrize("t", [1.0, 2.1])
def test_other_t_are_refused(t):
    """Tests both ends of the range of t."""
    with pytest.raises(InvalidInput, match=r"must be in \(1, 2\]"):
        losses.t_logistic(t)
