"""What every solver on a chip does around its sampling: place, embed, scale, vote, repair, record."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lns.errors import InvalidInput
from lns.solvers.exact import target_groups
from lns.subproblem import SubQubo

if TYPE_CHECKING:
    from lns.embedding import Chip, Embedding, Shape
    from lns.embedding.fabric import Fabric
    from lns.embedding.tiles import Tiles
    from lns.solvers.chains import Ising, Ranges, Wiring

_log = logging.getLogger("lns.solvers")

#: Rounds of up to so many examples share an embedding of their own, with shorter chains than the largest has.
FEW_EXAMPLES = 8

#: So many calls are remembered.
MEMORY = 10_000

#: Target bits of an example before `ChipSolver.prepare` has told: those of `QLossProblem` by default.
TARGET_BITS = 4


@dataclass(frozen=True)
class ChipCall:
    """What one sub-QUBO met on the chip.

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
    packed
        How many sub-QUBOs shared the call.
    qpu_time
        Seconds of access to a quantum annealer; a shared call's time in equal parts.
    retries
        Attempts beyond the first; those of a shared call are counted once.
    fallbacks
        1 if the annealer gave no answer and tabu search did; the sizes then tell what was tried.
    """

    weight_bits: int = 0
    examples: int = 0
    target_bits: int = 0
    num_variables: int = 0
    held: int = 0
    num_qubits: int = 0
    mean_chain: float = 0.0
    max_chain: int = 0
    broken: float = 0.0
    strength: float = 0.0
    scale: float = 0.0
    reads: int = 0
    embed_seconds: float = 0.0
    sample_seconds: float = 0.0
    unembed_seconds: float = 0.0
    packed: int = 1
    qpu_time: float = 0.0
    retries: int = 0
    fallbacks: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As a dict, for records."""
        return asdict(self)


@dataclass(frozen=True)
class Embedded:
    """A sub-QUBO on its way to the chip: which of its variables lie where, and the physical problem."""

    sub: SubQubo
    start: NDArray[np.int8]
    seed: int
    wiring: Wiring
    variables: NDArray[np.intp]
    places: NDArray[np.intp]
    strength: NDArray[np.float64]
    scale: float
    problem: Ising
    seconds: float


@dataclass(frozen=True)
class Reads:
    """What came back for one sub-QUBO: spins of its qubits, one row a read, and what they cost.

    No spins: the chip gave no answer.
    """

    spins: NDArray[np.int8] | None
    seconds: float
    packed: int = 1
    qpu_time: float = 0.0
    retries: int = 0


class _Memory:
    """What a solver remembers between calls, from all threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.local = threading.local()
        self.calls: deque[ChipCall] = deque(maxlen=MEMORY)
        self.wirings: dict[Shape, Wiring] = {}
        self.target_bits = TARGET_BITS
        self.warned: set[str] = set()


@dataclass(frozen=True, kw_only=True)
class ChipSolver(ABC):
    """A solver whose samples come from a chip; subclasses say which chip, and sample.

    Embeddings come from the store of `lns.embedding`: found once per chip, cut down for smaller rounds, never
    searched for in a round. Every call: bits to spins, chains, strengths, scaling into the chip's ranges,
    sampling, majority vote, repair of broken chains by energy. Safe in threads.

    Parameters
    ----------
    num_reads
        Samples of each call.
    chain_strength
        Factor on the chain strength of each variable, see `lns.solvers.chains.chain_strengths`.
    max_chain
        Longest chain allowed; None for the usual bound. Longer chains have room for larger rounds.
    descent
        Let every read, not only its broken chains, roll to a local minimum of the logical problem.
    pack
        So many sub-QUBOs share a call, each on a region of its own; see `lns.embedding.tiles`. What comes of
        one does not depend on the others. Rounds are sized to such a region.
    """

    name: ClassVar[str]

    num_reads: int = 16
    chain_strength: float = 1.5
    max_chain: int | None = None
    descent: bool = True
    pack: int = 1
    _memory: _Memory = field(init=False, repr=False, compare=False, default_factory=_Memory)

    def __post_init__(self) -> None:
        self._check_counts("num_reads", "max_chain", "pack")
        if not 0 < self.chain_strength < np.inf:
            raise InvalidInput(
                f"The 'chain_strength' option of {self.name} must be above 0. Got {self.chain_strength!r}."
            )

    def _check_counts(self, *names: str, least: int = 1) -> None:
        """Whole numbers of at least `least`; None where that is the default."""
        defaults = {option.name: option.default for option in fields(self)}
        for name in names:
            value = getattr(self, name)
            if value is None and defaults[name] is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise InvalidInput(
                    f"The {name!r} option of {self.name} must be an int of at least {least}. Got {value!r}."
                )

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy sent elsewhere has the options, and a memory of its own.
        options = {option.name: getattr(self, option.name) for option in fields(self) if option.init}
        return _rebuild, (type(self), options, self._memory.target_bits)

    # ---- the chip ----

    @property
    @abstractmethod
    def chip(self) -> Chip:
        """The chip."""

    @property
    def ranges(self) -> Ranges:
        """What the chip's coefficients may be."""
        from lns.solvers.chains import Ranges

        return Ranges()

    @abstractmethod
    def anneal(self, problems: Sequence[Embedded]) -> list[Reads]:
        """Reads of physical problems, `pack` of them in a call."""

    @property
    def tiles(self) -> Tiles:
        """The regions of the chip, one for each sub-QUBO of a call."""
        return _tiles(self.chip, self.pack)

    # ---- size ----

    def prepare(self, target_bits: int) -> None:
        """Find or load what rounds of a problem with so many target bits an example need.

        Whoever measures time calls this first: what has never been embedded may take half a minute.
        """
        with self._memory.lock:
            self._memory.target_bits = target_bits
            self._memory.wirings.clear()
        self._bases(target_bits)

    @property
    def max_weight_bits(self) -> int:
        """Most weight bits of a round."""
        return self.largest(self._memory.target_bits).shape.weights

    @property
    def max_variables(self) -> int:
        """Most variables of a round with `max_weight_bits`."""
        return self.largest(self._memory.target_bits).shape.size

    def largest(self, target_bits: int) -> Embedding:
        """The embedding of the largest useful round, from the store."""
        from lns.embedding import largest_embedding
        from lns.embedding.sizing import DEFAULT_MAX_CHAIN

        chip = self.tiles.tile
        if target_bits == self._memory.target_bits:
            return largest_embedding(chip, target_bits=target_bits, max_chain=self.max_chain)
        bound = self.max_chain or DEFAULT_MAX_CHAIN
        return largest_embedding(chip, weights=self.max_weight_bits, target_bits=target_bits, max_chain=bound)

    def wiring(self, shape: Shape) -> Wiring:
        """The index arrays of a shape within the limits; made when a round has it first."""
        found = self._memory.wirings.get(shape)
        if found is None:
            from lns.solvers.chains import Wiring, part

            with self._memory.lock:
                found = self._memory.wirings.get(shape)
                if found is None:
                    whole, few = self._bases(shape.target_bits)
                    base = whole if shape.examples > FEW_EXAMPLES else few
                    found = Wiring(part(base, shape, _fabric(self.tiles.tile)))
                    self._memory.wirings[shape] = found
        return found

    def _bases(self, target_bits: int) -> tuple[Embedding, Embedding]:
        """The stored embeddings to cut shapes from: the largest, and the one for few examples if better."""
        from lns.embedding import NoEmbedding, Shape, embed

        whole = self.largest(target_bits)
        if whole.shape.examples <= FEW_EXAMPLES:
            return whole, whole
        try:
            few = embed(self.tiles.tile, Shape(whole.shape.weights, FEW_EXAMPLES, target_bits), timeout=0.0)
        except NoEmbedding:
            return whole, whole
        return whole, few if few.max_chain <= whole.max_chain else whole

    # ---- calls ----

    @property
    def info(self) -> ChipCall | None:
        """What the last call of this thread did; None before the first."""
        return getattr(self._memory.local, "info", None)

    @property
    def calls(self) -> list[ChipCall]:
        """What the calls of all threads did, in the order of their ends; the last `MEMORY` of them."""
        return list(self._memory.calls)

    def __call__(self, sub: SubQubo, start: NDArray[np.int8], seed: int) -> NDArray[np.int8]:
        return self._remember(*self.run(sub, start, seed))

    def _remember(self, samples: NDArray[np.int8], info: ChipCall) -> NDArray[np.int8]:
        self._memory.local.info = info
        self._memory.calls.append(info)
        return samples

    def run(self, sub: SubQubo, start: NDArray[np.int8], seed: int) -> tuple[NDArray[np.int8], ChipCall]:
        """Samples as `Solver` wants them, and what happened on the chip."""
        return self.run_many([sub], [start], [seed])[0]

    def run_many(
        self, subs: Sequence[SubQubo], starts: Sequence[NDArray[np.int8]], seeds: Sequence[int]
    ) -> list[tuple[NDArray[np.int8], ChipCall]]:
        """The same for several sub-QUBOs, `pack` of them in a call: for each what its own call would give."""
        problems = [self.embed(*one) for one in zip(subs, starts, seeds, strict=True)]
        return [
            self.unembed(problem, reads)
            for problem, reads in zip(problems, self.anneal(problems), strict=True)
        ]

    def embed(self, sub: SubQubo, start: NDArray[np.int8], seed: int) -> Embedded:
        """The physical problem of a sub-QUBO."""
        from lns.solvers.chains import chain_strengths, to_spins

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
        scale = self.ranges.fit(problem)
        start = np.asarray(start, dtype=np.int8)
        return Embedded(
            sub, start, seed, wiring, variables, places, strength, scale, problem.scaled(scale),
            perf_counter() - began,
        )  # fmt: skip

    def unembed(self, problem: Embedded, reads: Reads) -> tuple[NDArray[np.int8], ChipCall]:
        """Samples of the sub-QUBO from reads of its qubits: vote, repair, and the record of it all."""
        from lns.solvers.chains import descend

        began = perf_counter()
        sub, wiring, variables = problem.sub, problem.wiring, problem.variables
        broken = 0.0
        if reads.spins is None:
            samples = self.fall_back(sub, problem.start, problem.seed)
        else:
            bits, torn = wiring.unembed(reads.spins)
            samples = np.repeat(problem.start[None, :], len(bits), axis=0)
            samples[:, variables] = bits[:, problem.places]
            free = np.zeros(samples.shape, dtype=bool)
            free[:, variables] = torn[:, problem.places]
            broken = float(free[:, variables].mean())
            if free.any():
                samples = descend(sub, samples, free)
            if self.descent:
                samples = descend(sub, samples)
        return samples, ChipCall(
            weight_bits=wiring.shape.weights, examples=wiring.shape.examples,
            target_bits=wiring.shape.target_bits, num_variables=len(variables),
            held=sub.num_variables - len(variables), num_qubits=wiring.num_qubits,
            mean_chain=float(wiring.lengths.mean()), max_chain=int(wiring.lengths.max()), broken=broken,
            strength=float(problem.strength.max()), scale=problem.scale, reads=len(samples),
            embed_seconds=problem.seconds, sample_seconds=reads.seconds,
            unembed_seconds=perf_counter() - began, packed=reads.packed, qpu_time=reads.qpu_time,
            retries=reads.retries, fallbacks=int(reads.spins is None),
        )  # fmt: skip

    @staticmethod
    def fall_back(sub: SubQubo, start: NDArray[np.int8], seed: int) -> NDArray[np.int8]:
        """Samples without the chip."""
        from lns.solvers.dimod_sampler import Tabu

        return Tabu()(sub, start, seed)

    def place(self, sub: SubQubo) -> tuple[Shape, NDArray[np.intp], NDArray[np.intp]]:
        """The shape to embed, the variables of a sub-QUBO that are on the chip, and where in the shape.

        Which target bits belong together is read from their couplings. A bit coupled to no other target bit
        shares an example's place with others of its kind. What exceeds the chip's capacity is left out.
        """
        from lns.embedding import Shape

        groups = _together(target_groups(sub))
        depth = max((len(group) for group in groups), default=0) or self._memory.target_bits
        limit = self.largest(depth).shape
        weights = min(sub.num_weight_bits, limit.weights)
        kept = groups[: limit.examples]
        shape = Shape(max(1, weights), len(kept), depth)
        variables = [*range(weights), *(int(v) for group in kept for v in group)]
        places = [*range(weights), *(shape.example(k)[i] for k, g in enumerate(kept) for i in range(len(g)))]
        if len(variables) < sub.num_variables:
            self.warn_once(
                "size",
                f"A sub-QUBO of {sub.num_weight_bits} weight bits and "
                f"{sub.num_variables - sub.num_weight_bits} target bits is larger than {self.chip.name} has "
                f"room for ({limit}{f', {self.pack} in a call' if self.pack > 1 else ''}): the other bits "
                "stay as they are while it samples. Use smaller rounds (max_bits, examples) or a larger "
                "chip.",
            )
        return shape, np.array(variables, dtype=np.intp), np.array(places, dtype=np.intp)

    def warn_once(self, topic: str, message: str) -> None:
        """Log a warning unless one on this topic was logged before."""
        with self._memory.lock:
            if topic in self._memory.warned:
                return
            self._memory.warned.add(topic)
        _log.warning("%s", message)


def _together(groups: list[NDArray[np.intp]]) -> list[NDArray[np.intp]]:
    """Groups, with single bits put together in groups as large as the largest."""
    single = [group for group in groups if len(group) == 1]
    depth = max((len(group) for group in groups), default=1)
    if depth == 1 or not single:
        return groups
    loose = np.concatenate(single)
    joined = [loose[first : first + depth] for first in range(0, len(loose), depth)]
    return [group for group in groups if len(group) > 1] + joined


@lru_cache(maxsize=8)
def _tiles(chip: Chip, count: int) -> Tiles:
    from lns.embedding.tiles import split

    return split(chip, count)


@lru_cache(maxsize=4)
def _fabric(chip: Chip) -> Fabric:
    from lns.embedding.fabric import Fabric

    return Fabric(chip)


def _rebuild(kind: type[ChipSolver], options: dict[str, Any], target_bits: int) -> ChipSolver:
    solver = kind(**options)
    solver._memory.target_bits = target_bits
    return solver
