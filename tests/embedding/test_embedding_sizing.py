"""Tests of the size of rounds: room, bounds, automatic choice, small and damaged chips."""

from __future__ import annotations

import logging

import pytest

from lns.embedding import Chip, Embedding, NoEmbedding, Shape, Store, best_shape, largest_embedding, sizing
from lns.embedding.sizing import DEFAULT_MAX_CHAIN
from lns.errors import InvalidInput


@pytest.mark.parametrize(("weights", "total"), [(8, 64), (12, 52), (16, 44)])
def test_chimera_room(weights: int, total: int, memory: Store) -> None:
    """Tests the room of the chip of the paper's time."""
    shape = best_shape(Chip.from_name("chimera:8"), weights=weights, store=memory)
    assert shape.weights == weights
    assert shape.size >= total


def test_the_embedding_is_in_the_store(memory: Store) -> None:
    """Tests that the answer's embedding is found by embed without any further search."""
    chip = Chip.from_name("pegasus:4")
    found = largest_embedding(chip, weights=8, max_chain=12, store=memory)
    assert found.max_chain <= 12
    assert memory.load(chip, found.shape) is found


def test_answers_are_kept(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the second process asking reads the answer of the first."""
    root = tmp_path_factory.mktemp("store")
    chip = Chip.from_name("zephyr:2")
    first = largest_embedding(chip, weights=8, store=Store(root))
    monkeypatch.setattr(sizing, "largest_template", lambda *a: pytest.fail("sized twice"))
    assert largest_embedding(chip, weights=8, store=Store(root)) == first


def test_a_looser_request_keeps_shorter_chains(memory: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that an embedding is not replaced by one of the same shape with longer chains."""
    chip = Chip.from_name("chimera:4")
    tight = largest_embedding(chip, weights=4, max_chain=20, store=memory)
    spare = sorted(set(chip.qubits.tolist()) - set(tight.qubits.tolist()))
    chains = [tight.chain(i).tolist() for i in range(len(tight))]
    grown = next(
        Embedding.from_chains(chip, tight.shape, [*chains[:i], [*chains[i], q], *chains[i + 1 :]], "template")
        for i in range(len(chains))
        for q in spare
        if any(chip.graph.has_edge(q, r) for r in chains[i])
    )
    assert grown.verify().num_qubits == tight.num_qubits + 1
    monkeypatch.setattr(sizing, "largest_template", lambda *a: grown)
    assert largest_embedding(chip, weights=4, max_chain=90, store=memory) is tight


@pytest.mark.parametrize("name", ["chimera:8", "pegasus:6", "zephyr:5"])
def test_automatic_choice(name: str, memory: Store) -> None:
    """Tests that the automatic round is useful and keeps the default bound on chains."""
    found = largest_embedding(Chip.from_name(name), store=memory)
    assert found.max_chain <= DEFAULT_MAX_CHAIN
    assert found.shape.weights >= 8
    assert found.shape.examples >= 8


@pytest.mark.parametrize("name", ["chimera:1", "chimera:2", "pegasus:2", "zephyr:1"])
def test_small_chips_have_small_rounds(name: str, memory: Store, caplog: pytest.LogCaptureFixture) -> None:
    """Tests that fewer weights are offered, with a warning, where those asked for have no room."""
    chip = Chip.from_name(name)
    with caplog.at_level(logging.WARNING, "lns.embedding"):
        shape = best_shape(chip, weights=30, store=memory)
    assert 1 <= shape.weights < 30
    assert shape.examples >= 1
    assert "has no room for 30 weight bits and an example of 4 target bits" in caplog.text
    assert best_shape(chip, store=memory).examples >= 1


@pytest.mark.parametrize("fraction", [0.1, 0.3, 0.6, 0.95])
@pytest.mark.parametrize("name", ["chimera:4", "pegasus:3", "zephyr:2"])
def test_badly_damaged_chips(name: str, fraction: float, memory: Store) -> None:
    """Tests that whatever is left of a chip gets a valid round, if only of one qubit."""
    chip = Chip.from_name(name).damaged(fraction, fraction, seed=1)
    for weights in (None, 12):
        found = largest_embedding(chip, weights=weights, target_bits=3, store=memory)
        assert found.verify().shape.weights >= 1


def test_one_qubit_and_none(memory: Store) -> None:
    """Tests the two smallest chips of all."""
    one = Chip.from_lists("chimera", (2, 2, 4), [5], [])
    assert best_shape(one, weights=4, store=memory) == Shape(1, 0, 4)
    with pytest.raises(NoEmbedding, match="no working qubit"):
        best_shape(Chip.from_lists("chimera", (2, 2, 4), [], []), store=memory)


def test_search_can_add_room(memory: Store) -> None:
    """Tests that the search, where it is given time, never takes room away."""
    chip = Chip.from_name("chimera:4")
    without = best_shape(chip, weights=4, target_bits=5, store=memory)
    assert best_shape(chip, weights=4, target_bits=5, timeout=3, store=memory).examples >= without.examples


def test_bad_parameters(memory: Store) -> None:
    """Tests that parameters out of range are refused by name."""
    chip = Chip.from_name("chimera:2")
    with pytest.raises(InvalidInput, match=r"'max_chain' of a round must be at least 1\. Got 0"):
        best_shape(chip, max_chain=0, store=memory)
    with pytest.raises(InvalidInput, match="'weights' of a Shape"):
        best_shape(chip, weights=0, store=memory)
