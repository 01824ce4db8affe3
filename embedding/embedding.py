"""An embedding: the chain of every logical variable of a shape on a chip."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from lns.embedding.errors import InvalidEmbedding
from lns.embedding.shape import Shape
from lns.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lns.embedding.chip import Chip


@dataclass(frozen=True, eq=False)
class Embedding:
    """Chains of qubits for the weight bits and target bits of a shape.

    Parameters
    ----------
    chip
        The chip that the qubits belong to.
    shape
        The embedded graph; its docstring says how variables are numbered.
    qubits
        The qubits of all chains, one chain after the other.
    offsets
        Where each chain starts in `qubits`, and the total: ``size + 1`` numbers.
    route
        How it was found: ``"template"``, ``"clique"`` or ``"search"``.
    """

    chip: Chip = field(repr=False)
    shape: Shape
    qubits: NDArray[np.int32] = field(repr=False)
    offsets: NDArray[np.int32] = field(repr=False)
    route: str = "template"

    @classmethod
    def from_chains(cls, chip: Chip, shape: Shape, chains: Sequence[Iterable[int]], route: str) -> Embedding:
        """Return the embedding with the given chain of every variable, in the order of the shape."""
        lists = [sorted(int(q) for q in chain) for chain in chains]
        offsets = np.cumsum([0, *map(len, lists)]).astype(np.int32)
        return cls(chip, shape, np.array([q for c in lists for q in c], dtype=np.int32), offsets, route)

    def __len__(self) -> int:
        return self.shape.size

    def chain(self, variable: int) -> NDArray[np.int32]:
        """Return the qubits of one logical variable."""
        return self.qubits[self.offsets[variable] : self.offsets[variable + 1]]

    @property
    def weight_chains(self) -> list[NDArray[np.int32]]:
        """The chain of every weight bit."""
        return [self.chain(i) for i in range(self.shape.weights)]

    @property
    def target_chains(self) -> list[list[NDArray[np.int32]]]:
        """The chains of every example's target bits."""
        return [[self.chain(i) for i in self.shape.example(k)] for k in range(self.shape.examples)]

    @property
    def chain_lengths(self) -> NDArray[np.int32]:
        """Number of qubits of every chain."""
        return np.diff(self.offsets)

    @property
    def weight_chain_lengths(self) -> NDArray[np.int32]:
        """Number of qubits of every weight bit's chain."""
        return self.chain_lengths[: self.shape.weights]

    @property
    def target_chain_lengths(self) -> NDArray[np.int32]:
        """Number of qubits of every target bit's chain."""
        return self.chain_lengths[self.shape.weights :]

    @property
    def max_chain(self) -> int:
        """Length of the longest chain."""
        return int(self.chain_lengths.max())

    @property
    def mean_chain(self) -> float:
        """Mean length of a chain."""
        return float(self.chain_lengths.mean())

    @property
    def num_qubits(self) -> int:
        """Physical size: the number of qubits used."""
        return len(self.qubits)

    @property
    def cost(self) -> int:
        """What makes one embedding of a shape better than another: its longest chain times its qubits.

        The longest chain breaks first, and every qubit adds noise. By the longest chain alone a clique, whose
        chains are all equally long, would beat templates of half its size.
        """
        return self.max_chain * self.num_qubits

    def relabel(
        self, weight_labels: Sequence[Hashable], target_labels: Sequence[Hashable]
    ) -> dict[Any, tuple[int, ...]]:
        """Return the embedding as a dict from a round's own labels to chains.

        Parameters
        ----------
        weight_labels
            The labels of the weight bits.
        target_labels
            The labels of the target bits, example by example.

        Raises
        ------
        InvalidInput
            If the number of labels is not that of the shape, or a label occurs twice.
        """
        shape = self.shape
        if len(weight_labels) != shape.weights or len(target_labels) != shape.targets:
            raise InvalidInput(
                f"An embedding of {shape} needs {shape.weights} weight labels and {shape.targets} target "
                f"labels. Got {len(weight_labels)} and {len(target_labels)} instead."
            )
        qubits, offsets = self.qubits.tolist(), self.offsets.tolist()
        chains = [tuple(qubits[a:b]) for a, b in pairwise(offsets)]
        result = dict(zip([*weight_labels, *target_labels], chains, strict=True))
        if len(result) != shape.size:
            raise InvalidInput("The labels of an embedding must differ. Got a label twice.")
        return result

    def restrict(self, shape: Shape) -> Embedding:
        """Return the part of this embedding that serves a smaller shape; nothing is embedded anew.

        Raises
        ------
        InvalidInput
            If the shape is not smaller or equal in every number.
        """
        mine = self.shape
        if shape == mine:
            return self
        fits = shape.weights <= mine.weights and shape.examples <= mine.examples
        if not (fits and (shape.target_bits <= mine.target_bits or not shape.examples)):
            raise InvalidInput(f"An embedding of {mine} cannot be restricted to {shape}.")
        keep = [*range(shape.weights)]
        for k in range(shape.examples):
            keep.extend(mine.example(k)[: shape.target_bits])
        return Embedding.from_chains(self.chip, shape, [self.chain(i).tolist() for i in keep], self.route)

    def verify(self) -> Embedding:
        """Check every rule of a minor embedding on the chip's working graph, and return self.

        The chains are disjoint sets of working qubits, each is connected by working couplers, and every
        coupling of the shape has at least one working coupler. All at once in numpy: about a hundred times
        faster than walking the graph, so that embeddings from the store are checked as well.

        Raises
        ------
        InvalidEmbedding
            If a rule is broken; the message names the variable or the coupling.
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        n, lengths, chip = self.shape.size, np.diff(self.offsets), self.chip
        if len(self.offsets) != n + 1 or self.offsets[0] != 0 or self.offsets[-1] != len(self.qubits):
            raise InvalidEmbedding(f"An embedding of {self.shape} must have {n} chains.")
        if lengths.min() < 1:
            raise InvalidEmbedding(f"The chain of variable {int(lengths.argmin())} is empty.")
        # One entry more than the largest qubit, so that the table is never empty.
        working = np.zeros(max(chip.qubits.max(initial=-1), self.qubits.max()) + 1, dtype=bool)
        working[chip.qubits] = True
        dead = self.qubits[(self.qubits < 0) | ~working[self.qubits]]
        if dead.size:
            raise InvalidEmbedding(f"Qubit {dead[0]} is not a working qubit of the chip.")
        owner = np.full(len(working), -1)
        place = np.zeros(len(working), dtype=np.int64)
        owner[self.qubits] = np.repeat(np.arange(n), lengths)
        place[self.qubits] = np.arange(len(self.qubits))
        if np.count_nonzero(owner >= 0) != len(self.qubits):
            raise InvalidEmbedding("Two chains share a qubit, or a chain has one twice.")

        ends = owner[chip.couplers]
        used = (ends >= 0).all(axis=1)
        ends, couplers = np.sort(ends[used], axis=1), chip.couplers[used]
        inside = ends[:, 0] == ends[:, 1]
        links, m = place[couplers[inside]], len(self.qubits)
        parts, label = connected_components(
            coo_array((np.ones(len(links)), (links[:, 0], links[:, 1])), (m, m))
        )
        if parts != n:
            torn = np.flatnonzero(label != label[np.repeat(self.offsets[:-1], lengths)])[0]
            raise InvalidEmbedding(f"The chain of variable {owner[self.qubits[torn]]} is not connected.")
        self._check_couplings(*ends[~inside].T)
        return self

    def _check_couplings(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> None:
        """Check that the coupled variables a < b include every coupling of the shape."""
        shape = self.shape
        w, d = shape.weights, shape.target_bits
        to_weight = np.zeros((w, shape.size), dtype=bool)
        first = a < w
        to_weight[a[first], b[first]] = True
        to_weight |= np.tri(w, shape.size, dtype=bool)
        missing = np.argwhere(~to_weight)
        if not missing.size:
            a, b = a[~first] - w, b[~first] - w
            same = a // d == b // d
            in_example = np.zeros((shape.targets, d), dtype=bool)
            in_example[a[same], b[same] % d] = True
            in_example |= np.tile(np.tri(d, dtype=bool), (shape.examples, 1))
            missing = np.argwhere(~in_example)
            missing = np.stack([missing[:, 0], missing[:, 0] // d * d + missing[:, 1]], axis=1) + w
        if missing.size:
            i, j = missing[0]
            raise InvalidEmbedding(f"No coupler joins the chains of variables {i} and {j}.")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Embedding):
            return NotImplemented
        same = self.shape == other.shape and self.chip == other.chip
        return (
            same and np.array_equal(self.qubits, other.qubits) and np.array_equal(self.offsets, other.offsets)
        )

    __hash__ = None  # type: ignore[assignment]
