"""Tests of neighbourhoods: which codes their bits stand for."""

from __future__ import annotations

import numpy as np
import pytest
import slow_reference as slow
from hypothesis import given
from hypothesis import strategies as st

from lns.grid import unpack_bits
from lns.neighbourhood import fusion, stored_bits, window

TOPS = np.array([15, 15, 15, 255], dtype=np.int32)  # three weights of 4 bits and a bias of 8
CODES = np.array([7, 0, 15, 200], dtype=np.int32)


def reached(neighbourhood, codes=CODES, tops=TOPS):
    """All codes of the neighbourhood, in the order of `all_bits`."""
    return neighbourhood.codes(codes, slow.all_bits(neighbourhood.num_bits), tops)


@given(
    st.lists(st.integers(0, 15), min_size=4, max_size=4),
    st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3))),
)
def test_stored_bits_replace_the_chosen_bits(codes, chosen):
    """Tests that each answer has the chosen bits as given and all others as they were."""
    codes = np.array(codes, dtype=np.int32)
    chosen = np.array(sorted(chosen), dtype=int).reshape(-1, 2)
    if not len(chosen):
        return
    neighbourhood = stored_bits(codes, chosen)
    for bits in slow.all_bits(len(chosen))[:64]:
        expected = unpack_bits(codes, 8)
        expected[chosen[:, 0], chosen[:, 1]] = bits
        new = neighbourhood.codes(codes, bits[None, :], TOPS)[0]
        np.testing.assert_array_equal(unpack_bits(new, 8), expected)


def test_stored_bits_that_repeat_the_current_ones_change_nothing():
    """Tests the identity."""
    chosen = np.array([[0, 0], [0, 3], [3, 7]])
    current = unpack_bits(CODES, 8)[chosen[:, 0], chosen[:, 1]]
    np.testing.assert_array_equal(stored_bits(CODES, chosen).codes(CODES, current[None, :], TOPS)[0], CODES)


def test_stored_bits_may_come_in_any_order():
    """Tests that bit j of an answer is row j of the choice."""
    chosen = np.array([[3, 1], [0, 2], [3, 0]])
    new = stored_bits(np.zeros(4, dtype=np.int32), chosen).codes(
        np.zeros(4, dtype=np.int32), np.array([[1, 1, 0]]), TOPS
    )
    np.testing.assert_array_equal(new[0], [4, 0, 0, 2])


def test_a_window_covers_neighbouring_levels():
    """Tests that 2 bits are four levels from `low` on, without the cliff from 0111 to 1000."""
    levels = sorted(set(reached(window(CODES, TOPS, np.array([0]), 2, np.array([-1])))[:, 0]))
    assert levels == [6, 7, 8, 9]


@pytest.mark.parametrize(("weight", "levels"), [(1, [0, 1, 2, 3]), (2, [12, 13, 14, 15])])
def test_a_window_at_the_edge_is_pushed_inside(weight, levels):
    """Tests both ends of the grid."""
    assert (
        sorted(set(reached(window(CODES, TOPS, np.array([weight]), 2, np.array([-1])))[:, weight])) == levels
    )


def test_a_window_holds_the_current_codes():
    """Tests that staying is always among the answers."""
    codes = reached(window(CODES, TOPS, np.arange(4), 2, np.full(4, -2)))
    assert (codes == CODES).all(axis=1).any()


def test_a_window_leaves_other_weights_alone():
    """Tests that only the chosen weights move."""
    codes = reached(window(CODES, TOPS, np.array([3]), 3, np.array([-4])))
    assert (codes[:, :3] == CODES[:3]).all()
    assert sorted(set(codes[:, 3])) == list(range(196, 204))


def test_a_window_is_no_wider_than_the_grid():
    """Tests that a weight of 2 bits gets 2 bits, however many are asked for."""
    tops = np.array([3, 3], dtype=np.int32)
    neighbourhood = window(np.array([1, 3], dtype=np.int32), tops, np.array([0]), 5, np.array([-9]))
    assert neighbourhood.num_bits == 2


def test_a_narrow_weight_beside_a_wide_one_gets_its_own_levels():
    """Tests that no answer needs clipping when bit depths differ: each level of the weight comes once."""
    tops = np.array([1, 255], dtype=np.int32)
    neighbourhood = window(np.array([0, 9], dtype=np.int32), tops, np.arange(2), 3, np.zeros(2, dtype=int))
    assert neighbourhood.num_bits == 1 + 3


def test_a_window_keeps_weights_and_offsets_together():
    """Tests that weights may come in any order."""
    codes = reached(window(CODES, TOPS, np.array([3, 0]), 1, np.array([10, 0])))
    assert sorted(set(codes[:, 0])) == [7, 8]
    assert sorted(set(codes[:, 3])) == [210, 211]


def test_fusion_has_one_bit_per_proposal():
    """Tests that each bit takes one proposal's change, and overlapping changes add up."""
    proposals = np.array([[9, 0, 15, 200], [8, 3, 15, 190]], dtype=np.int32)
    codes = reached(fusion(CODES, proposals))
    np.testing.assert_array_equal(codes, [CODES, proposals[1], proposals[0], [10, 3, 15, 190]])


def test_fusion_of_the_current_codes_moves_nothing():
    """Tests a proposal without a change."""
    neighbourhood = fusion(CODES, CODES[None, :])
    assert len(neighbourhood.weights) == 0
    np.testing.assert_array_equal(reached(neighbourhood), [CODES, CODES])


def test_answers_outside_the_grid_are_clipped():
    """Tests that added changes never leave the grid."""
    proposals = np.array([[15, 0, 15, 200], [14, 0, 15, 200]], dtype=np.int32)
    assert reached(fusion(CODES, proposals))[-1, 0] == 15


@pytest.mark.parametrize(
    "neighbourhood",
    [
        stored_bits(CODES, np.array([[0, 0], [0, 3], [3, 7]])),
        window(CODES, TOPS, np.arange(4), 2, np.array([-1, -1, -1, -3])),
        fusion(CODES, np.array([[9, 0, 15, 200], [8, 3, 15, 190]], dtype=np.int32)),
    ],
    ids=["stored_bits", "window", "fusion"],
)
def test_the_start_leaves_the_codes_as_they_are(neighbourhood):
    """Tests the bits from which a solver may begin."""
    np.testing.assert_array_equal(neighbourhood.codes(CODES, neighbourhood.start[None, :], TOPS), [CODES])


def test_the_reach_is_the_longest_way():
    """Tests the reach of windows below and above the current level."""
    neighbourhood = window(CODES, TOPS, np.array([0, 3]), 2, np.array([-1, -3]))
    np.testing.assert_array_equal(neighbourhood.reach, [2, 3])
