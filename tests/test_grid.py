"""Tests of levels, codes and bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_cases import are_levels

from lns.errors import InvalidInput
from lns.grid import (
    MAX_BITS,
    Grid,
    check_bits,
    pack_bits,
    target_grid,
    unpack_bits,
    weight_bound,
    weights_around,
)


def test_levels_are_equally_spaced_between_the_ends():
    """Tests that code c of 2^d levels has the value lo + (hi - lo) c / (2^d - 1)."""
    grid = Grid.make(-1.0, 2.0, bits=2, size=1)
    assert [grid.values([c])[0] for c in range(4)] == [-1.0, 0.0, 1.0, 2.0]


def test_each_variable_has_its_own_interval():
    """Tests that the ends may be arrays with one interval per variable."""
    grid = Grid.make([0.0, -8.0], [1.0, 8.0], bits=1, size=2)
    np.testing.assert_array_equal(grid.values([1, 0]), [1.0, -8.0])


@given(st.integers(1, MAX_BITS), st.floats(-100, 100), st.floats(1e-3, 100), st.data())
def test_codes_invert_values(bits, lo, length, data):
    """Tests that the nearest code of a level is its own code, at every bit depth."""
    grid = Grid.make(lo, lo + length, bits, size=1)
    code = data.draw(st.integers(0, grid.top))
    assert grid.codes(grid.values([code]))[0] == code


def test_values_between_levels_go_to_the_nearest():
    """Tests that rounding goes to the nearest level on both sides of the midpoint."""
    grid = Grid.make(0.0, 3.0, bits=2, size=1)
    assert [grid.codes([v])[0] for v in (1.49, 1.51)] == [1, 2]


def test_values_outside_the_interval_go_to_its_end():
    """Tests that codes never leave the grid."""
    grid = Grid.make(0.0, 3.0, bits=2, size=2)
    np.testing.assert_array_equal(grid.codes([-1e300, 1e300]), [0, 3])


def test_bit_values_add_up_to_the_level():
    """Tests that the levels are lo plus the values of the bits that are set."""
    grid = Grid.make([-1.0, 5.0], [1.0, 9.0], bits=3, size=2)
    codes = np.array([5, 3])
    added = grid.lo + (unpack_bits(codes, 3) * grid.bit_values).sum(axis=1)
    np.testing.assert_allclose(added, grid.values(codes))


@given(st.lists(st.integers(0, 2**MAX_BITS - 1), min_size=1))
def test_pack_bits_inverts_unpack_bits(codes):
    """Tests that bits and codes carry the same information up to the largest bit depth."""
    np.testing.assert_array_equal(pack_bits(unpack_bits(np.array(codes), MAX_BITS)), codes)


def test_the_first_bit_is_the_least_significant():
    """Tests the order of the bits."""
    np.testing.assert_array_equal(unpack_bits(np.array([1, 4]), 3), [[1, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize("bits", [0, MAX_BITS + 1, 4.0, "4", True, None])
def test_bits_out_of_range_are_refused(bits):
    """Tests that a bit depth is an int between 1 and the largest one, named in the message."""
    with pytest.raises(InvalidInput, match=rf"^weight_bits must be an int in \[1, {MAX_BITS}\]\. Got .*\.$"):
        check_bits("weight_bits", bits)


@pytest.mark.parametrize("bits", [1, MAX_BITS, np.int8(3)])
def test_bits_on_the_edge_are_accepted(bits):
    """Tests that both ends of the range and numpy integers pass."""
    assert check_bits("weight_bits", bits) == bits


@pytest.mark.parametrize(
    ("lo", "hi", "message"),
    [
        (1.0, 0.0, r"must have lo < hi\. Got lo = 1\.0, hi = 0\.0 at index 0"),
        (1.0, 1.0, r"must have lo < hi"),
        ([0.0, 3.0], [1.0, 2.0], r"Got lo = 3\.0, hi = 2\.0 at index 1"),
        (np.nan, 1.0, r"must be finite\. Got nan"),
        (0.0, np.inf, r"must be finite\. Got inf"),
        ([0.0, 0.0, 0.0], 1.0, r"two arrays of length 2\. Got shape \(3,\)"),
        ([[0.0, 0.0]], 1.0, r"Got shape \(1, 2\)"),
        ("low", 1.0, r"must hold two numbers or two arrays of numbers"),
        (1j, 2.0, r"must hold two numbers or two arrays of numbers"),
        (None, 1.0, r"must be finite|must hold two numbers"),
    ],
)
def test_bad_intervals_are_refused(lo, hi, message):
    """Tests that reversed, non-finite or misshapen intervals are named with their value."""
    with pytest.raises(InvalidInput, match=rf"^weight_range .*{message}"):
        Grid.make(lo, hi, 2, 2, "weight_range")


def test_grids_do_not_alias_the_arrays_given():
    """Tests that changing the caller's ends afterwards changes nothing."""
    lo = np.array([0.0, 0.0])
    grid = Grid.make(lo, 1.0, 2, 2)
    lo[:] = 9.0
    np.testing.assert_array_equal(grid.lo, [0.0, 0.0])


@given(st.integers(1, 8), st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=5), st.floats(1e-9, 1e3))
def test_zero_is_a_level_of_automatic_grids(bits, w, lam):
    """Tests that zero is a level of every automatic weight grid."""
    w = np.array(w)
    grid = weights_around(w, np.full(len(w), 0.01), lam, bits)
    assert are_levels(grid, np.zeros(len(w))).all()


@given(st.integers(1, 8), st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=5), st.floats(1e-9, 1e3))
def test_the_weights_that_automatic_grids_are_laid_around_are_levels(bits, w, lam):
    """Tests weights that the bound allows, at every number of bits; those near zero may count as zero."""
    w = np.clip(np.where(np.abs(w) < 1e-9, 0.0, w), -weight_bound(lam), weight_bound(lam))
    assert are_levels(weights_around(w, np.full(len(w), 0.01), lam, bits), w).all()


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5), st.floats(1e-9, 1e3))
def test_automatic_grids_respect_the_bound(w, lam):
    """Tests that no level exceeds 1/√λ."""
    grid = weights_around(np.array(w), np.full(len(w), 0.01), lam, 4)
    assert np.maximum(np.abs(grid.lo), np.abs(grid.hi)).max() <= weight_bound(lam) * (1 + 1e-9)


def test_automatic_grids_follow_the_sign_of_the_weight():
    """Tests that most levels lie on the side of zero where the continuous weight is."""
    grid = weights_around(np.array([2.0, -2.0]), np.full(2, 0.01), 0.0, 4)
    assert grid.hi[0] > -grid.lo[0]
    assert grid.hi[1] < -grid.lo[1]


def test_the_weight_bound_is_one_over_the_root_of_lambda():
    """Tests the bound for the squared norm, and that there is none without regularisation."""
    assert weight_bound(0.25) == 2.0
    assert weight_bound(0.0) == np.inf


@given(st.integers(1, 10), st.floats(0.1, 100))
def test_the_top_target_bit_says_whether_the_target_exceeds_one(bits, span):
    """Tests the trick that makes the sign of t - 1 a single bit."""
    grid = target_grid(bits, span)
    codes = np.arange(grid.top + 1)
    np.testing.assert_array_equal(grid.values(codes[:, None])[:, 0] > 1, codes >= 2 ** (bits - 1))
