"""Grids: which values a weight, the bias or a target may take.

A variable of d bits lies on 2^d equally spaced levels between its own ends,

    value = lo + (hi - lo) * code / (2**d - 1),        code = sum_k 2^k bit_k,

the paper's multiplier-offset pair with α = hi - lo and β = lo. Each weight has its own pair: on real
data the useful sizes of weights differ by orders of magnitude, and one interval for all of them
wastes most levels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lns.errors import InvalidInput

MAX_BITS = 24  # codes stay exact in int32 and levels distinct in float64


def check_bits(name: str, bits: object) -> int:
    """Return `bits` as an int, or say what is wrong with it."""
    if isinstance(bits, (bool, np.bool_)) or not isinstance(bits, (int, np.integer)):
        raise InvalidInput(f"{name} must be an int in [1, {MAX_BITS}]. Got {bits!r} instead.")
    if not 1 <= bits <= MAX_BITS:
        raise InvalidInput(f"{name} must be an int in [1, {MAX_BITS}]. Got {bits} instead.")
    return int(bits)


def real_array(value: ArrayLike) -> NDArray | None:
    """`value` as an array of real numbers, or None if it is anything else: text, complex, ragged."""
    try:
        array = np.asarray(value)
    except ValueError:
        return None
    return array if array.dtype.kind in "fiu" else None


@dataclass(frozen=True)
class Grid:
    """Levels of n variables of the same bit depth, one interval each.

    Parameters
    ----------
    lo, hi
        Ends of the intervals, arrays of length n with lo < hi.
    bits
        Bit depth d; every variable has 2^d levels.

    Examples
    --------
    >>> grid = Grid.make(0.0, 1.0, bits=2, size=2)
    >>> grid.values(np.array([1, 3]))
    array([0.33333333, 1.        ])
    >>> grid.codes(np.array([0.4, 7.0]))
    array([1, 3], dtype=int32)
    """

    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    bits: int

    @classmethod
    def make(cls, lo: ArrayLike, hi: ArrayLike, bits: int, size: int, name: str = "range") -> Grid:
        """Check the ends and build the grid; scalars serve all variables."""
        bits = check_bits(name.replace("range", "bits"), bits)
        ends = []
        for end in (real_array(lo), real_array(hi)):
            if end is None:
                raise InvalidInput(
                    f"{name} must hold two numbers or two arrays of numbers. Got {(lo, hi)!r}."
                )
            end = end.astype(np.float64)
            if end.ndim > 1 or (end.ndim == 1 and end.shape != (size,)):
                raise InvalidInput(
                    f"{name} must hold two numbers or two arrays of length {size}. Got shape {end.shape}."
                )
            if not np.isfinite(end).all():
                raise InvalidInput(f"{name} must be finite. Got {_first(end, ~np.isfinite(end))}.")
            ends.append(end)
        low, high = (np.broadcast_to(end, (size,)).copy() for end in ends)
        if (low >= high).any():
            at = int(np.argmax(low >= high))
            raise InvalidInput(
                f"{name} must have lo < hi. Got lo = {low[at]}, hi = {high[at]} at index {at}."
            )
        with np.errstate(over="ignore"):
            length = high - low
        if not np.isfinite(length).all():
            raise InvalidInput(f"{name} must have hi - lo representable. Got lo = {low[0]}, hi = {high[0]}.")
        merged = length / (2**bits - 1) < 2 * np.spacing(np.maximum(np.abs(low), np.abs(high)))
        if merged.any():
            at = int(np.argmax(merged))
            raise InvalidInput(
                f"{name} must have room for {2**bits} different levels. "
                f"Got lo = {low[at]}, hi = {high[at]} at index {at}."
            )
        low.setflags(write=False)
        high.setflags(write=False)
        return cls(low, high, bits)

    @property
    def size(self) -> int:
        """Number of variables."""
        return len(self.lo)

    @property
    def top(self) -> int:
        """The largest code, 2^d - 1."""
        return 2**self.bits - 1

    @property
    def step(self) -> NDArray[np.float64]:
        """Distance between neighbouring levels."""
        return (self.hi - self.lo) / self.top

    def values(self, codes: ArrayLike) -> NDArray[np.float64]:
        """Levels of the codes; the last axis runs over the variables."""
        return self.lo + (self.hi - self.lo) * np.asarray(codes) / self.top

    def codes(self, values: ArrayLike) -> NDArray[np.int32]:
        """Codes of the nearest levels; values outside the interval go to its end."""
        scaled = (np.asarray(values, dtype=np.float64) - self.lo) / self.step
        return np.rint(np.clip(scaled, 0, self.top)).astype(np.int32)

    @property
    def bit_values(self) -> NDArray[np.float64]:
        """What bit k adds to variable i: α_i δ(k) = (hi - lo) 2^k / (2^d - 1), shape (n, d)."""
        return self.step[:, None] * 2.0 ** np.arange(self.bits)


def _first(values: NDArray, where: NDArray[np.bool_]) -> str:
    """The first offending value and its index, for messages."""
    if np.ndim(values) == 0:
        return str(values)
    at = int(np.argmax(where))
    return f"{values[at]} at index {at}"


def unpack_bits(codes: NDArray[np.integer], bits: int) -> NDArray[np.int8]:
    """Bits of the codes, least significant first, along a new last axis."""
    return (np.asarray(codes)[..., None] >> np.arange(bits) & 1).astype(np.int8)


def unique_codes(codes: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """The different rows, and which of them each row is: `np.unique` takes long over many columns."""
    codes = np.ascontiguousarray(codes)
    rows = codes.view(np.dtype((np.void, codes.itemsize * codes.shape[1])))[:, 0]
    _, first, place = np.unique(rows, return_index=True, return_inverse=True)
    return codes[first], place


def pack_bits(bits: NDArray[np.integer | np.bool_]) -> NDArray[np.int32]:
    """Inverse of `unpack_bits`."""
    return (np.asarray(bits, dtype=np.int64) << np.arange(np.shape(bits)[-1])).sum(axis=-1).astype(np.int32)


def weight_bound(lam: float) -> float:
    """The size that no weight of a minimiser exceeds: 1/√λ.

    All-zero weights have F = 1 (every margin is 0 and q ≤ 0). Any w with λ Σ w_i² ≥ 1 is therefore no
    better than zero, so the minimiser has |w_i| ≤ ‖w‖ ≤ 1/√λ. The paper states 1/λ, which belongs to
    the norm itself as regulariser; its QUBO, and this package, use the square.
    """
    return np.inf if lam == 0 else 1.0 / np.sqrt(lam)


def weights_around(w: NDArray[np.float64], floor: NDArray[np.float64], lam: float, bits: int) -> Grid:
    """One interval per weight around a continuous solution; zero and the weight itself are levels.

    A fifth of the levels lie on the other side of zero, and |w_i| sits at five eighths of the remaining ones,
    so the search can shrink it, grow it by half or change its sign. `floor` is the least size assumed, for a
    weight that the continuous solution left at zero. No level exceeds 1/√λ.
    """
    top = 2**bits - 1
    below = round(top * 0.2)  # levels beyond zero, on the side away from w_i
    above = top - below
    place = np.full(len(w), max(1, round(above * 0.625)))
    size = np.where(np.abs(w) > 1e-12, np.abs(w), floor)
    size = np.minimum(size, weight_bound(lam))
    place[size * above / place > weight_bound(lam)] = above
    step = np.maximum(size, 1e-12) / place
    lo, hi = -below * step, above * step
    flip = w < 0
    return Grid.make(np.where(flip, -hi, lo), np.where(flip, -lo, hi), bits, len(w), "weight_range")


def target_grid(bits: int, span: float) -> Grid:
    """The grid of every target t_s: [1 - span/2, 1 + span/2].

    Centred on 1 so that the most significant bit says whether t > 1: the paper's trick that turns the
    sign function of the loss into one linear coefficient.
    """
    return Grid.make(1.0 - span / 2, 1.0 + span / 2, bits, 1, "target_range")
