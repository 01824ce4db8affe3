"""Chips: a topology, the qubits and couplers that work, and a hash of both."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lns.errors import InvalidInput

if TYPE_CHECKING:
    import networkx as nx
    from numpy.typing import NDArray

    IntArray = NDArray[np.int64]

#: Smallest and largest size accepted in a name, per topology. Beyond the largest a typing error is likelier
#: than a machine, and the graph takes minutes to build.
TOPOLOGIES: dict[str, tuple[int, int]] = {"chimera": (1, 64), "pegasus": (2, 32), "zephyr": (1, 32)}

#: Names of machines that exist or existed.
KNOWN_CHIPS = ("chimera:8", "chimera:16", "pegasus:16", "zephyr:12", "zephyr:15")

_VALID = (
    f"Valid names are 'chimera:M', 'pegasus:M' and 'zephyr:M' with a size M, such as {', '.join(KNOWN_CHIPS)}"
)


def _build(topology: str, shape: tuple[int, ...], **lists: Any) -> nx.Graph:
    """Return dwave.graphs' graph of a topology; its attributes are what busclique reads."""
    import dwave.graphs as dg

    makers = {"chimera": dg.chimera_graph, "pegasus": dg.pegasus_graph, "zephyr": dg.zephyr_graph}
    return makers[topology](*shape, **lists)


@lru_cache(maxsize=16)
def _ideal(topology: str, shape: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """Return the qubits and couplers of an undamaged chip, sorted."""
    graph = _build(topology, shape)
    return _normalise(graph.nodes, graph.edges)


def _normalise(nodes: Any, edges: Any) -> tuple[IntArray, IntArray]:
    """Sort qubits and couplers, each coupler as (smaller, larger), without doubles."""
    qubits = np.unique(np.fromiter(nodes, dtype=np.int64))
    pairs = np.array(list(edges), dtype=np.int64).reshape(-1, 2)
    return qubits, np.unique(np.sort(pairs, axis=1), axis=0)


def _check_shape(topology: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Complete a shape with the default tile and check its length."""
    length = {"chimera": 3, "pegasus": 1, "zephyr": 2}.get(topology)
    if length is None:
        raise InvalidInput(f"The topology must be one of {', '.join(TOPOLOGIES)}. Got {topology!r} instead.")
    if topology == "zephyr" and len(shape) == 1:
        shape = (*shape, 4)
    if topology == "chimera" and len(shape) == 1:
        shape = (shape[0], shape[0], 4)
    if topology == "chimera" and len(shape) == 2:
        shape = (*shape, 4)
    if len(shape) != length or min(shape, default=0) < 1 or (topology == "pegasus" and shape[0] < 2):
        raise InvalidInput(f"The shape of a {topology} chip must have {length} sizes. Got {shape} instead.")
    return shape


@dataclass(frozen=True, eq=False)
class Chip:
    """An annealer's working graph.

    Parameters
    ----------
    topology
        ``"chimera"``, ``"pegasus"`` or ``"zephyr"``.
    shape
        The arguments of the graph of that name in ``dwave.graphs``: ``(m, n, t)``, ``(m,)`` or ``(m, t)``.
    qubits
        Working qubits, sorted.
    couplers
        Working couplers, one row each, the smaller qubit first, sorted.

    Examples
    --------
    >>> chip = Chip.from_name("chimera:8")
    >>> chip.num_qubits, chip.num_couplers
    (512, 1472)
    >>> chip.damaged(0.02, 0.0, seed=1).num_qubits
    502
    """

    topology: str
    shape: tuple[int, ...]
    qubits: IntArray = field(repr=False)
    couplers: IntArray = field(repr=False)

    @classmethod
    def from_name(cls, name: str) -> Chip:
        """Return the undamaged chip of a name such as ``"pegasus:16"``.

        Raises
        ------
        InvalidInput
            If the name is not a topology and a size; the message lists the valid ones.
        """
        topology, _, size = str(name).strip().lower().partition(":")
        if topology not in TOPOLOGIES or not size.isdecimal():
            raise InvalidInput(f"There is no chip called {name!r}. {_VALID}.")
        low, high = TOPOLOGIES[topology]
        if not low <= int(size) <= high:
            raise InvalidInput(
                f"The size of a {topology} chip must be in [{low}, {high}]. Got {size} instead."
            )
        shape = _check_shape(topology, (int(size),))
        return cls(topology, shape, *_ideal(topology, shape))

    @classmethod
    def from_lists(cls, topology: str, shape: tuple[int, ...], nodes: Any, edges: Any) -> Chip:
        """Return the chip with these working qubits and couplers, named as ``dwave.graphs`` numbers them.

        Raises
        ------
        InvalidInput
            If a qubit or a coupler does not belong to the topology.
        """
        shape = _check_shape(topology, tuple(int(s) for s in shape))
        qubits, couplers = _normalise(nodes, edges)
        all_qubits, all_couplers = _ideal(topology, shape)
        strange = np.setdiff1d(qubits, all_qubits)
        if strange.size:
            raise InvalidInput(f"Qubit {strange[0]} is not part of a {topology} chip of shape {shape}.")
        if not np.isin(couplers, qubits).all():
            raise InvalidInput("A coupler joins a qubit that is not in the list of qubits.")
        extra = np.setdiff1d(coupler_codes(couplers), coupler_codes(all_couplers))
        if extra.size:
            a, b = divmod(int(extra[0]), _BASE)
            raise InvalidInput(f"Coupler ({a}, {b}) is not part of a {topology} chip of shape {shape}.")
        return cls(topology, shape, qubits, couplers)

    @classmethod
    def from_sampler(cls, sampler: Any) -> Chip:
        """Return the chip behind a structured sampler: its node and edge lists and its topology.

        Raises
        ------
        InvalidInput
            If the sampler has no node list or does not say its topology.
        """
        try:
            nodes, edges = sampler.nodelist, sampler.edgelist
        except AttributeError:
            raise InvalidInput(
                f"{type(sampler).__name__} is not a structured sampler: it has no nodelist and edgelist."
            ) from None
        topology = sampler.properties.get("topology") or {}
        if "type" not in topology or "shape" not in topology:
            raise InvalidInput(f"{type(sampler).__name__} does not say its topology in its properties.")
        return cls.from_lists(topology["type"], tuple(topology["shape"]), nodes, edges)

    def damaged(self, qubit_fraction: float, coupler_fraction: float = 0.0, *, seed: int) -> Chip:
        """Return this chip without a random part of its qubits, then of the couplers left."""
        for name, value in (("qubit_fraction", qubit_fraction), ("coupler_fraction", coupler_fraction)):
            if not 0 <= value <= 1:
                raise InvalidInput(f"The {name!r} of a damaged chip must be in [0, 1]. Got {value} instead.")
        rng = np.random.default_rng(seed)
        dead = rng.choice(self.qubits, round(qubit_fraction * len(self.qubits)), replace=False)
        couplers = self.couplers[~np.isin(self.couplers, dead).any(axis=1)]
        kept = rng.permutation(len(couplers))[round(coupler_fraction * len(couplers)) :]
        return Chip(self.topology, self.shape, np.setdiff1d(self.qubits, dead), couplers[np.sort(kept)])

    @property
    def num_qubits(self) -> int:
        """Number of qubits that work."""
        return len(self.qubits)

    @property
    def num_couplers(self) -> int:
        """Number of couplers that work."""
        return len(self.couplers)

    @property
    def name(self) -> str:
        """The name of the undamaged chip, such as ``"zephyr:15"``."""
        square = self.topology != "chimera" or self.shape[0] == self.shape[1]
        usual = square and (self.topology == "pegasus" or self.shape[-1] == 4)
        return f"{self.topology}:{self.shape[0] if usual else 'x'.join(map(str, self.shape))}"

    @property
    def missing_qubits(self) -> int:
        """Number of qubits of the topology that do not work."""
        return len(_ideal(self.topology, self.shape)[0]) - self.num_qubits

    @cached_property
    def missing_couplers(self) -> int:
        """Number of couplers of the topology between working qubits that do not work."""
        couplers = _ideal(self.topology, self.shape)[1]
        return int(np.isin(couplers, self.qubits).all(axis=1).sum()) - self.num_couplers

    @cached_property
    def hash(self) -> str:
        """A hash of topology, qubits and couplers, the same in every process and on every machine."""
        digest = hashlib.sha256(f"{self.topology}{self.shape}".encode())
        for array in (self.qubits, self.couplers):
            digest.update(f"|{array.shape}|".encode())
            digest.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
        return digest.hexdigest()

    @cached_property
    def graph(self) -> nx.Graph:
        """The working graph with the attributes of ``dwave.graphs``."""
        nodes, edges = self.qubits.tolist(), [(a, b) for a, b in self.couplers.tolist()]
        return _build(self.topology, self.shape, node_list=nodes, edge_list=edges)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Chip) and self.hash == other.hash

    def __hash__(self) -> int:
        return int(self.hash[:15], 16)

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the cached graph: it is large, and every worker can rebuild it.
        return (Chip, (self.topology, self.shape, self.qubits, self.couplers))


_BASE = 1 << 31


def coupler_codes(couplers: IntArray) -> IntArray:
    """One number for every coupler, to compare lists of them."""
    return couplers[:, 0] * _BASE + couplers[:, 1]
