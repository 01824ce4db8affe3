"""A quantum annealer's whole path without the annealer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from lns.errors import InvalidInput
from lns.solvers.chip import ChipSolver, Embedded, Reads

if TYPE_CHECKING:
    from lns.embedding import Chip
    from lns.solvers.chains import Ising, Ranges

#: Inverse temperature at the beginning, for coefficients that fill the chip's ranges.
HOT = 0.1

#: At the end, in units of the weakest chain strength: cold enough for the weakest variable to be decided.
#: Target bits may be hundreds of times weaker than weight bits, so that may be colder than a real chip.
COLD, COLDEST = 10.0, 1e4


@dataclass(frozen=True, kw_only=True)
class Emulator(ChipSolver):
    """Simulated annealing on the qubits of a chip, everything around it as on the real one.

    The same seed, options and stored embedding give the same samples. For all other parameters see
    `lns.solvers.chip.ChipSolver`.

    Parameters
    ----------
    topology
        The chip: ``"chimera:8"``, ``"pegasus:16"``, ``"zephyr:15"`` and other sizes.
    num_sweeps
        Sweeps over the qubits for each read.
    noise
        Standard deviation of the error of every coefficient, relative to the chip's range, as an analogue
        machine has it; 0.01 to 0.02 is realistic.
    dead, dead_seed
        Fraction of dead qubits, and which.

    Examples
    --------
    >>> solver = Emulator(topology="chimera:4")
    >>> solver.max_weight_bits, solver.max_variables
    (8, 20)
    """

    name: ClassVar[str] = "emulator"

    topology: str = "pegasus:16"
    num_sweeps: int = 300
    noise: float = 0.0
    dead: float = 0.0
    dead_seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_counts("num_sweeps")
        for name in ("noise", "dead"):
            if not 0 <= getattr(self, name) < 1:
                raise InvalidInput(
                    f"The {name!r} option of emulator must lie in [0, 1). Got {getattr(self, name)!r}."
                )
        _ = self.tiles  # an unknown topology is an error here, not in the first round

    @property
    def chip(self) -> Chip:
        """The emulated chip."""
        return _chip(self.topology, self.dead, self.dead_seed)

    def anneal(self, problems: Sequence[Embedded]) -> list[Reads]:
        """Reads of physical problems.

        Problems of one call lie on regions without a coupler between them: sampled apart, each with its own
        seed, they give what sampling them together would.
        """
        return [
            self._sample(problem, min(self.pack, len(problems) - k // self.pack * self.pack))
            for k, problem in enumerate(problems)
        ]

    def _sample(self, problem: Embedded, packed: int) -> Reads:
        """The annealing sampler itself, not inside dwave-system's mock: the mock wants labelled models and
        walks over their couplers in Python to check them, and what it checks holds here by construction.
        """
        import dimod
        from dwave.samplers import SimulatedAnnealingSampler

        began = perf_counter()
        rng = np.random.default_rng(problem.seed)
        physical = disturb(problem.problem, self.noise, self.ranges, rng)
        bqm = dimod.BinaryQuadraticModel.from_numpy_vectors(
            physical.h, (physical.a, physical.b, physical.j), 0.0, "SPIN"
        )
        strength = problem.scale * problem.strength
        weakest = strength[strength > 0].min(initial=self.ranges.j[1])
        found = SimulatedAnnealingSampler().sample(
            bqm, num_reads=self.num_reads, num_sweeps=self.num_sweeps, seed=int(rng.integers(2**31)),
            beta_range=(HOT, min(COLD / weakest, COLDEST)),
        )  # fmt: skip
        spins: NDArray[np.int8] = found.record.sample.astype(np.int8, copy=False)
        return Reads(spins, perf_counter() - began, packed)


def disturb(problem: Ising, noise: float, ranges: Ranges, rng: np.random.Generator) -> Ising:
    """The problem as an analogue machine holds it."""
    if not noise:
        return problem
    from lns.solvers.chains import Ising

    h = problem.h + noise * ranges.h[1] * rng.standard_normal(len(problem.h))
    j = problem.j + noise * ranges.j[1] * rng.standard_normal(len(problem.j))
    return Ising(h, problem.a, problem.b, j, problem.offset)


@lru_cache(maxsize=8)
def _chip(topology: str, dead: float, dead_seed: int) -> Chip:
    from lns.embedding import Chip

    chip = Chip.from_name(topology)
    return chip.damaged(dead, 0.0, seed=dead_seed) if dead else chip
