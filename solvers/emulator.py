"""A quantum annealer's whole path without the annealer: embed, scale, sample, vote, repair."""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lns.errors import InvalidInput
from lns.solvers.exact import target_groups
from lns.subproblem import SubQubo

if TYPE_CHECKING:
    from lns.embedding import Chip, Embedding, Shape
    from lns.embedding.fabric import Fabric
    from lns.solvers.chains import Ising, Wiring

_log = logging.getLogger("lns.solvers")

#: What today's annealers accept: |h|, the most negative coupling (for chains) and the most positive one.
H_RANGE, J_LOW, J_HIGH = 4.0, -2.0, 1.0

#: Inverse temperature at the beginning, for coefficients that fill the chip's ranges.
HOT = 0.1

#: At the end, in units of the weakest chain strength: cold enough for the weakest variable to be decided.
#: Target bits may be hundreds of times weaker than weight bits, so that may be colder than a real chip.
COLD, COLDEST = 10.0, 1e4

#: Rounds of up to so many examples share an embedding of their own, with shorter chains than the largest has.
FEW_EXAMPLES = 8

#: So many calls are remembered.
MEMORY = 10_000


@dataclass(frozen=True)
class ChipCall:
    """What one call did on the chip.

    Parameters
    ----------
    weight_bits, examples, target_bits
        The shape that was embedded.
    num_variables
        Logical size: the bits that were on the chip.
    held
        Bits of the sub-QUBO that found no room and stayed as they were during sampling.
    num_qubits, mean_chain, max_chain
        Physical size and chain lengths.
    broken
        Fraction of broken chains over all reads.
    strength
        The strongest chain, in the units of the sub-QUBO.
    scale
        What all coefficients were multiplied by to fit the chip's ranges.
    reads
        Number of reads.
    embed_seconds, sample_seconds, unembed_seconds
        What building the physical problem, sampling it, and vote and repair took.
    """

    weight_bits: int
    examples: int
    target_bits: int
    num_variables: int
    held: int
    num_qubits: int
    mean_chain: float
    max_chain: int
    broken: float
    strength: float
    scale: float
    reads: int
    embed_seconds: float
    sample_seconds: float
    unembed_seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As a dict, for records."""
        return asdict(self)


class _Memory:
    """What a solver remembers between calls, from all threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.local = threading.local()
        self.calls: deque[ChipCall] = deque(maxlen=MEMORY)
        self.wirings: dict[Shape, Wiring] = {}
        self.warned = False


@dataclass(frozen=True, kw_only=True)
class Emulator:
    """Simulated annealing on the qubits of a chip, everything around it as on the real one.

    Embeddings come from the store of `lns.embedding`: found once per chip, cut down for smaller rounds, never
    searched for in a round. Every call: bits to spins, chains, strengths, scaling into the chip's ranges,
    sampling, majority vote, repair of broken chains by energy. Safe in threads; the same seed, options and
    stored embedding give the same samples.

    Parameters
    ----------
    topology
        The chip: ``"chimera:8"``, ``"pegasus:16"``, ``"zephyr:15"`` and other sizes.
    num_reads, num_sweeps
        Samples of each call, and sweeps over the qubits for each.
    chain_strength
        Factor on the chain strength of each variable, see `lns.solvers.chains.chain_strengths`.
    max_chain
        Longest chain allowed; None for the usual bound. Longer chains have room for larger rounds.
    noise
        Standard deviation of the error of every coefficient, relative to the chip's range, as an analogue
        machine has it; 0.01 to 0.02 is realistic.
    descent
        Let every read, not only its broken chains, roll to a local minimum of the logical problem.
    dead, dead_seed
        Fraction of dead qubits, and which.
    target_bits
        Target bits of an example that `max_variables` is meant for; rounds with others are solved as well.

    Examples
    --------
    >>> solver = Emulator(topology="chimera:4")
    >>> solver.max_weight_bits, solver.max_variables
    (8, 20)
    """

    topology: str = "pegasus:16"
    num_reads: int = 16
    num_sweeps: int = 300
    chain_strength: float = 1.5
    max_chain: int | None = None
    noise: float = 0.0
    descent: bool = True
    dead: float = 0.0
    dead_seed: int = 0
    target_bits: int = 4
    _memory: _Memory = field(init=False, repr=False, compare=False, default_factory=_Memory)

    def __post_init__(self) -> None:
        for name in ("num_reads", "num_sweeps", "max_chain", "target_bits"):
            value = getattr(self, name)
            if name == "max_chain" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise InvalidInput(
                    f"The {name!r} option of emulator must be an int of at least 1. Got {value!r}."
                )
        if not 0 < self.chain_strength < np.inf:
            raise InvalidInput(
                f"The 'chain_strength' option of emulator must be above 0. Got {self.chain_strength!r}."
            )
        for name in ("noise", "dead"):
            if not 0 <= getattr(self, name) < 1:
                raise InvalidInput(
                    f"The {name!r} option of emulator must lie in [0, 1). Got {getattr(self, name)!r}."
                )
        _ = self.chip  # an unknown topology is an error here, not in the first round

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy sent elsewhere has the options, and a memory of its own.
        return _rebuild, (
            {option.name: getattr(self, option.name) for option in fields(self) if option.init},
        )

    # ---- size ----

    @property
    def chip(self) -> Chip:
        """The emulated chip."""
        return _chip(self.topology, self.dead, self.dead_seed)

    @property
    def max_weight_bits(self) -> int:
        """Most weight bits of a round."""
        return self.largest(self.target_bits).shape.weights

    @property
    def max_variables(self) -> int:
        """Most variables of a round with `max_weight_bits`."""
        return self.largest(self.target_bits).shape.size

    @property
    def info(self) -> ChipCall | None:
        """What the last call of this thread did; None before the first."""
        return getattr(self._memory.local, "info", None)

    @property
    def calls(self) -> list[ChipCall]:
        """What the calls of all threads did, in the order of their ends; the last `MEMORY` of them."""
        return list(self._memory.calls)

    def largest(self, target_bits: int) -> Embedding:
        """The embedding of the largest useful round, from the store."""
        from lns.embedding import largest_embedding

        if target_bits == self.target_bits:
            return largest_embedding(self.chip, target_bits=target_bits, max_chain=self.max_chain)
        return largest_embedding(
            self.chip, weights=self.max_weight_bits, target_bits=target_bits, max_chain=self._bound
        )

    @property
    def _bound(self) -> int:
        from lns.embedding.sizing import DEFAULT_MAX_CHAIN

        return self.max_chain or DEFAULT_MAX_CHAIN

    def wiring(self, shape: Shape) -> Wiring:
        """The index arrays of a shape within the limits; made when a round has it first."""
        found = self._memory.wirings.get(shape)
        if found is None:
            from lns.solvers.chains import Wiring, part

            with self._memory.lock:
                found = self._memory.wirings.get(shape)
                if found is None:
                    found = Wiring(part(self._base(shape), shape, _fabric(self.chip)))
                    self._memory.wirings[shape] = found
        return found

    def _base(self, shape: Shape) -> Embedding:
        """The stored embedding to cut a shape from: the largest, or one for few examples if it is better."""
        from lns.embedding import NoEmbedding, embed
        from lns.embedding import Shape as MakeShape

        whole = self.largest(shape.target_bits)
        if shape.examples > FEW_EXAMPLES or whole.shape.examples <= FEW_EXAMPLES:
            return whole
        try:
            few = embed(
                self.chip, MakeShape(whole.shape.weights, FEW_EXAMPLES, shape.target_bits), timeout=0.0
            )
        except NoEmbedding:
            return whole
        return few if few.max_chain <= whole.max_chain else whole

    # ---- one call ----

    def __call__(self, sub: SubQubo, start: NDArray[np.int8], seed: int) -> NDArray[np.int8]:
        samples, info = self.run(sub, start, seed)
        self._memory.local.info = info
        self._memory.calls.append(info)
        return samples

    def run(self, sub: SubQubo, start: NDArray[np.int8], seed: int) -> tuple[NDArray[np.int8], ChipCall]:
        """Samples as `Solver` wants them, and what happened on the chip."""
        from lns.solvers.chains import chain_strengths, descend, to_spins

        began = perf_counter()
        shape, variables, places = self.place(sub)
        wiring = self.wiring(shape)
        held = np.setdiff1d(np.arange(sub.num_variables), variables)
        linear, quadratic = np.zeros(shape.size), np.zeros((shape.size, shape.size))
        linear[places] = sub.linear[variables] + sub.quadratic[np.ix_(variables, held)] @ start[held]
        quadratic[np.ix_(places, places)] = sub.quadratic[np.ix_(variables, variables)]
        h, j, offset = to_spins(linear, quadratic, 0.0)
        strength = chain_strengths(h, j, self.chain_strength)
        problem = wiring.embed(h, j, offset, strength)
        scale = fit_range(problem)
        rng = np.random.default_rng(seed)
        scaled = _disturb(problem.scaled(scale), self.noise, rng)
        embedded = perf_counter()
        spins = self._sample(scaled, scale * strength, int(rng.integers(2**31)))
        sampled = perf_counter()
        bits, broken = wiring.unembed(spins)
        samples = np.repeat(np.asarray(start, dtype=np.int8)[None, :], len(bits), axis=0)
        samples[:, variables] = bits[:, places]
        torn = np.zeros(samples.shape, dtype=bool)
        torn[:, variables] = broken[:, places]
        if torn.any():
            samples = descend(sub, samples, torn)
        if self.descent:
            samples = descend(sub, samples)
        ended = perf_counter()
        return samples, ChipCall(
            weight_bits=shape.weights, examples=shape.examples, target_bits=shape.target_bits,
            num_variables=len(variables), held=len(held), num_qubits=wiring.num_qubits,
            mean_chain=float(wiring.lengths.mean()), max_chain=int(wiring.lengths.max()),
            broken=float(broken[:, places].mean()), strength=float(strength.max()), scale=scale,
            reads=len(samples), embed_seconds=embedded - began, sample_seconds=sampled - embedded,
            unembed_seconds=ended - sampled,
        )  # fmt: skip

    def place(self, sub: SubQubo) -> tuple[Shape, NDArray[np.intp], NDArray[np.intp]]:
        """The shape to embed, the variables of a sub-QUBO that are on the chip, and where in the shape.

        Which target bits belong together is read from their couplings. A bit coupled to no other target bit
        shares an example's place with others of its kind. What exceeds the chip's capacity is left out.
        """
        from lns.embedding import Shape

        groups = _packed(target_groups(sub))
        depth = max((len(group) for group in groups), default=0) or self.target_bits
        limit = self.largest(depth).shape
        weights = min(sub.num_weight_bits, limit.weights)
        kept = groups[: limit.examples]
        shape = Shape(max(1, weights), len(kept), depth)
        variables = [*range(weights), *(int(v) for group in kept for v in group)]
        places = [*range(weights), *(shape.example(k)[i] for k, g in enumerate(kept) for i in range(len(g)))]
        if len(variables) < sub.num_variables:
            self._warn(sub, limit)
        return shape, np.array(variables, dtype=np.intp), np.array(places, dtype=np.intp)

    def _warn(self, sub: SubQubo, limit: Shape) -> None:
        with self._memory.lock:
            if self._memory.warned:
                return
            self._memory.warned = True
        _log.warning(
            "A sub-QUBO of %d weight bits and %d target bits is larger than %s has room for (%s): the "
            "other bits stay as they are while it samples. Use smaller rounds (max_bits, examples) or a "
            "larger chip.",
            sub.num_weight_bits,
            sub.num_variables - sub.num_weight_bits,
            self.topology,
            limit,
        )

    def _sample(self, problem: Ising, strength: NDArray[np.float64], seed: int) -> NDArray[np.int8]:
        """Reads of the physical problem.

        The annealing sampler itself, not inside dwave-system's mock: the mock wants labelled models and walks
        over their couplers in Python to check them, and what it checks holds here by construction.
        """
        import dimod
        from dwave.samplers import SimulatedAnnealingSampler

        bqm = dimod.BinaryQuadraticModel.from_numpy_vectors(
            problem.h, (problem.a, problem.b, problem.j), 0.0, "SPIN"
        )
        weakest = strength[strength > 0].min(initial=J_HIGH)
        found = SimulatedAnnealingSampler().sample(
            bqm, num_reads=self.num_reads, num_sweeps=self.num_sweeps, seed=seed,
            beta_range=(HOT, min(COLD / weakest, COLDEST)),
        )  # fmt: skip
        return found.record.sample.astype(np.int8, copy=False)


def fit_range(problem: Ising) -> float:
    """The largest factor that keeps all coefficients within the chip's ranges."""
    most = max(
        np.abs(problem.h).max(initial=0.0) / H_RANGE,
        problem.j.max(initial=0.0) / J_HIGH,
        problem.j.min(initial=0.0) / J_LOW,
    )
    return 1.0 / float(most) if most > 0 else 1.0


def _disturb(problem: Ising, noise: float, rng: np.random.Generator) -> Ising:
    """The problem as an analogue machine holds it."""
    if not noise:
        return problem
    from lns.solvers.chains import Ising

    h = problem.h + noise * H_RANGE * rng.standard_normal(len(problem.h))
    j = problem.j + noise * J_HIGH * rng.standard_normal(len(problem.j))
    return Ising(h, problem.a, problem.b, j, problem.offset)


def _packed(groups: list[NDArray[np.intp]]) -> list[NDArray[np.intp]]:
    """Groups, with single bits put together in groups as large as the largest."""
    single = [group for group in groups if len(group) == 1]
    depth = max((len(group) for group in groups), default=1)
    if depth == 1 or not single:
        return groups
    loose = np.concatenate(single)
    together = [loose[first : first + depth] for first in range(0, len(loose), depth)]
    return [group for group in groups if len(group) > 1] + together


@lru_cache(maxsize=8)
def _chip(topology: str, dead: float, dead_seed: int) -> Chip:
    from lns.embedding import Chip

    chip = Chip.from_name(topology)
    return chip.damaged(dead, 0.0, seed=dead_seed) if dead else chip


@lru_cache(maxsize=4)
def _fabric(chip: Chip) -> Fabric:
    from lns.embedding.fabric import Fabric

    return Fabric(chip)


def _rebuild(options: dict[str, Any]) -> Emulator:
    return Emulator(**options)
