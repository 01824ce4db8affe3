"""Tests of the rule that bounds q, against the paper's table."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from lns.errors import InvalidInput
from lns.q_range import effective_error, q_candidates, q_lower_bound

TABLE = Path(__file__).parent / "data" / "q_lower_bounds.csv"
# P(y = -1) that each row of the table was computed with: that of the paper's training folds, 63 % of the data
# (626 and 655 of 1,260 for the synthetic sets).
NEGATIVE_SHARE = {
    "Long-Servedio": 626 / 1260,
    "Mease-Wyner": 655 / 1260,
    "covertype": 0.636283,
    "mushrooms": 0.514554,
    "adult9": 0.763121,
    "web8": 0.970717,
}
# Examples and P(y = -1) of the whole data sets, from the paper's summary of the data.
WHOLE = {
    "Long-Servedio": (2000, 0.5),
    "Mease-Wyner": (2000, 0.502),
    "covertype": (581012, 0.6354),
    "mushrooms": (8124, 0.518),
    "adult9": (48842, 0.7607),
    "web8": (59245, 0.9708),
}


def table():
    """Rows of the table: name and bounds at 0 to 40 % noise."""
    with TABLE.open() as file:
        return [
            (row["name"], {k: float(row[str(k)]) for k in (0, 10, 20, 30, 40)})
            for row in csv.DictReader(file)
        ]


def error_of_bound(bound):
    """The error estimate behind a bound without noise: inverse of `q_lower_bound`."""
    return 1.0 / (1.0 - bound) ** 2


@pytest.mark.parametrize("noise", [10, 20, 30, 40])
@pytest.mark.parametrize(("name", "bounds"), table(), ids=[name for name, _ in table()])
def test_the_bounds_of_the_paper(name, bounds, noise):
    """Tests that the 0 % bound and the class balance give the bounds with noise to three decimals."""
    error = error_of_bound(bounds[0])
    assert q_lower_bound(error, noise / 100, NEGATIVE_SHARE[name]) == pytest.approx(bounds[noise], abs=5e-4)


@pytest.mark.parametrize(("name", "bounds"), table(), ids=[name for name, _ in table()])
def test_one_class_balance_explains_a_row(name, bounds):
    """Tests that all four bounds of a row imply the same ν per noise rate, so that ν = rate x P(y = -1)."""
    error = error_of_bound(bounds[0])
    implied = [(error_of_bound(bounds[k]) - error) / (1 - 2 * error) / (k / 100) for k in (10, 20, 30, 40)]
    np.testing.assert_allclose(implied, NEGATIVE_SHARE[name], atol=2e-5)


@pytest.mark.parametrize("name", WHOLE)
def test_the_class_balances_are_those_of_the_data(name):
    """Tests that the training folds' balance is within sampling error of the whole data's."""
    size, share = WHOLE[name]
    deviation = np.sqrt(share * (1 - share) / (0.63 * size))
    assert abs(NEGATIVE_SHARE[name] - share) < 3 * deviation


def test_noise_raises_the_effective_error():
    """Tests β - 2βν + ν on a case worked out by hand: 0.2 - 0.04 + 0.1."""
    assert effective_error(0.2, noise=0.2, negative_share=0.5) == pytest.approx(0.26)


def test_the_bound_inverts():
    """Tests that `error_of_bound` undoes `q_lower_bound`."""
    assert error_of_bound(q_lower_bound(0.07)) == pytest.approx(0.07)


def test_without_any_error_the_bound_is_the_least():
    """Tests the paper's stand-in for minus infinity."""
    assert q_lower_bound(0.0) == -1000.0


def test_ten_candidates_from_the_bound_to_zero():
    """Tests that the candidates are equally spaced and include both ends."""
    candidates = q_candidates(0.25)
    np.testing.assert_allclose(candidates, np.linspace(-1, 0, 10))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"error": 0.5}, r"^error must lie in \[0, 0\.5\)\. Got 0\.5\.$"),
        ({"error": -0.1}, r"^error must lie in"),
        ({"error": np.nan}, r"^error must lie in .* Got nan"),
        ({"error": 0.1, "noise": 1.0}, r"^noise must lie in \[0, 1\.0\)\. Got 1\.0\.$"),
        ({"error": 0.1, "negative_share": 1.1}, r"^negative_share must lie in \[0, 1\]\. Got 1\.1\.$"),
    ],
)
def test_rates_out_of_range_are_refused(arguments, message):
    """Tests that each rate is named with its range and its value."""
    with pytest.raises(InvalidInput, match=message):
        q_lower_bound(**arguments)


@pytest.mark.parametrize(
    "arguments", [{"error": 0.0}, {"error": 0.4999}, {"error": 0.1, "negative_share": 1.0}]
)
def test_rates_on_the_edge_are_accepted(arguments):
    """Tests the values just inside the ranges."""
    assert q_lower_bound(**arguments) <= 0


def test_a_single_candidate_is_refused():
    """Tests that there are at least the two ends."""
    with pytest.raises(InvalidInput, match=r"^count must be at least 2\. Got 1\.$"):
        q_candidates(0.1, count=1)
    assert len(q_candidates(0.1, count=2)) == 2
