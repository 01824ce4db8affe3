"""Tests of neighbourhoods: which codes their bits stand for."""

from __future__ import annotations

import numpy as np
import pytest
import slow_reference as slow
from hypothesis import given
from hypothesis import strategies as st

from lns.grid import unpack_bits
from lns.neighbourhood import stored_bits, towards, window

TOPS = np.array([15, 15, 15, 255], dtype=np.int32)  # three weights of 4 bits and a bias of 8
CODES = np.array([7, 0, 15, 200], dtype=np.int32)
OTHER = np.array([9, 0, 3, 0], dtype=np.int32)


def reached(neighbourhood, codes=CODES):
    """All codes of the neighbourhood, in the order of `all_bits`."""
    return neighbourhood.codes(codes, slow.all_bits(neighbourhood.num_bits))


def levels_of_a_weight(neighbourhood, weight):
    """The levels that a weight may take."""
    return np.unique(reached(neighbourhood)[:, weight]).tolist()


places = st.tuples(*[st.floats(0, int(top)) | st.integers(0, int(top)).map(float) for top in TOPS])
points = places.map(np.array)  # codes that need not be whole
whole = st.tuples(*[st.integers(0, int(top)) for top in TOPS]).map(
    lambda codes: np.array(codes, dtype=np.int32)
)


@given(whole, st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_stored_bits_replace_the_chosen_bits(codes, chosen):
    """Tests that each answer has the chosen bits as given and all others as they were."""
    chosen = np.array(sorted(chosen))
    neighbourhood = stored_bits(codes, chosen)
    for bits in slow.all_bits(len(chosen))[:64]:
        expected = unpack_bits(codes, 8)
        expected[chosen[:, 0], chosen[:, 1]] = bits
        new = neighbourhood.codes(codes, bits[None, :])[0]
        np.testing.assert_array_equal(unpack_bits(new, 8), expected)


def test_stored_bits_may_come_in_any_order():
    """Tests that bit j of an answer is row j of the choice."""
    chosen = np.array([[3, 1], [0, 2], [3, 0]])
    zeros = np.zeros(4, dtype=np.int32)
    new = stored_bits(zeros, chosen).codes(zeros, np.array([[1, 1, 0]]))
    np.testing.assert_array_equal(new[0], [4, 0, 0, 2])


@given(points)
def test_a_window_holds_the_levels_around_each_place(levels):
    """Tests the level below and the level above, without the cliff from 0111 to 1000."""
    neighbourhood = window(CODES, levels, TOPS, np.arange(4))
    assert neighbourhood.num_bits == 4
    for k in range(4):
        below, above = levels_of_a_weight(neighbourhood, k)
        assert above == below + 1
        assert {int(np.floor(levels[k])), int(np.ceil(levels[k]))} <= {below, above}


@given(points)
def test_a_window_stays_on_the_grid(levels):
    """Tests that no answer is below the first level or above the last."""
    every = reached(window(CODES, levels, TOPS, np.arange(4)))
    assert ((every >= 0) & (every <= TOPS)).all()


@pytest.mark.parametrize(("place", "levels"), [(0.0, [0, 1]), (15.0, [14, 15]), (14.5, [14, 15])])
def test_a_window_at_the_edge_is_pushed_inside(place, levels):
    """Tests both ends of the grid."""
    neighbourhood = window(CODES, np.full(4, place), TOPS, np.array([1]))
    assert levels_of_a_weight(neighbourhood, 1) == levels


@given(whole, points)
def test_a_window_begins_next_to_the_current_codes(codes, levels):
    """Tests that no other level of a weight is nearer to its code than that of its first bit."""
    neighbourhood = window(codes, levels, TOPS, np.arange(4))
    start = neighbourhood.codes(codes, neighbourhood.start[None, :])
    nearest = np.abs(reached(neighbourhood, codes) - codes).min(axis=0)
    np.testing.assert_array_equal(np.abs(start[0] - codes), nearest)


def test_a_window_leaves_other_weights_alone():
    """Tests that only the chosen weight moves, wherever the others would like to go."""
    codes = reached(window(CODES, np.array([2.5, 3.5, 4.5, 196.5]), TOPS, np.array([3])))
    assert (codes[:, :3] == CODES[:3]).all()
    assert sorted(codes[:, 3]) == [196, 197]


def test_a_window_keeps_weights_and_places_together():
    """Tests that weights may come in any order."""
    neighbourhood = window(CODES, np.array([2.5, 3.5, 4.5, 196.5]), TOPS, np.array([3, 0]))
    assert levels_of_a_weight(neighbourhood, 0) == [2, 3]
    assert levels_of_a_weight(neighbourhood, 3) == [196, 197]


def test_a_merge_is_here_or_there_for_each_weight():
    """Tests all combinations of two weights, the smallest and the largest of steps."""
    every = reached(towards(CODES, OTHER, np.array([3, 0])))
    assert sorted(map(tuple, every.tolist())) == [
        (7, 0, 15, 0),
        (7, 0, 15, 200),
        (9, 0, 15, 0),
        (9, 0, 15, 200),
    ]


def test_all_bits_of_a_merge_give_the_other_solution():
    """Tests every weight in which the two differ, with bits as samplers return them."""
    neighbourhood = towards(CODES, OTHER, np.flatnonzero(CODES != OTHER))
    np.testing.assert_array_equal(neighbourhood.codes(CODES, np.ones((1, 3), dtype=np.int8)), [OTHER])


NEIGHBOURHOODS = {
    "stored bits": stored_bits(CODES, np.array([[0, 0], [0, 3], [2, 1], [3, 7]])),
    "window": window(CODES, np.array([6.75, 0.0, 15.0, 200.5]), TOPS, np.array([0, 1, 2, 3])),
    "merge": towards(CODES, OTHER, np.array([0, 2, 3])),
}


@pytest.mark.parametrize("name", NEIGHBOURHOODS)
def test_the_start_leaves_the_codes_as_they_are(name):
    """Tests the bits from which a solver may begin, where the current codes are among the answers."""
    neighbourhood = NEIGHBOURHOODS[name]
    np.testing.assert_array_equal(neighbourhood.codes(CODES, neighbourhood.start[None, :]), [CODES])


@pytest.mark.parametrize("name", NEIGHBOURHOODS)
@given(levels=points)
def test_the_reach_is_the_longest_way(name, levels):
    """Tests the reach from any place against that of all answers."""
    neighbourhood = NEIGHBOURHOODS[name]
    ways = np.abs(reached(neighbourhood) - levels)[:, neighbourhood.weights]
    np.testing.assert_allclose(neighbourhood.reach(levels), ways.max(axis=0))
