"""Rounds on a quantum annealer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lns.errors import AnnealerError, InvalidInput
from lns.solvers.annealer import Annealer, Budget, Gone, Spent, Unanswered, check_configuration, connect
from lns.solvers.broker import Broker
from lns.solvers.chip import ChipCall, ChipSolver, Embedded, Reads
from lns.subproblem import SubQubo

if TYPE_CHECKING:
    from lns.embedding import Chip
    from lns.solvers.chains import Ranges

#: Seconds that a sub-QUBO waits for others to share its call; a call takes a hundred times as long.
WINDOW = 0.005

#: Seconds between two looks at whether the run is over, while an answer is awaited.
LOOK = 0.05

#: What the calls are called in D-Wave's list of problems.
LABEL = "qlns"


class _Line:
    """The connection of one process: made when first needed, shared by all threads, never sent elsewhere."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.annealer: Annealer | None = None
        self.broker: Broker[Embedded, Reads] | None = None
        self.chip: Chip | None = None


@dataclass(frozen=True, kw_only=True)
class QPU(ChipSolver):
    """D-Wave's annealers, through the user's own configuration (``dwave config create``).

    Where no answer comes, whatever the reason, the attempt is repeated after a pause, and after the last one
    tabu search answers in its place: a run goes on, with one warning and a count. For all other parameters
    see `lns.solvers.chip.ChipSolver`.

    Parameters
    ----------
    profile, solver, region
        Which profile of the configuration, which annealer, which region; None for what the configuration
        says.
    annealing_time
        Microseconds of an anneal; None for the annealer's default.
    num_spin_reversal_transforms
        Divide the reads among so many copies of the problem with random spins turned round, against the
        machine's biases; each copy is programmed anew, which takes QPU time. 0 for none.
    qpu_time_limit
        Seconds of access to the annealer, in all; afterwards rounds go on with tabu search. Counted for this
        object: several processes count each for itself.
    timeout
        Seconds for an attempt to answer, queue included.
    retries
        Attempts beyond the first.
    sampler
        A function that makes the sampler to use in place of D-Wave's own: anything structured with the same
        properties, such as ``dwave.system.testing.MockDWaveSampler``.
    """

    name: ClassVar[str] = "qpu"
    interruptible: ClassVar[bool] = True

    profile: str | None = None
    solver: str | None = None
    region: str | None = None
    num_reads: int = 100
    annealing_time: float | None = None
    num_spin_reversal_transforms: int = 0
    pack: int = 2
    qpu_time_limit: float | None = None
    timeout: float = 60.0
    retries: int = 2
    sampler: Callable[[], Any] | None = None
    _line: _Line = field(init=False, repr=False, compare=False, default_factory=_Line)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_counts("num_spin_reversal_transforms", "retries", least=0)
        if self.num_spin_reversal_transforms > self.num_reads:
            raise InvalidInput(
                "The 'num_spin_reversal_transforms' option of qpu must be at most num_reads "
                f"({self.num_reads}). Got {self.num_spin_reversal_transforms}."
            )
        for name in ("annealing_time", "timeout", "qpu_time_limit"):
            value = getattr(self, name)
            if value is None and name != "timeout":
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < np.inf:
                raise InvalidInput(f"The {name!r} option of qpu must be a number above 0. Got {value!r}.")
        if self.sampler is None:
            check_configuration(self.profile)
        elif not callable(self.sampler):
            raise InvalidInput("The 'sampler' option of qpu must be a function that makes a sampler.")

    # ---- the connection ----

    @property
    def annealer(self) -> Annealer:
        """The way to the machine."""
        with self._line.lock:
            if self._line.annealer is None:
                make = self.sampler or partial(connect, self.profile, self.solver, self.region)
                self._line.annealer = Annealer(
                    make, Budget(self.qpu_time_limit), timeout=self.timeout, retries=self.retries,
                    profile=self.profile,
                )  # fmt: skip
            return self._line.annealer

    @property
    def chip(self) -> Chip:
        """The working graph of the machine.

        Raises
        ------
        AnnealerError
            If it cannot be reached.
        """
        with self._line.lock:
            if self._line.chip is None:
                from lns.embedding import Chip

                sampler = self.annealer.sampler
                self._check_limits(sampler.properties)
                self._line.chip = Chip.from_sampler(sampler)
            return self._line.chip

    @property
    def ranges(self) -> Ranges:
        """What the machine's coefficients may be."""
        from lns.solvers.chains import Ranges

        turned = self.num_spin_reversal_transforms > 0
        return Ranges.of(self.annealer.sampler.properties, turned)

    @property
    def qpu_time(self) -> float:
        """Seconds of access to the annealer so far."""
        return self.annealer.budget.spent

    def prepare(self, target_bits: int) -> None:
        """Connect, and find or load what rounds need.

        Raises
        ------
        AnnealerError
            If the annealer cannot be reached: better now than after hours on tabu search.
        InvalidInput
            If an option is not what this annealer takes.
        """
        try:
            super().prepare(target_bits)
        except Unanswered as error:
            raise AnnealerError(
                f"The annealer cannot be reached ({error}). See what 'dwave ping' says, or use the solver "
                "'emulator' or 'tabu'."
            ) from None

    def _check_limits(self, properties: dict[str, Any]) -> None:
        for name in ("num_reads", "annealing_time"):
            limits, value = properties.get(f"{name}_range"), getattr(self, name)
            if limits and value is not None and not limits[0] <= value <= limits[1]:
                raise InvalidInput(
                    f"The {name!r} option of qpu must lie in [{limits[0]}, {limits[1]}] on this annealer. "
                    f"Got {value!r}."
                )

    # ---- calls ----

    def __call__(
        self,
        sub: SubQubo,
        start: NDArray[np.int8],
        seed: int,
        expired: Callable[[], bool] = lambda: False,
    ) -> NDArray[np.int8]:
        """Samples of `sub`; its call is shared with those of other threads.

        Parameters
        ----------
        sub, start, seed
            See `Solver`.
        expired
            Whether the run is over: then nothing is waited for.
        """
        try:
            problem = self.embed(sub, start, seed)
        except Unanswered as error:  # in a worker that cannot connect
            self._say(error)
            samples = self.fall_back(sub, start, seed)
            return self._remember(samples, ChipCall(reads=len(samples), retries=error.retries, fallbacks=1))
        began = perf_counter()
        future = self.broker.submit(problem)
        while not (wait([future], LOOK).done or (expired() and future.cancel())):
            pass
        reads = Reads(None, perf_counter() - began) if future.cancelled() else future.result()
        return self._remember(*self.unembed(problem, reads))

    @property
    def broker(self) -> Broker[Embedded, Reads]:
        """Who gathers the requests of threads into calls."""
        with self._line.lock:
            if self._line.broker is None:
                self._line.broker = Broker(self._call, self.pack, WINDOW)
            return self._line.broker

    def anneal(self, problems: Sequence[Embedded]) -> list[Reads]:
        """Reads of physical problems; all calls are on their way before the first is waited for."""
        futures: list[Future[Reads]] = []
        for first in range(0, len(problems), self.pack):
            futures += self.broker.send(problems[first : first + self.pack])
        return [future.result() for future in futures]

    def _call(self, problems: list[Embedded], wanted: Callable[[], bool]) -> list[Reads]:
        """One call: every problem on its own region, with its own spin-reversal transforms."""
        from lns.solvers.chains import Ising

        began = perf_counter()
        tiles, sizes = self.tiles, [problem.wiring.num_qubits for problem in problems]
        firsts = np.cumsum([0, *sizes])
        qubits = np.concatenate([tiles.place(one.wiring.qubits, k) for k, one in enumerate(problems)])
        parts = [one.problem for one in problems]
        whole = Ising(
            h=np.concatenate([part.h for part in parts]),
            a=np.concatenate([part.a + first for part, first in zip(parts, firsts, strict=False)]),
            b=np.concatenate([part.b + first for part, first in zip(parts, firsts, strict=False)]),
            j=np.concatenate([part.j for part in parts]),
            offset=0.0,
        )
        signs = np.concatenate([self._signs(one.seed, m) for one, m in zip(problems, sizes, strict=True)], 1)
        spins: NDArray[np.int8] | None
        try:
            spins, qpu_time, retries = self.annealer.sample(
                whole, qubits, list(signs), self.num_reads, seed=problems[0].seed, wanted=wanted,
                **self._parameters(),
            )  # fmt: skip
        except Unanswered as error:
            self._say(error)
            spins, qpu_time, retries = None, error.qpu_time, error.retries
        count, seconds = len(problems), perf_counter() - began
        return [
            Reads(
                None if spins is None else spins[:, firsts[k] : firsts[k + 1]],
                seconds, count, qpu_time / count, 0 if k else retries,
            )
            for k in range(count)
        ]  # fmt: skip

    def _signs(self, seed: int, size: int) -> NDArray[np.int8]:
        """The spin-reversal transforms of one problem, from its own seed: one row each."""
        count = self.num_spin_reversal_transforms
        if not count:
            return np.ones((1, size), dtype=np.int8)
        return np.random.default_rng(seed).choice(np.array([-1, 1], dtype=np.int8), (count, size))

    def _parameters(self) -> dict[str, Any]:
        """What the sampler is told, as far as it takes it: our scale is the right one, every read counts."""
        wanted = {
            "annealing_time": self.annealing_time, "answer_mode": "raw", "auto_scale": False, "label": LABEL,
        }  # fmt: skip
        known = self.annealer.sampler.parameters
        return {name: value for name, value in wanted.items() if value is not None and name in known}

    def _say(self, error: Unanswered) -> None:
        """Warn of the first failure, and of the end of the QPU time; later ones are counted only."""
        if isinstance(error, Gone):
            return
        if isinstance(error, Spent):
            self.warn_once(
                "spent",
                f"The {self.qpu_time_limit:g} s of QPU time are used up: rounds go on with tabu search.",
            )
        else:
            self.warn_once(
                "failed",
                f"The annealer gave no answer ({error}): tabu search takes this round, and others in which "
                "that happens; the summary says how many.",
            )
