"""The exact minimum of a small sub-QUBO: every setting of the weight bits, targets in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lns.errors import InvalidInput
from lns.grid import unpack_bits
from lns.subproblem import SubQubo

AT_ONCE = 4096


@dataclass(frozen=True, kw_only=True)
class Exact:
    """Enumerates the 2^n settings of the weight bits; given those, the examples' targets are independent.

    Costs O(2^n · target bits): the oracle of the tests, and a real choice for rounds of up to a dozen bits.
    """

    max_weight_bits: int = 12
    num_reads: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.max_weight_bits <= 24:
            raise InvalidInput(
                f"The 'max_weight_bits' option of exact must lie in [1, 24]. Got {self.max_weight_bits}."
            )
        if self.num_reads < 1:
            raise InvalidInput(f"The 'num_reads' option of exact must be at least 1. Got {self.num_reads}.")

    def __call__(self, sub: SubQubo, start: NDArray[np.int8], seed: int) -> NDArray[np.int8]:
        n = sub.num_weight_bits
        if n > self.max_weight_bits:
            raise InvalidInput(
                f"The exact solver takes at most {self.max_weight_bits} weight bits. Got {n}: use 'tabu'."
            )
        groups = target_groups(sub)
        found, energies = [], []
        for first in range(0, 2**n, AT_ONCE):
            weights = unpack_bits(np.arange(first, min(first + AT_ONCE, 2**n)), n)
            samples = np.zeros((len(weights), sub.num_variables), dtype=np.int8)
            samples[:, :n] = weights
            for group in groups:
                settings = unpack_bits(np.arange(2 ** len(group)), len(group)).astype(np.float64)
                inner = settings @ sub.linear[group]
                inner += 0.5 * np.sum(settings @ sub.quadratic[np.ix_(group, group)] * settings, axis=1)
                outer = weights @ sub.quadratic[:n, group] @ settings.T
                samples[:, group] = settings[np.argmin(outer + inner, axis=1)]
            energy = sub.energies(samples)
            best = np.argsort(energy, kind="stable")[: self.num_reads]
            found.append(samples[best])
            energies.append(energy[best])
        order = np.argsort(np.concatenate(energies), kind="stable")[: self.num_reads]
        return np.concatenate(found)[order]


def target_groups(sub: SubQubo) -> list[NDArray[np.intp]]:
    """The target bits of each example: the blocks that are coupled among themselves only."""
    from scipy.sparse.csgraph import connected_components

    n = sub.num_weight_bits
    if sub.num_variables == n:
        return []
    count, label = connected_components(sub.quadratic[n:, n:] != 0, directed=False)
    return [n + np.flatnonzero(label == k) for k in range(count)]
