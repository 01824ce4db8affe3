"""Tests of how settings are compared and chosen, on numbers made up by hand."""

from __future__ import annotations

import numpy as np
import pytest

from lns.flip_rates import FlipRates
from lns.paper.folds import Source, sheet
from lns.paper.protocols import (
    best,
    by_clean_error,
    by_corrected_error,
    by_expected_flips,
    estimated_rates,
    known_rates,
)
from lns.paper.scores import Score, Summary, key_of, score, summaries


def made_up(name, errors, wrong=(0, 0), low=(0, 0), tests=100):
    """A score of a setting on one fold: 50 labelled -1 and 50 labelled +1."""
    return Score({"name": name}, errors, tests, wrong, (50, 50), 900, 0.1, low=low)


def test_errors_are_means_over_folds():
    """Tests the mean of percentages, and the setting that the paper's protocol takes."""
    found = summaries([made_up("a", 4), made_up("b", 3), made_up("a", 0), made_up("b", 3)])
    assert [one.error for one in found] == [2.0, 3.0]
    assert best(found, by_clean_error, 1)[0].setting == {"name": "a"}
    assert [one.setting["name"] for one in best(found, by_clean_error, 5)] == ["a", "b"]


def test_of_equals_the_first_counts():
    """Tests that ties do not depend on anything else."""
    found = summaries([made_up("a", 3), made_up("b", 3)])
    assert best(found, by_clean_error, 1)[0].setting == {"name": "a"}


def test_the_honest_choice_does_not_see_clean_errors():
    """Tests that clean errors change nothing, and that the rates do.

    With 60 % of 50 negatives flipped, 20 examples are labelled -1 and 80 labelled +1. Noisy labels count 30
    errors of the true classifier, and 20 of the one that answers +1 to everything.
    """
    for clean in (0, 90):
        found = [
            Summary((Score({"name": name}, errors, 100, wrong, (20, 80), 900, 0.1),))
            for name, errors, wrong in (("always", 90 - clean, (20, 0)), ("true", clean, (0, 30)))
        ]
        assert best(found, by_corrected_error(FlipRates(0.6, 0.0)), 1)[0].setting == {"name": "true"}
        assert best(found, by_corrected_error(FlipRates(0.0, 0.0)), 1)[0].setting == {"name": "always"}


def test_expected_f1_is_the_true_one_in_the_mean():
    """Tests the estimate against flips that are known, for a region that holds 80 % of the negatives.

    Of 600 negatives a quarter is flipped: 450 labelled -1, 150 + 400 labelled +1. The region holds 480 of
    the negatives and 40 positives, so 120 flips are found among 160 flagged: F1 = 240 / (150 + 160).
    """
    one = Score({}, 0, 1000, (0, 0), (450, 550), 9000, 0.1, low=(360, 160))
    assert Summary((one,)).expected_f1(FlipRates(0.25, 0.0)) == pytest.approx(240 / 310)
    flagging_negatives = Score({}, 0, 1000, (0, 0), (450, 550), 9000, 0.1, low=(360, 160), high=(20, 0))
    assert Summary((flagging_negatives,)).expected_f1(FlipRates(0.25, 0.0)) == pytest.approx(240 / 330)
    assert Summary((one,)).expected_f1(FlipRates(0.0, 0.0)) == 0.0


def test_recovery_prefers_flags_that_meet_the_flips():
    """Tests the choice between a setting that flags too much and one that flags the right examples."""
    found = summaries([made_up("all", 0, low=(50, 50)), made_up("right", 0, low=(50, 25))])
    assert best(found, by_expected_flips(FlipRates(1 / 3, 0.0)), 1)[0].setting == {"name": "right"}


def test_rates_are_known_or_estimated_from_the_noisy_labels():
    """Tests both on a set whose classes are far apart."""
    part = sheet(Source("mease-wyner")).part(30, 0)
    assert known_rates(30) == (0.3, 0.0)
    rates = estimated_rates(part, 0)
    assert rates.negative == pytest.approx(0.3, abs=0.08)
    assert rates.positive < 0.05


def test_scores_survive_as_plain_values():
    """Tests the way through JSON, and that a guess of 0 is wrong on either label."""
    part = sheet(Source("mease-wyner")).part(20, 0)
    guess = part.test.y.astype(float)
    guess[:2] = 0
    found = score(part, guess, {"lam": 0.1}, 1.5)
    assert (found.errors, found.tests) == (2, len(guess))
    assert sum(found.noisy_tests) == len(guess)
    assert sum(found.noisy_wrong) == int((guess * part.noisy <= 0).sum())
    values = {k: list(v) if isinstance(v, tuple) else v for k, v in found.as_dict().items()}
    assert Score.from_dict(values) == found
    assert key_of({"b": 1, "a": 2}) == key_of({"a": 2, "b": 1}) == "a=2, b=1"
    assert np.isclose(found.error_percent, 100 * 2 / len(guess))
