"""Neighbourhoods: which changes of the weights a round may make, coded in bits.

A neighbourhood is a set of directions in code space (one weight up by one level, or several weights together)
and bits that step along them: with all bits at zero direction d is moved by `base[d]`, and bit j adds
`bit_size[j]` along direction `bit_direction[j]`. The bits need not be the stored ones, which lets a round
avoid the Hamming cliffs of binary codes (0111 to 1000) and merge whole solutions with one bit per difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lns.grid import unpack_bits

WINDOW_BITS = 2  # of each weight in a window: any function of its four levels is quadratic in them


@dataclass(frozen=True)
class Neighbourhood:
    """Bits over directions of code changes.

    Parameters
    ----------
    weights
        The W weights that may change, as increasing indices into the codes (index N is the bias).
    directions
        Integer matrix (D, W): levels that each direction moves each of those weights.
    base
        Integer vector (D,): how far along each direction the all-zero answer is from the current codes.
    bit_direction, bit_size
        Direction and integer step of every bit.
    start
        The bits that leave the codes as they are.
    """

    weights: NDArray[np.intp]
    directions: NDArray[np.int32]
    base: NDArray[np.int32]
    bit_direction: NDArray[np.intp]
    bit_size: NDArray[np.int32]
    start: NDArray[np.int8]

    @property
    def num_bits(self) -> int:
        """Number of weight bits of the sub-QUBO."""
        return len(self.bit_direction)

    @cached_property
    def reach(self) -> NDArray[np.int32]:
        """The longest way along each direction, in steps."""
        down, up = np.minimum(self.spread, 0).sum(axis=1), np.maximum(self.spread, 0).sum(axis=1)
        return np.maximum(np.abs(self.base + down), np.abs(self.base + up))

    @cached_property
    def spread(self) -> NDArray[np.int32]:
        """Matrix (D, bits) from bits to steps: steps = base + spread·bits."""
        spread = np.zeros((len(self.base), self.num_bits), dtype=np.int32)
        spread[self.bit_direction, np.arange(self.num_bits)] = self.bit_size
        return spread

    def codes(
        self, current: NDArray[np.int32], bits: NDArray[np.integer], tops: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """Codes that samples of the bits stand for, kept on the grid: (K, bits) -> (K, N + 1)."""
        new = np.repeat(current[None, :], len(bits), axis=0)
        steps = self.base + np.asarray(bits, dtype=np.int32) @ self.spread.T
        new[:, self.weights] += steps @ self.directions
        return np.clip(new, 0, tops)


def stored_bits(codes: NDArray[np.int32], chosen: NDArray[np.integer]) -> Neighbourhood:
    """The paper's own bits: rows (i, k) of `chosen` name bit k of weight i (index N is the bias)."""
    weights, owner = np.unique(chosen[:, 0], return_inverse=True)
    sizes = (1 << chosen[:, 1]).astype(np.int32)
    current = unpack_bits(codes[chosen[:, 0]], 30)[np.arange(len(chosen)), chosen[:, 1]]
    base = np.zeros(len(weights), dtype=np.int32)
    np.subtract.at(base, owner, sizes * current)
    one_each = np.eye(len(weights), dtype=np.int32)
    return Neighbourhood(weights.astype(np.intp), one_each, base, owner.astype(np.intp), sizes, current)


def window(
    codes: NDArray[np.int32],
    tops: NDArray[np.int32],
    weights: NDArray[np.integer],
    bits: int,
    low: NDArray[np.integer],
) -> Neighbourhood:
    """2^bits neighbouring levels of each weight, beginning `low` levels from its current one.

    Windows that stick out of the grid are pushed back inside; a weight with fewer levels than the window gets
    all of them.
    """
    order = np.argsort(weights)
    weights = np.asarray(weights, dtype=np.intp)[order]
    low = np.broadcast_to(low, weights.shape)[order]
    depth = np.minimum(bits, np.log2(tops[weights] + 1).astype(int))
    span = 2**depth - 1
    start = np.clip(codes[weights] + low, 0, np.maximum(tops[weights] - span, 0))
    base = (start - codes[weights]).astype(np.int32)
    owner = np.repeat(np.arange(len(weights)), depth)
    sizes = np.concatenate([2 ** np.arange(d, dtype=np.int32) for d in depth])
    start = np.concatenate([unpack_bits(-base[[j]], int(d)).ravel() for j, d in enumerate(depth)])
    return Neighbourhood(weights, np.eye(len(weights), dtype=np.int32), base, owner, sizes, start)


def towards(
    codes: NDArray[np.int32], other: NDArray[np.int32], weights: NDArray[np.integer]
) -> Neighbourhood:
    """One bit for each of these weights in which two solutions differ: its level now or that of the other."""
    weights, count = weights.astype(np.intp), len(weights)
    zeros, each = np.zeros(count, dtype=np.int32), np.arange(count)
    change = (other - codes)[weights].astype(np.int32)
    return Neighbourhood(
        weights, np.eye(count, dtype=np.int32), zeros, each, change, zeros.astype(np.int8)
    )  # fmt: skip


def fusion(current: NDArray[np.int32], proposals: NDArray[np.int32]) -> Neighbourhood:
    """One bit for each proposal: take its change or not; overlapping changes add up."""
    change = proposals - current
    weights = np.flatnonzero(change.any(axis=0))
    count = len(proposals)
    return Neighbourhood(
        weights,
        change[:, weights].astype(np.int32),
        np.zeros(count, dtype=np.int32),
        np.arange(count),
        np.ones(count, dtype=np.int32),
        np.zeros(count, dtype=np.int8),
    )
