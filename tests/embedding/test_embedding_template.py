"""Tests of the template: room, chains, determinism, and validity over many damaged chips."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lns.embedding import Chip, Embedding, Shape
from lns.embedding.routes import checked
from lns.embedding.template import _full_width, find_template, largest_template

CAPACITY = [
    ("chimera:8", 8, 64),
    ("chimera:8", 12, 52),
    ("chimera:8", 16, 44),
    ("chimera:16", 16, 164),
    ("pegasus:16", 16, 1108),
    ("pegasus:16", 24, 648),
    ("zephyr:15", 16, 1540),
    ("zephyr:15", 24, 1200),
]


@pytest.mark.parametrize(("name", "weights", "total"), CAPACITY)
def test_capacity(name: str, weights: int, total: int) -> None:
    """Tests that the template has room for as many logical variables as it once had."""
    found = largest_template(Chip.from_name(name), weights, 4)
    assert found is not None
    assert checked(found).shape.size >= total


@pytest.mark.parametrize(
    ("name", "weights", "first_try"),
    [("pegasus:16", 16, 764), ("pegasus:16", 24, 456), ("zephyr:15", 16, 1096), ("zephyr:15", 24, 884)],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_capacity_with_dead_qubits(name: str, weights: int, first_try: int, seed: int) -> None:
    """Tests that 2 % dead qubits leave more room than the first template had on a whole chip."""
    found = largest_template(Chip.from_name(name).damaged(0.02, 0.0, seed=seed), weights, 4)
    assert found is not None
    assert checked(found).shape.size >= first_try


def test_chimera_with_dead_qubits() -> None:
    """Tests that a damaged Chimera chip, whose lines are short of spares, keeps half of its room."""
    found = largest_template(Chip.from_name("chimera:16").damaged(0.02, 0.0, seed=0), 16, 4)
    assert found is not None
    assert checked(found).shape.size >= 80


@pytest.mark.parametrize("bits", range(1, 7))
@pytest.mark.parametrize("name", ["chimera:8", "pegasus:6", "zephyr:5"])
def test_target_bits(name: str, bits: int) -> None:
    """Tests that examples of one to six target bits have room on every topology, beside 1 and 8 weights."""
    chip = Chip.from_name(name)
    for weights in (1, 8):
        found = largest_template(chip, weights, bits)
        assert found is not None
        assert checked(found).shape.targets >= 20


def test_weights_alone() -> None:
    """Tests that a shape without examples is a clique of the weights."""
    found = find_template(Chip.from_name("pegasus:6"), Shape(10, 0))
    assert found is not None
    assert checked(found).shape == Shape(10, 0)


@pytest.mark.parametrize(("name", "weights"), [("chimera:8", 8), ("pegasus:8", 12), ("zephyr:6", 16)])
def test_chain_bound_trades_room(name: str, weights: int) -> None:
    """Tests that a bound on chains is kept, and that a looser one never has less room."""
    chip = Chip.from_name(name)
    rooms = []
    for bound in (6, 12, 20, 40, 1000):
        found = largest_template(chip, weights, 4, bound)
        if found is not None:
            assert checked(found).max_chain <= bound
        rooms.append(0 if found is None else found.shape.examples)
    assert rooms == sorted(rooms)
    whole = largest_template(chip, weights, 4)
    assert whole is not None
    assert whole.shape.examples == rooms[-1] > rooms[0]


def test_few_examples_have_short_chains() -> None:
    """Tests that a small round does not pay for the whole width of the chip."""
    chip = Chip.from_name("zephyr:8")
    lengths = []
    for examples in (1, 20, 60):
        found = find_template(chip, Shape(16, examples))
        assert found is not None
        lengths.append(checked(found).max_chain)
    assert lengths == sorted(lengths)
    assert lengths[0] <= 6


def test_no_room() -> None:
    """Tests that None is the answer where there is no room, however little of a chip is left."""
    assert find_template(Chip.from_name("chimera:4"), Shape(8, 100)) is None
    assert largest_template(Chip.from_name("chimera:2"), 40, 4) is None
    assert largest_template(Chip.from_name("chimera:2"), 4, 4, max_chain=1) is None
    one = Chip.from_lists("pegasus", (4,), [100], [])
    assert largest_template(one, 1, 4) is None


@pytest.mark.parametrize("name", ["chimera:6", "pegasus:4", "zephyr:3"])
def test_deterministic(name: str) -> None:
    """Tests that the same chip gives the same chains, computed anew."""
    chip = Chip.from_name(name).damaged(0.03, 0.01, seed=5)
    first = largest_template(chip, 6, 3)
    _full_width.cache_clear()
    assert first is not None
    assert largest_template(Chip.from_name(name).damaged(0.03, 0.01, seed=5), 6, 3) == first


CHIPS = [
    *(f"chimera:{m}" for m in (1, 2, 3, 4, 6, 8)),
    *(f"pegasus:{m}" for m in (2, 3, 4, 5, 6)),
    *(f"zephyr:{m}" for m in (1, 2, 3, 4)),
]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(CHIPS),
    weights=st.integers(1, 20),
    bits=st.integers(1, 6),
    dead_qubits=st.sampled_from([0.0, 0.01, 0.02, 0.05]),
    dead_couplers=st.sampled_from([0.0, 0.01, 0.05]),
    bound=st.sampled_from([None, None, 8, 16]),
    seed=st.integers(0, 1000),
)
def test_every_template_is_valid(
    name: str,
    weights: int,
    bits: int,
    dead_qubits: float,
    dead_couplers: float,
    bound: int | None,
    seed: int,
) -> None:
    """Tests D-Wave's own check over chips, shapes, bounds and damage of both kinds."""
    chip = Chip.from_name(name).damaged(dead_qubits, dead_couplers, seed=seed)
    found = largest_template(chip, weights, bits, bound)
    if found is not None:
        assert checked(found).shape.weights == weights
        assert bound is None or found.max_chain <= bound


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(CHIPS),
    shape=st.builds(Shape, st.integers(1, 16), st.integers(0, 12), st.integers(1, 5)),
    damage=st.sampled_from([0.0, 0.03]),
    seed=st.integers(0, 1000),
)
def test_every_requested_shape_is_exact(name: str, shape: Shape, damage: float, seed: int) -> None:
    """Tests that a template has the shape asked for, or is None."""
    found: Embedding | None = find_template(Chip.from_name(name).damaged(damage, damage, seed=seed), shape)
    if found is not None:
        assert checked(found).shape == shape
