"""The one graph that is ever embedded: K_nw joined with n_t disjoint K_dt."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from lns.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, order=True)
class Shape:
    """The graph of a sub-QUBO with free weight bits and free target bits.

    Every weight bit couples to every other weight bit and to every target bit; the target bits of an example
    couple to each other and to nothing else. Logical variables are numbered: first the weight bits, from 0,
    then the target bits, example by example.

    Parameters
    ----------
    weights
        Number of weight bits, n_w, at least 1.
    examples
        Number of examples with free target bits, n_t, at least 0.
    target_bits
        Number of target bits of an example, d_t, at least 1.

    Examples
    --------
    >>> shape = Shape(weights=2, examples=2, target_bits=2)
    >>> shape.size, shape.num_edges
    (6, 11)
    >>> list(shape.edges())[:3]
    [(0, 1), (0, 2), (0, 3)]
    """

    weights: int
    examples: int
    target_bits: int = 4

    def __post_init__(self) -> None:
        for name, low in (("weights", 1), ("examples", 0), ("target_bits", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not hasattr(value, "__index__") or value < low:
                raise InvalidInput(
                    f"The {name!r} of a Shape must be an int of at least {low}. Got {value!r} instead."
                )
            object.__setattr__(self, name, int(value))

    @property
    def targets(self) -> int:
        """Number of target bits of all examples."""
        return self.examples * self.target_bits

    @property
    def size(self) -> int:
        """Number of logical variables."""
        return self.weights + self.targets

    @property
    def num_edges(self) -> int:
        """Number of couplings between logical variables."""
        w, d = self.weights, self.target_bits
        return w * (w - 1) // 2 + w * self.targets + self.examples * d * (d - 1) // 2

    def example(self, index: int) -> range:
        """Return the variables of one example's target bits."""
        start = self.weights + index * self.target_bits
        return range(start, start + self.target_bits)

    def edges(self) -> list[tuple[int, int]]:
        """Return the couplings, the smaller variable first, in sorted order."""
        edges = [(i, j) for i in range(self.weights) for j in range(i + 1, self.size)]
        for index in range(self.examples):
            edges.extend(combinations(self.example(index), 2))
        return edges

    def edge_arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the couplings as two arrays, the smaller variables and the larger ones."""
        w, n, d = self.weights, self.size, self.target_bits
        i, j = np.triu_indices(w, 1)
        a, b = np.triu_indices(d, 1)
        starts = np.arange(w, n, d)[:, None] if self.examples else np.empty((0, 1), dtype=np.int64)
        lower = [i, np.repeat(np.arange(w), n - w), (starts + a).ravel()]
        upper = [j, np.tile(np.arange(w, n), w), (starts + b).ravel()]
        return np.concatenate(lower).astype(np.int64), np.concatenate(upper).astype(np.int64)

    def __str__(self) -> str:
        return f"{self.weights} weight bits x {self.examples} examples of {self.target_bits} target bits"
