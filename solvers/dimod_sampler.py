"""Any dimod sampler as a solver of sub-QUBOs, and the ones from dwave-samplers ready-made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lns.errors import InvalidInput
from lns.subproblem import SubQubo


class DimodSolver:
    """Wraps an object with dimod's ``sample(bqm, **options)``.

    Parameters
    ----------
    sampler
        The sampler.
    options
        Passed to every call; the seed is added if the sampler takes one.
    """

    def __init__(self, sampler: Any, **options: Any) -> None:
        if not callable(getattr(sampler, "sample", None)):
            raise InvalidInput(
                f"A solver object must be callable or have a sample() method. Got {sampler!r}."
            )
        self.sampler, self.options = sampler, options
        self._takes = set(getattr(sampler, "parameters", ()) or ())

    def __call__(self, sub: SubQubo, start: NDArray[np.int8], seed: int) -> NDArray[np.int8]:
        options = dict(self.options)
        if "seed" in self._takes:
            options["seed"] = seed
        found = self.sampler.sample(sub.to_bqm(), **options)
        return ordered_bits(found)


def ordered_bits(found: Any) -> NDArray[np.int8]:
    """The samples of a dimod sample set over 0 ... n - 1, variables in order; of spins, -1 counts as 0."""
    order = np.argsort(np.asarray(list(found.variables), dtype=np.intp))
    return (found.record.sample[:, order] > 0).astype(np.int8)


def _check_positive(owner: str, **values: int) -> None:
    for name, value in values.items():
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise InvalidInput(f"The {name!r} option of {owner} must be an int of at least 1. Got {value!r}.")


@dataclass(frozen=True, kw_only=True)
class Tabu:
    """Multistart Tabu search (Palubeckis), the paper's stand-in for an annealer.

    The first read begins at the current solution, the others anywhere: sub-QUBOs are so ill-conditioned that
    those rarely come as far down. Bounded by restarts, not by time, so that a seed reproduces its answer.
    """

    num_reads: int = 1
    num_restarts: int = 4
    max_variables: int = 1000

    def __post_init__(self) -> None:
        _check_positive("tabu", num_reads=self.num_reads, num_restarts=self.num_restarts)

    def __call__(self, sub: SubQubo, start: NDArray[np.int8], seed: int) -> NDArray[np.int8]:
        from dwave.samplers import TabuSampler

        # The defaults of the search length (500,000 updates) are meant for problems of thousands of bits.
        found = TabuSampler().sample(
            sub.to_bqm(), initial_states=start[None, :], num_reads=self.num_reads, timeout=None,
            num_restarts=self.num_restarts, lower_bound_z=100 * len(start), coefficient_z_first=100,
            coefficient_z_restart=100, seed=seed,
        )  # fmt: skip
        return found.record.sample.astype(np.int8)


@dataclass(frozen=True, kw_only=True)
class Annealing:
    """Simulated annealing over the bits of the sub-QUBO."""

    num_reads: int = 8
    num_sweeps: int = 200
    max_variables: int = 1000

    def __post_init__(self) -> None:
        _check_positive("sa", num_reads=self.num_reads, num_sweeps=self.num_sweeps)

    def __call__(self, sub: SubQubo, start: NDArray[np.int8], seed: int) -> NDArray[np.int8]:
        from dwave.samplers import SimulatedAnnealingSampler

        # From the largest single-bit energy down to a thousandth of the typical one; the sampler's own rule
        # divides by the smallest coefficient, which may be zero here.
        field = np.abs(sub.linear) + np.abs(sub.quadratic).sum(axis=1)
        hot, typical = max(field.max(), 1e-300), max(float(np.median(field)), 1e-300)
        found = SimulatedAnnealingSampler().sample(
            sub.to_bqm(), num_reads=self.num_reads, num_sweeps=self.num_sweeps, seed=seed,
            beta_range=(0.7 / hot, 1e3 / typical),
        )  # fmt: skip
        return found.record.sample.astype(np.int8)


@dataclass(frozen=True, kw_only=True)
class Descent:
    """Steepest descent from the current solution and from random ones."""

    num_reads: int = 16
    max_variables: int = 1000

    def __post_init__(self) -> None:
        _check_positive("descent", num_reads=self.num_reads)

    def __call__(self, sub: SubQubo, start: NDArray[np.int8], seed: int) -> NDArray[np.int8]:
        from dwave.samplers import SteepestDescentSampler

        found = SteepestDescentSampler().sample(
            sub.to_bqm(), initial_states=start[None, :], num_reads=self.num_reads, seed=seed
        )
        return found.record.sample.astype(np.int8)
