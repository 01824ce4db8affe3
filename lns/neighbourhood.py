"""Neighbourhoods: which levels some weights may take in a round, coded in bits.

A weight takes the level `low` with all its bits at zero, and every bit adds its size. The bits need not be
the stored ones: one bit between two neighbouring levels avoids the Hamming cliffs of binary codes (0111 to
1000), and one bit between the levels of two solutions merges them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lns.grid import unpack_bits


@dataclass(frozen=True)
class Neighbourhood:
    """Bits that stand for levels of some weights.

    Parameters
    ----------
    weights
        The W weights that may change, as increasing indices into the codes (index N is the bias).
    low
        Their levels when all bits are zero.
    owner, size
        Of every bit: which of these weights it moves, and by how many levels.
    start
        Bits to begin from.
    """

    weights: NDArray[np.integer]
    low: NDArray[np.integer]
    owner: NDArray[np.intp]
    size: NDArray[np.integer]
    start: NDArray[np.int8]

    @property
    def num_bits(self) -> int:
        """Number of weight bits of the sub-QUBO."""
        return len(self.owner)

    def reach(self, levels: NDArray) -> NDArray[np.float64]:
        """The longest way of each of the weights from its place in `levels`, in levels."""
        gap = self.low - levels[self.weights]
        down, up = (self._total(part(self.size, 0)[None, :])[0] for part in (np.minimum, np.maximum))
        return np.maximum(np.abs(gap + down), np.abs(gap + up))

    def codes(self, current: NDArray[np.int32], bits: NDArray[np.integer]) -> NDArray[np.int32]:
        """Codes that samples of the bits stand for: (K, bits) -> (K, N + 1)."""
        new = np.repeat(current[None, :], len(bits), axis=0)
        new[:, self.weights] = self.low + self._total(np.asarray(bits, dtype=np.int32) * self.size)
        return new

    def _total(self, each: NDArray[np.int32]) -> NDArray[np.int32]:
        """What the bits of each weight add to it."""
        total = np.zeros((len(self.weights), len(each)), dtype=np.int32)
        np.add.at(total, self.owner, each.T)
        return total.T


def stored_bits(codes: NDArray[np.int32], chosen: NDArray[np.integer]) -> Neighbourhood:
    """The paper's own bits: rows (i, k) of `chosen` name bit k of weight i (index N is the bias)."""
    weights, owner = np.unique(chosen[:, 0], return_inverse=True)
    sizes = (1 << chosen[:, 1]).astype(np.int32)
    current = unpack_bits(codes[chosen[:, 0]], 30)[np.arange(len(chosen)), chosen[:, 1]]
    low = codes[weights].astype(np.int32)
    np.subtract.at(low, owner, sizes * current)
    return Neighbourhood(weights.astype(np.intp), low, owner.astype(np.intp), sizes, current)


def window(
    codes: NDArray[np.int32],
    levels: NDArray[np.float64],
    tops: NDArray[np.int32],
    weights: NDArray[np.integer],
) -> Neighbourhood:
    """One bit for each of these weights: the level below or the one above its place in `levels`.

    The bits to begin from are those nearest to the current codes.
    """
    weights = np.sort(weights).astype(np.int64)
    low = np.minimum(np.floor(levels[weights]), tops[weights] - 1).astype(np.int32)
    start = np.clip(codes[weights] - low, 0, 1).astype(np.int8)
    return Neighbourhood(weights, low, np.arange(len(weights)), np.ones(len(weights), dtype=np.int32), start)


def towards(
    codes: NDArray[np.int32], other: NDArray[np.int32], weights: NDArray[np.integer]
) -> Neighbourhood:
    """One bit for each of these weights: its level now or that of another solution."""
    weights = np.sort(weights).astype(np.int64)
    low, change = codes[weights].astype(np.int32), (other - codes)[weights].astype(np.int32)
    return Neighbourhood(weights, low, np.arange(len(weights)), change, np.zeros(len(weights), dtype=np.int8))
