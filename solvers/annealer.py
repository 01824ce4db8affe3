"""The way to a quantum annealer: connect, ask in time, ask again, count what it costs, keep secrets."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lns.errors import AnnealerError, InvalidInput

if TYPE_CHECKING:
    import dimod

    from lns.solvers.chains import Ising

T = TypeVar("T")

#: Seconds before the second attempt; twice as many before each further one, give or take a half.
FIRST_PAUSE = 0.5

#: After a failure that outlasted all attempts the annealer is left alone for so many seconds, twice as long
#: after every further one, so that a machine that is down does not hold up a run.
FIRST_REST, LONGEST_REST = 5.0, 300.0

#: What D-Wave's tokens look like; the leading letters name the kind of account.
_TOKEN = re.compile(r"\b[A-Za-z]{2,8}-[0-9a-fA-F]{16,}\b")
_ADDRESS = re.compile(r"\bhttps?://[^\s'\",)]+")

HOW_TO_CONFIGURE = (
    "The solver 'qpu' needs a D-Wave configuration: make one with 'dwave config create'. "
    "The solvers 'emulator' and 'tabu' need none."
)


def check_configuration(profile: str | None) -> None:
    """See that there is a token to connect with; nothing is sent.

    Raises
    ------
    InvalidInput
        If there is none, with the remedy.
    """
    from dwave.cloud.config import load_config

    try:
        token = load_config(profile=profile).get("token")
    except ValueError:
        raise InvalidInput(
            f"The D-Wave configuration has no profile {profile!r}: see 'dwave config inspect'. "
            f"{HOW_TO_CONFIGURE}"
        ) from None
    except Exception as error:  # the text may quote the file, secrets included
        raise InvalidInput(
            f"The D-Wave configuration cannot be read ({type(error).__name__}). {HOW_TO_CONFIGURE}"
        ) from None
    if not token:
        raise InvalidInput(HOW_TO_CONFIGURE)


def connect(profile: str | None, solver: str | None, region: str | None) -> Any:
    """D-Wave's sampler, with what is given set above the user's configuration."""
    from dwave.system import DWaveSampler

    given = {"profile": profile, "solver": solver, "region": region}
    return DWaveSampler(**{name: value for name, value in given.items() if value is not None})


def scrub(error: BaseException, profile: str | None = None) -> str:
    """The kind and text of an error in one line, without tokens and addresses."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    for secret in _secrets(profile):
        text = text.replace(secret, "***")
    return " ".join(_ADDRESS.sub("***", _TOKEN.sub("***", text)).split()).rstrip(".")


def _secrets(profile: str | None) -> set[str]:
    """The tokens known to the configuration; read when needed, so that no object holds them."""
    found = {os.environ.get("DWAVE_API_TOKEN")}
    try:
        from dwave.cloud.config import load_config

        config = load_config(profile=profile)
        found |= {str(config.get(key)) for key in ("token", "leap_client_id") if config.get(key)}
        found |= {str(value) for value in (config.get("headers"), config.get("proxy")) if value}
    except Exception:  # without a configuration there is nothing to hide
        pass
    return {secret for secret in found if secret}


class Budget:
    """Seconds of access to the annealer: spent, promised to calls on their way, and allowed."""

    def __init__(self, limit: float | None) -> None:
        self.limit, self.spent, self._promised = limit, 0.0, 0.0
        self._lock = threading.Lock()

    def reserve(self, seconds: float) -> bool:
        """Promise so many seconds to a call, or say that they are not there."""
        with self._lock:
            total = self.spent + self._promised
            if self.limit is not None and (total + seconds > self.limit or total >= self.limit):
                return False
            self._promised += seconds
            return True

    def settle(self, reserved: float, spent: float) -> None:
        """A call is over. One that never ends keeps what it was promised: it may have been charged."""
        with self._lock:
            self._promised -= reserved
            self.spent += spent


class Unanswered(AnnealerError):
    """The annealer gave no answer; `retries` and `qpu_time` say what that cost."""

    def __init__(self, message: str, retries: int = 0, qpu_time: float = 0.0) -> None:
        super().__init__(message)
        self.retries, self.qpu_time = retries, qpu_time


class Spent(Unanswered):
    """The QPU time of the run is used up."""


class Gone(Unanswered):
    """Nobody waits for the answer any more."""


class Annealer:
    """A sampler that may fail, and the patience to deal with it. Safe in threads.

    Parameters
    ----------
    make
        Makes the sampler; called in the process that samples, when it is first needed.
    budget
        What may be spent.
    timeout
        Seconds for an attempt to answer.
    retries
        Attempts beyond the first.
    profile
        The profile of the configuration, whose secrets are kept out of messages.
    sleep, clock
        For tests.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        budget: Budget,
        *,
        timeout: float,
        retries: int,
        profile: str | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make, self.budget, self.profile = make, budget, profile
        self.timeout, self.retries = timeout, retries
        self.sleep, self.clock = sleep, clock
        self._sampler: Any = None
        self._last_time = 0.0
        self._failures, self._rest_until = 0, -np.inf
        self._lock, self._connecting = threading.Lock(), threading.Lock()

    # ---- patience ----

    @property
    def sampler(self) -> Any:
        """The sampler, connected.

        Raises
        ------
        Unanswered
            If that is not possible.
        """
        with self._connecting:
            if self._sampler is None:
                self._sampler, _ = self.persist(lambda _: self._make(), seed=0)
            return self._sampler

    def persist(
        self, attempt: Callable[[int], T], seed: int, wanted: Callable[[], bool] = lambda: True
    ) -> tuple[T, int]:
        """Try until it works: the result, and the number of attempts beyond the first.

        Parameters
        ----------
        attempt
            What to do; is told the number of the attempt.
        seed
            Of the pauses between attempts.
        wanted
            Whether anybody still waits for the answer.

        Raises
        ------
        Unanswered
            If all attempts fail, or if the annealer rests after earlier failures.
        """
        with self._lock:
            resting = self.clock() < self._rest_until
        if resting:
            raise Unanswered("the annealer has failed before and is left alone for a while")
        rng = np.random.default_rng(seed)
        for number in range(self.retries + 1):
            if number:
                self.sleep(FIRST_PAUSE * 2 ** (number - 1) * float(rng.uniform(0.5, 1.5)))
            if not wanted():
                raise Gone("nobody waits for the answer", number)
            try:
                result = in_time(partial(attempt, number), self.timeout)
            except Unanswered as error:
                error.retries = number
                raise
            except Exception as error:
                reason = scrub(error, self.profile)
            else:
                with self._lock:
                    self._failures = 0
                return result, number
        with self._lock:
            rest = min(LONGEST_REST, FIRST_REST * 2**self._failures)
            self._failures, self._rest_until = self._failures + 1, self.clock() + rest
        raise Unanswered(reason, self.retries)

    # ---- sampling ----

    def sample(
        self,
        problem: Ising,
        qubits: NDArray[np.integer],
        gauges: Sequence[NDArray[np.int8]],
        num_reads: int,
        *,
        seed: int = 0,
        wanted: Callable[[], bool] = lambda: True,
        **parameters: Any,
    ) -> tuple[NDArray[np.int8], float, int]:
        """Reads of a physical problem, the seconds of access they took, and the retries.

        Parameters
        ----------
        problem
            Fields and couplings, of spins numbered from 0.
        qubits
            The qubit of each spin.
        gauges
            Spin-reversal transforms: signs for the spins, each with an equal part of the reads.
        num_reads
            Reads in all.
        seed, wanted
            See `persist`.
        parameters
            Passed to the sampler.

        Raises
        ------
        Unanswered
            If there is no answer, or no time left to pay for one.
        """
        sampler = self.sampler
        counts = [len(part) for part in np.array_split(np.arange(num_reads), len(gauges))]
        price = sum(self._estimate(len(qubits), count, parameters) for count in counts)
        paid: list[float] = []

        def attempt(number: int) -> NDArray[np.int8]:
            if not self.budget.reserve(price):
                raise Spent("the QPU time of the run is used up")
            cost = 0.0
            try:
                # All are on their way before the first is waited for.
                answers = [
                    sampler.sample(labelled(problem.gauged(signs), qubits), num_reads=count, **parameters)
                    for signs, count in zip(gauges, counts, strict=True)
                ]
                for answer in answers:
                    answer.resolve()
                    seconds = access_time(answer)
                    cost += price / len(gauges) if seconds is None else seconds
                return np.concatenate(
                    [
                        read_spins(answer, qubits, count) * signs
                        for answer, count, signs in zip(answers, counts, gauges, strict=True)
                    ]
                )
            finally:
                paid.append(cost)
                self.budget.settle(price, cost)

        try:
            spins, retries = self.persist(attempt, seed, wanted)
        except Unanswered as error:
            error.qpu_time = sum(paid)
            raise
        self._last_time = paid[-1] / len(gauges)
        return spins, sum(paid), retries

    def _estimate(self, num_qubits: int, num_reads: int, parameters: dict[str, Any]) -> float:
        """Seconds that a call will take: as the solver says, or else like the last one."""
        try:
            time = parameters.get("annealing_time")
            estimate = self._sampler.solver.estimate_qpu_access_time(
                num_qubits, num_reads=num_reads, **({} if time is None else {"annealing_time": time})
            )
            return 1e-6 * float(estimate)
        except Exception:  # stand-ins have no estimate, and some timing models are not supported
            return self._last_time


def in_time(function: Callable[[], T], seconds: float) -> T:
    """The function's result, or TimeoutError; what hangs is left behind in a thread that ends with us."""
    done = threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    threading.Thread(target=work, name="lns-annealer", daemon=True).start()
    if not done.wait(seconds):
        raise TimeoutError(f"no answer within {seconds:g} s")
    if errors:
        raise errors[0]
    return results[0]


def labelled(problem: Ising, qubits: NDArray[np.integer]) -> dimod.BinaryQuadraticModel:
    """The problem as dimod's model over qubits."""
    import dimod

    couplers = (problem.a, problem.b, problem.j)
    return dimod.BinaryQuadraticModel.from_numpy_vectors(
        problem.h, couplers, 0.0, "SPIN", variable_order=[int(q) for q in qubits]
    )


def read_spins(answer: Any, qubits: NDArray[np.integer], num_reads: int) -> NDArray[np.int8]:
    """The spins of these qubits, one row a read.

    Raises
    ------
    ValueError
        If reads or qubits are missing, or values are not spins.
    """
    record = answer.record
    labels = np.asarray([int(label) for label in answer.variables], dtype=np.int64)
    order = np.argsort(labels)
    at = np.searchsorted(labels, qubits, sorter=order)
    found = at < len(labels)
    if not found.all() or (labels[order[at]] != qubits).any():
        raise ValueError(f"the sample set lacks qubits of the problem ({len(labels)} of {len(qubits)})")
    spins = np.repeat(np.asarray(record.sample)[:, order[at]], record.num_occurrences, axis=0)
    if not np.isin(spins, (-1, 1)).all():
        raise ValueError("the sample set has values that are not spins")
    if len(spins) < num_reads:
        raise ValueError(f"the sample set has {len(spins)} reads, not {num_reads}")
    return spins[:num_reads].astype(np.int8)


def access_time(answer: Any) -> float | None:
    """Seconds of access that a sample set says it took; None if it does not say."""
    try:
        seconds = 1e-6 * float(answer.info["timing"]["qpu_access_time"])
    except (KeyError, TypeError, ValueError):
        return None
    return seconds if 0 <= seconds < np.inf else None
