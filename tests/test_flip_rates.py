"""Tests of flip rates and of the error corrected for them."""

from __future__ import annotations

import numpy as np
import pytest

import lns
from lns.errors import InvalidInput
from lns.flip_rates import FlipRates, check_rates, corrected_error, estimate_flip_rates, rates_from_scores


@pytest.mark.parametrize("rates", [(0.0, 0.0), (0.3, 0.0), (0.0, 0.4), (0.2, 0.35)])
def test_the_corrected_error_is_the_clean_error_in_the_mean(rates):
    """Tests against the expectation over the noise, worked out from clean confusion shares."""
    # 30 % true positives; the classifier misses 10 % of them and takes 25 % of the negatives for positive.
    positive, miss, alarm = 0.3, 0.1, 0.25
    # Shares of (label, prediction) after the noise.
    labelled_negative = (1 - positive) * (1 - rates[0]) + positive * rates[1]
    wrong_negative = (
        (1 - positive) * (1 - rates[0]) * alarm + positive * rates[1] * (1 - miss)
    ) / labelled_negative
    wrong_positive = (positive * (1 - rates[1]) * miss + (1 - positive) * rates[0] * (1 - alarm)) / (
        1 - labelled_negative
    )
    clean = positive * miss + (1 - positive) * alarm
    assert corrected_error(wrong_negative, wrong_positive, labelled_negative, rates) == pytest.approx(clean)


def test_the_corrected_error_follows_lemma_1_example_by_example():
    """Tests against the mean of the corrected loss written out for every example."""
    rng = np.random.default_rng(0)
    y, guess = rng.choice([-1, 1], 200, p=[0.4, 0.6]), rng.choice([-1, 1], 200)
    rho = {-1: 0.15, 1: 0.3}
    slow = np.mean(
        [
            ((1 - rho[-label]) * (g != label) - rho[label] * (g != -label)) / (1 - 0.15 - 0.3)
            for label, g in zip(y.tolist(), guess.tolist(), strict=True)
        ]
    )
    wrong = [float((guess != label)[y == label].mean()) for label in (-1, 1)]
    fast = corrected_error(*wrong, float((y < 0).mean()), FlipRates(0.15, 0.3))
    assert fast == pytest.approx(slow)


@pytest.mark.parametrize("rates", [(-0.1, 0), (0.5, 0.5), (1.0, 0), (np.nan, 0), (0.1,), "no", (0.1, "x")])
def test_impossible_rates_are_refused(rates):
    """Tests the bounds of the rates."""
    with pytest.raises(InvalidInput, match="lip rates must"):
        check_rates(rates)


def test_impossible_shares_are_refused():
    """Tests that shares above one are named."""
    with pytest.raises(InvalidInput, match="wrong_positive must lie in"):
        corrected_error(0.0, 1.5, 0.5, (0.1, 0.1))


def noisy_scores(positive, rates, rows=20_000, seed=0):
    """Scores of well separated classes, and labels with noise."""
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(rows) < positive, 1, -1)
    flip = rng.random(rows) < np.where(truth < 0, *rates)
    return truth * 3.0 + rng.normal(size=rows), np.where(flip, -truth, truth)


@pytest.mark.parametrize("positive", [0.5, 0.05])
@pytest.mark.parametrize("rates", [(0.0, 0.0), (0.3, 0.0), (0.0, 0.4), (0.25, 0.1)])
def test_rates_are_read_off_the_surest_examples(positive, rates):
    """Tests the estimate on scores that separate the true classes, also when one of them is rare."""
    scores, y = noisy_scores(positive, rates)
    found = rates_from_scores(scores, y, np.full(len(y), 1 / len(y)))
    assert found == pytest.approx(rates, abs=0.08)


def test_weights_count_as_repetitions():
    """Tests that a weight moves the estimate as copies of the row would."""
    scores, y = noisy_scores(0.5, (0.3, 0.0), rows=4000)
    weight = np.where(y > 0, 3.0, 1.0)  # as if a label +1 were three
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))
    once = rates_from_scores(scores, y, weight / weight.sum())
    copies = rates_from_scores(scores[repeated], y[repeated], np.full(len(repeated), 1 / len(repeated)))
    assert once == pytest.approx(copies, abs=0.02)


def test_estimates_never_leave_nothing():
    """Tests that labels at random give rates whose sum stays below one."""
    rng = np.random.default_rng(0)
    found = rates_from_scores(rng.normal(size=500), rng.choice([-1, 1], 500), np.full(500, 1 / 500))
    assert found.remaining > 0.05


@pytest.mark.parametrize("flip_class", [-1, 1])
def test_estimated_rates_of_real_flips(flip_class):
    """Tests that the flipped class is found, whichever it is."""
    data = lns.load_dataset("mease-wyner")
    y, _ = lns.flip_labels(data.y, 0.3, flip_class=flip_class, seed=3)
    rates = dict(zip((-1, 1), estimate_flip_rates(data.X, y), strict=True))
    assert rates[flip_class] == pytest.approx(0.3, abs=0.1)
    assert rates[-flip_class] < 0.05


def test_too_few_examples_for_the_folds():
    """Tests that a class smaller than the number of folds is refused."""
    X = np.arange(10.0)[:, None]
    with pytest.raises(InvalidInput, match="folds must be from 2 to 2"):
        estimate_flip_rates(X, np.where(np.arange(10) < 2, -1, 1))
