"""Neighbourhoods as tasks on a Ray cluster.

The examples that rounds look at are put into the object store once and read in place by every worker of a
node; a task carries codes, a choice and a seed, and brings back codes. A proposal is a function of these
alone, so whatever is lost with a worker or a node is run again elsewhere and comes out the same.
"""

from __future__ import annotations

import contextlib
import math
import pickle
import warnings
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from types import TracebackType

import ray
from ray import ObjectRef
from ray.exceptions import ObjectLostError, ObjectStoreFullError, OutOfDiskError, RayError, RayTaskError

from lns.backends.cluster import Cluster, ClusterLost
from lns.backends.local import LocalBackend
from lns.backends.ray_worker import Parcel, run_task
from lns.clock import Turns, time_until
from lns.errors import ClusterWarning, InvalidInput
from lns.rounds import Part, Proposal, Task, propose, work_of
from lns.solvers import Solver

ATTEMPTS = 4  # on the cluster; after that this process runs the task itself
PATIENCE = 60.0  # seconds after which a task is suspected to hang,
SLOWER = 10.0  # unless so many times as long as it should take, or as others took, is longer
SLOW_START = 180.0  # seconds that workers may take to start and to compile
GRACE = 5.0  # seconds that a task may take to notice its deadline
LOOK = 1.0  # seconds between two looks at the cluster
AHEAD = 2  # tasks sent for each CPU, so that a worker finds the next one waiting


class RayBackend:
    """Runs the tasks of a round on a Ray cluster; results keep the order of the tasks.

    Parameters
    ----------
    solver
        Sent to the workers once.
    workers
        Tasks under way at the same time, one CPU each; None for all CPUs of the cluster.
    address
        The cluster, see `lns.solve`.
    first
        Very small rounds, run on every worker before anything is timed: they start the processes there and
        compile the loops.
    """

    def __init__(
        self, solver: Solver, workers: int | None, address: str | None, first: Sequence[tuple[Part, Task]]
    ) -> None:
        self.solver = solver
        try:
            pickled = ray.cloudpickle.dumps(solver)
        except Exception as error:
            raise InvalidInput(f"The solver cannot be sent to the workers of a cluster: {error}") from error
        self.longest: dict[str, float] = {}  # seconds that a worker was busy with a task, by kind
        self._parcels: dict[int, tuple[Part, Parcel]] = {}  # one for each size of sample
        self._told = False
        self._local: LocalBackend | None = None
        self.cluster = Cluster(address, workers)
        try:
            self.workers = workers or self.cluster.cpus
            # On a cluster with more CPUs than workers were asked for, whatever is sent runs at once.
            self.most_under_way = self.workers if self.workers < self.cluster.cpus else AHEAD * self.workers
            self.solver_parcel = Parcel.put(pickled)
            for part, task in first:
                self._warm_up(part, task)
        except BaseException:
            self.cluster.close()
            raise

    def _warm_up(self, part: Part, task: Task) -> None:
        parcel, work = Parcel.put(part), pickle.dumps(task)
        waiting = [run_task.remote(parcel, self.solver_parcel, work, math.inf) for _ in range(self.workers)]
        end = perf_counter() + SLOW_START
        while waiting and (left := end - perf_counter()) > 0:
            done, waiting = ray.wait(waiting, timeout=left)
            for ref in done:
                with contextlib.suppress(RayError):  # a worker lost now is replaced when it is needed
                    _open(ref)
        if waiting:
            _warn(
                f"{len(waiting)} of {self.workers} workers were not ready within {SLOW_START:.0f} s: are the "
                f"{self.cluster.cpus} CPUs of the cluster busy? The run begins all the same."
            )
            _cancel(waiting)

    def __call__(self, part: Part, tasks: Sequence[Task], deadline: float) -> list[Proposal]:
        """Propose for every task."""
        if self._local is not None:
            return self._local(part, tasks, deadline)
        round = Round(self, part, tasks, deadline)
        try:
            found = round.run()
        except ClusterLost as error:
            found = round.found | self._go_on_alone(str(error), round)
        except BaseException:
            round.cancel()
            raise
        return [found[k] for k in range(len(tasks))]

    def parcel(self, part: Part) -> Parcel:
        """The part in the object store: put there when it is new."""
        if part.rows not in self._parcels or self._parcels[part.rows][0] is not part:
            self.cluster.check()
            self._parcels[part.rows] = part, Parcel.put(part)
        return self._parcels[part.rows][1]

    def forget_parcels(self) -> None:
        """Put parts into the store once more when they are needed."""
        self._parcels.clear()

    def tell_full(self, error: Exception) -> None:
        """Say once that the data of rounds finds no room."""
        if not self._told:
            self._told = True
            why = (str(error).splitlines() or [""])[0]
            _warn(
                f"The object store of the Ray cluster is full ({why}): rounds run in this process meanwhile."
            )

    def _go_on_alone(self, why: str, round: Round) -> dict[int, Proposal]:
        """Without the cluster: what is left of the round, and all rounds to come, in this process."""
        _warn(f"{why}. The run goes on in this process.")
        self._parcels.clear()
        self.cluster.close(lost=True)
        self._local = LocalBackend(self.solver)
        left = [k for k in range(len(round.tasks)) if k not in round.found]
        proposals = self._local(round.part, [round.tasks[k] for k in left], round.deadline)
        return {k: replace(one, retries=round.retries[k] + 1) for k, one in zip(left, proposals, strict=True)}

    def __enter__(self) -> RayBackend:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._local is not None:
            self._local.__exit__(kind, error, trace)
        self.cluster.close()


@dataclass
class Attempt:
    """A task under way."""

    task: int
    began: float
    suspected: bool = False  # of hanging: another attempt has been begun in its place


class Round:
    """The tasks of one round, until there is a proposal for each."""

    def __init__(self, backend: RayBackend, part: Part, tasks: Sequence[Task], deadline: float) -> None:
        self.backend, self.part, self.tasks, self.deadline = backend, part, tasks, deadline
        self.turns = Turns(len(tasks), backend.workers, deadline)
        self.found: dict[int, Proposal] = {}
        self.retries = [0] * len(tasks)
        self._work = [pickle.dumps(task) for task in tasks]
        self._waiting = deque(range(len(tasks)))
        self._running: dict[ObjectRef, Attempt] = {}
        self._looked = 0.0

    def run(self) -> dict[int, Proposal]:
        """A proposal for every task, by number."""
        while len(self.found) < len(self.tasks):
            self._look_at_the_cluster()
            self._begin_tasks()
            self._collect()
            self._suspect()
        self.cancel()  # what hangs, and has been found elsewhere
        return self.found

    def cancel(self) -> None:
        """End whatever is still under way."""
        _cancel(list(self._running))
        self._running.clear()

    def _look_at_the_cluster(self) -> None:
        if perf_counter() - self._looked >= LOOK:
            self.backend.cluster.check()
            self._looked = perf_counter()

    def _begin_tasks(self) -> None:
        busy = sum(not attempt.suspected for attempt in self._running.values())
        while self._waiting and busy < self.backend.most_under_way:
            k = self._waiting.popleft()
            if k in self.found:  # an attempt that seemed to hang came back
                continue
            if self.retries[k] >= ATTEMPTS:
                self._run_here(k)
                continue
            try:
                part = self.backend.parcel(self.part)
            except (ObjectStoreFullError, OutOfDiskError) as error:
                self.backend.tell_full(error)
                self._run_here(k)
                continue
            # A task may be sent before it is its turn; its time begins when it does.
            left = min(self.turns.end(k) - perf_counter(), self.turns.span)
            ref = run_task.remote(part, self.backend.solver_parcel, self._work[k], left)
            self._running[ref] = Attempt(k, perf_counter())
            busy += 1

    def _collect(self) -> None:
        if not self._running:
            return
        done, _ = ray.wait(list(self._running), timeout=LOOK)
        for ref in done:
            attempt = self._running.pop(ref)
            k = attempt.task
            if k in self.found:
                continue
            try:
                answer = _open(ref)
            except RayError as error:  # the worker, its node or its data was lost, not the task itself
                if isinstance(error, ObjectLostError):
                    self.backend.forget_parcels()
                self._again(k)
                continue
            codes, *others = pickle.loads(answer)
            proposal = Proposal(codes, self.tasks[k].choice, *others)
            self._keep(k, replace(proposal, moved_bytes=len(self._work[k]) + len(answer)))

    def _keep(self, k: int, proposal: Proposal) -> None:
        self.found[k] = replace(proposal, retries=self.retries[k])
        kind, longest = proposal.choice.kind, self.backend.longest
        longest[kind] = max(longest.get(kind, 0.0), sum(proposal.timings.values()))

    def _again(self, k: int) -> None:
        """Another attempt, unless there is one already."""
        self.retries[k] += 1
        under_way = any(one.task == k and not one.suspected for one in self._running.values())
        if not under_way and k not in self._waiting:
            self._waiting.appendleft(k)

    def _suspect(self) -> None:
        """Begin tasks again that take far too long; those that do so again, or are out of time, run here."""
        now = perf_counter()
        for attempt in list(self._running.values()):
            k = attempt.task
            if attempt.suspected or k in self.found:
                continue
            out_of_time = now > self.deadline + GRACE
            if out_of_time or now - attempt.began > self._patience(self.tasks[k]):
                attempt.suspected = True
                before = any(other.task == k and other is not attempt for other in self._running.values())
                self.retries[k] += 1
                if out_of_time or before:
                    self._run_here(k)
                else:
                    self._waiting.appendleft(k)

    def _patience(self, task: Task) -> float:
        expected = 1e-9 * work_of(self.part, task)
        return max(PATIENCE, SLOWER * max(expected, self.backend.longest.get(task.choice.kind, 0.0)))

    def _run_here(self, k: int) -> None:
        """The last resort: in this process."""
        self.retries[k] = max(1, self.retries[k])
        used = time_until(self.deadline)
        self._keep(k, propose(self.part, self.backend.solver, self.tasks[k], used))


def _open(ref: ObjectRef) -> bytes:
    """The answer of a task; an error of its own as it was raised there, the loss of it as a `RayError`."""
    try:
        answer: bytes = ray.get(ref)
        return answer
    except RayTaskError as error:
        raise error.cause from error


def _cancel(refs: Sequence[ObjectRef]) -> None:
    """End tasks together with their workers: a task inside a solver would not hear a polite word."""
    for ref in refs:
        with contextlib.suppress(Exception):  # the cluster may be gone
            ray.cancel(ref, force=True)


def _warn(text: str) -> None:
    warnings.warn(text, ClusterWarning, stacklevel=3)
