"""From a logical problem to chains of qubits and back, in index arrays made once per embedding.

All of it is in spins. With a chain of k qubits and c couplers inside, a variable's field h becomes h / k on
every qubit and its strength s becomes -s on every coupler inside, with s·c added to the offset: as long as no
chain is broken, the physical energy is the logical one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lns.embedding.embedding import Embedding
from lns.embedding.trim import trim
from lns.subproblem import SubQubo

if TYPE_CHECKING:
    from lns.embedding.fabric import Fabric
    from lns.embedding.shape import Shape

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Ising:
    """Fields and couplings of spins: ``h·s + Σ_k j[k] s[a[k]] s[b[k]] + offset``."""

    h: Floats
    a: NDArray[np.intp]
    b: NDArray[np.intp]
    j: Floats
    offset: float

    def energies(self, spins: NDArray[np.integer]) -> Floats:
        """Energies of samples of spins, (K, n) -> (K,)."""
        s = np.asarray(spins, dtype=np.float64)
        return s @ self.h + (s[:, self.a] * s[:, self.b]) @ self.j + self.offset

    def gauged(self, signs: NDArray[np.int8]) -> Ising:
        """The same problem with some spins turned round: a spin-reversal transform."""
        turned = self.j * signs[self.a] * signs[self.b]
        return Ising(self.h * signs, self.a, self.b, turned, self.offset)

    def scaled(self, factor: float) -> Ising:
        """All coefficients multiplied by one number."""
        return Ising(self.h * factor, self.a, self.b, self.j * factor, self.offset * factor)


def to_spins(linear: Floats, quadratic: Floats, offset: float) -> tuple[Floats, Floats, float]:
    """Fields, symmetric couplings and offset of the same energies with spins s = 2x - 1."""
    couplings = quadratic / 4
    fields = linear / 2 + couplings.sum(axis=1)
    return fields, couplings, float(offset + linear.sum() / 2 + couplings.sum() / 2)


def chain_strengths(fields: Floats, couplings: Floats, factor: float) -> Floats:
    """The strength of each variable's chain: `factor` times the torque that its neighbours exert on it.

    The torque is the root of the sum of the squared couplings of this variable, i.e. their rms times the root
    of its degree. One number for all, as is usual, would be too weak for weight bits, which couple to
    everything, or so strong that auto-scaling drowns the target bits. A variable with a field and next to no
    couplings still gets a chain as strong as its field on one qubit.
    """
    return factor * np.maximum(np.sqrt(np.square(couplings).sum(axis=1)), 0.25 * np.abs(fields))


@dataclass(frozen=True)
class Ranges:
    """What a chip accepts: fields, couplings, and the sum of the couplings of one qubit.

    The defaults are those of today's annealers, whose couplings reach further down, for chains; the sum is
    bounded on some. Where spins may be turned round (`turned`), every coupling may change its sign: then only
    what is allowed for both signs counts.
    """

    h: tuple[float, float] = (-4.0, 4.0)
    j: tuple[float, float] = (-2.0, 1.0)
    total: tuple[float, float] | None = None
    turned: bool = False

    @classmethod
    def of(cls, properties: Mapping[str, Any], turned: bool = False) -> Ranges:
        """The ranges that a sampler's properties tell."""
        j = properties.get("extended_j_range") or properties.get("j_range") or cls.j
        total = properties.get("per_qubit_coupling_range")
        h = properties.get("h_range") or cls.h
        return cls(tuple(h), tuple(j), None if total is None else tuple(total), turned)

    def fit(self, problem: Ising) -> float:
        """The largest factor that keeps a problem within all ranges."""
        j = np.abs(problem.j) if self.turned else problem.j
        most = max(self._excess(problem.h, self.h), self._excess(j, self.j))
        if self.total is not None:
            sums = np.zeros(len(problem.h))
            np.add.at(sums, problem.a, j)
            np.add.at(sums, problem.b, j)
            most = max(most, self._excess(sums, self.total))
        return 1.0 / most if most > 0 else 1.0

    def _excess(self, values: Floats, limits: tuple[float, float]) -> float:
        low, high = limits
        if self.turned:
            low, high = max(low, -high), min(high, -low)
        return float(max(values.max(initial=0.0) / high, values.min(initial=0.0) / low))


class Wiring:
    """The index arrays of an embedding: which qubits and couplers carry which coefficient.

    Qubits are numbered from 0, chain after chain; `qubits` has their names on the chip.
    """

    def __init__(self, embedding: Embedding) -> None:
        chip, n = embedding.chip, embedding.shape.size
        self.embedding, self.shape = embedding, embedding.shape
        self.qubits, self.starts = embedding.qubits, embedding.offsets[:-1].astype(np.intp)
        self.lengths = embedding.chain_lengths.astype(np.intp)
        self.owner = np.repeat(np.arange(n), self.lengths)
        place = np.full(int(chip.qubits.max()) + 1, -1, dtype=np.intp)
        place[self.qubits] = np.arange(len(self.qubits))
        ends = place[chip.couplers]
        ends = ends[(ends >= 0).all(axis=1)]
        i, j = self.owner[ends].T
        inside = i == j
        self.chain_ends, self.chain_owner = ends[inside], i[inside]
        self.chain_couplers = np.bincount(self.chain_owner, minlength=n)
        # A logical coupling is spread evenly over all couplers between its two chains.
        w, d = self.shape.weights, self.shape.target_bits
        low, high = np.minimum(i, j), np.maximum(i, j)
        used = ~inside & ((low < w) | ((low - w) // d == (high - w) // d))
        self.ends, pair = ends[used], low[used] * n + high[used]
        self.pair = pair
        self.share = 1.0 / np.bincount(pair, minlength=n * n)[pair]
        self.a, self.b = (np.concatenate([self.ends[:, k], self.chain_ends[:, k]]) for k in (0, 1))

    @property
    def num_qubits(self) -> int:
        """Physical size."""
        return len(self.qubits)

    def embed(self, fields: Floats, couplings: Floats, offset: float, strength: Floats) -> Ising:
        """The physical problem of a logical one, chains included."""
        j = np.concatenate([couplings.ravel()[self.pair] * self.share, -strength[self.chain_owner]])
        h = (fields / self.lengths)[self.owner]
        return Ising(h, self.a, self.b, j, float(offset + strength @ self.chain_couplers))

    def unembed(self, spins: NDArray[np.int8]) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
        """Bits by majority vote, (K, m) -> (K, n), a tie counting as 0, and which chains were broken."""
        total = np.add.reduceat(spins, self.starts, axis=1, dtype=np.int32)
        return (total > 0).astype(np.int8), np.abs(total) != self.lengths

    def spins(self, bits: NDArray[np.int8]) -> NDArray[np.int8]:
        """The physical spins of bits with all chains whole, (K, n) -> (K, m)."""
        return (2 * bits - 1)[:, self.owner].astype(np.int8)


def part(whole: Embedding, shape: Shape, fabric: Fabric) -> Embedding:
    """The part of an embedding that serves a smaller shape, without the ends of chains that have no use."""
    some = whole.restrict(shape)
    chip = some.chip
    chains = [set(np.searchsorted(chip.qubits, some.chain(i)).tolist()) for i in range(shape.size)]
    kept = trim(fabric, chains, shape.weights, shape.target_bits)
    return Embedding.from_chains(chip, shape, [chip.qubits[sorted(c)].tolist() for c in kept], whole.route)


def descend(
    sub: SubQubo, samples: NDArray[np.int8], free: NDArray[np.bool_] | None = None
) -> NDArray[np.int8]:
    """Flip the best bit of every sample, again and again, until none lowers its energy.

    Parameters
    ----------
    sub
        The logical problem.
    samples
        Where to begin, (K, n); not changed.
    free
        The bits that may flip, (K, n); all by default.
    """
    x = samples.astype(np.float64)
    field = sub.linear + x @ sub.quadratic
    rows = np.arange(len(x))
    tiny = 1e-12 * (np.abs(sub.linear).max(initial=0.0) + np.abs(sub.quadratic).max(initial=0.0))
    barred = None if free is None else ~free
    # Every flip lowers the energy, so this ends; the bound is for coefficients that are not finite.
    for _ in range(100 * x.shape[1]):
        change = (1 - 2 * x) * field
        if barred is not None:
            change[barred] = np.inf
        best = np.argmin(change, axis=1)
        going = change[rows, best] < -tiny
        if not going.any():
            break
        at, bit = rows[going], best[going]
        step = 1 - 2 * x[at, bit]
        x[at, bit] += step
        field[at] += step[:, None] * sub.quadratic[bit]
    return x.astype(np.int8)
