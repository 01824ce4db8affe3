"""Tests of chips: names, sampler properties, damage and the hash."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from dwave.system.testing import MockDWaveSampler

from lns.embedding import Chip
from lns.errors import InvalidInput


@pytest.mark.parametrize(
    ("name", "shape", "qubits", "couplers"),
    [
        ("chimera:8", (8, 8, 4), 512, 1472),
        ("chimera:16", (16, 16, 4), 2048, 6016),
        ("pegasus:16", (16,), 5640, 40484),
        ("zephyr:12", (12, 4), 4800, 45864),
        ("zephyr:15", (15, 4), 7440, 71736),
    ],
)
def test_from_name(name: str, shape: tuple[int, ...], qubits: int, couplers: int) -> None:
    """Tests that the known machines have their qubits and couplers; Pegasus counts real qubits only."""
    chip = Chip.from_name(name)
    assert (chip.shape, chip.num_qubits, chip.num_couplers) == (shape, qubits, couplers)
    assert chip.name == name
    assert chip.missing_qubits == chip.missing_couplers == 0


@pytest.mark.parametrize(
    "name", ["", "chimera", "chimera:", "king:4", "pegasus:x", "zephyr:-2", "zephyr:4.5"]
)
def test_unknown_name_lists_the_valid_ones(name: str) -> None:
    """Tests that a wrong name is answered with names that work."""
    with pytest.raises(InvalidInput, match=r"There is no chip called .* chimera:8, chimera:16, pegasus:16"):
        Chip.from_name(name)


@pytest.mark.parametrize(("outside", "edge"), [("chimera:0", "chimera:1"), ("pegasus:1", "pegasus:2")])
def test_size_limits(outside: str, edge: str) -> None:
    """Tests that the smallest sizes work and the next smaller ones are refused with the range."""
    assert Chip.from_name(edge).num_qubits
    with pytest.raises(InvalidInput, match=r"must be in \["):
        Chip.from_name(outside)
    with pytest.raises(InvalidInput, match=r"must be in \[1, 32\]. Got 99"):
        Chip.from_name("zephyr:99")


@pytest.mark.parametrize(
    ("topology", "shape"), [("chimera", [4, 4, 4]), ("pegasus", [3]), ("zephyr", [2, 4])]
)
def test_from_sampler(topology: str, shape: list[int]) -> None:
    """Tests that a sampler's node list, not its count of qubits, makes the chip."""
    whole = MockDWaveSampler(topology_type=topology, topology_shape=shape)
    dead = whole.nodelist[3]
    sampler = MockDWaveSampler(topology_type=topology, topology_shape=shape, broken_nodes=[dead])
    chip = Chip.from_sampler(sampler)
    assert chip.qubits.tolist() == sorted(sampler.nodelist)
    assert set(map(tuple, chip.couplers.tolist())) == {tuple(sorted(e)) for e in sampler.edgelist}
    assert chip.missing_qubits == 1
    assert Chip.from_sampler(whole) == Chip.from_name(f"{topology}:{shape[0]}")


def test_from_sampler_without_structure() -> None:
    """Tests that an unstructured sampler is refused by name."""
    with pytest.raises(InvalidInput, match="object is not a structured sampler"):
        Chip.from_sampler(object())


def test_from_lists_refuses_strangers() -> None:
    """Tests that qubits and couplers that the topology does not have are refused."""
    with pytest.raises(InvalidInput, match="Qubit 99 is not part"):
        Chip.from_lists("chimera", (1, 1, 4), [0, 99], [])
    with pytest.raises(InvalidInput, match=r"Coupler \(0, 1\) is not part"):
        Chip.from_lists("chimera", (1, 1, 4), [0, 1], [(1, 0)])
    with pytest.raises(InvalidInput, match="not in the list of qubits"):
        Chip.from_lists("chimera", (1, 1, 4), [0], [(0, 4)])
    with pytest.raises(InvalidInput, match="must be one of chimera, pegasus, zephyr"):
        Chip.from_lists("king", (4,), [], [])


def test_damage_is_seeded_and_counted() -> None:
    """Tests that damage takes the fraction asked for, the same for the same seed."""
    whole = Chip.from_name("pegasus:4")
    chip = whole.damaged(0.05, 0.02, seed=3)
    assert chip.missing_qubits == round(0.05 * whole.num_qubits)
    left = chip.num_couplers + chip.missing_couplers
    assert chip.missing_couplers == round(0.02 * left)
    assert np.isin(chip.couplers, chip.qubits).all()
    assert chip == whole.damaged(0.05, 0.02, seed=3)
    assert chip != whole.damaged(0.05, 0.02, seed=4)
    assert whole.damaged(0, 0, seed=1) == whole
    with pytest.raises(InvalidInput, match=r"'qubit_fraction' of a damaged chip must be in \[0, 1\]. Got 2"):
        whole.damaged(2, 0, seed=0)


def test_hash_is_stable() -> None:
    """Tests that the hash depends on the graph alone: it names files that outlive the process."""
    expected = "480a19db0b6793e9590618acdd52b73d1ccda8268e85202791b90c3f2967980a"
    chip = Chip.from_name("chimera:2")
    assert chip.hash == expected
    shuffled = Chip.from_lists("chimera", (2, 2, 4), chip.qubits[::-1], chip.couplers[::-1, ::-1])
    assert shuffled.hash == expected
    fewer = Chip.from_lists("chimera", (2, 2, 4), chip.qubits, chip.couplers[1:])
    assert fewer.hash != expected


def test_graph_and_pickle() -> None:
    """Tests that the graph is the working one, and that a pickled chip is the same without it."""
    chip = Chip.from_name("zephyr:2").damaged(0.1, 0.1, seed=0)
    assert (len(chip.graph), chip.graph.number_of_edges()) == (chip.num_qubits, chip.num_couplers)
    assert chip.graph.graph["family"] == "zephyr"
    copy = pickle.loads(pickle.dumps(chip))
    assert copy == chip
    assert "graph" not in vars(copy)
