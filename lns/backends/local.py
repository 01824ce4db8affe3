"""Neighbourhoods on threads of this process.

The compiled loops and the samplers release the GIL: threads use all cores and share the data without a copy.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

from lns.clock import Turns, time_until
from lns.rounds import Part, Proposal, Task, propose
from lns.solvers import Solver


class LocalBackend:
    """Runs the tasks of a round on `workers` threads; results keep the order of the tasks."""

    def __init__(self, solver: Solver, workers: int | None = None) -> None:
        self.solver = solver
        self._cancelled = False
        self.workers = workers or os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="lns-round")

    def __call__(self, part: Part, tasks: Sequence[Task], deadline: float) -> list[Proposal]:
        """Propose for every task; where they take turns, each has its share of the time."""
        turns = Turns(len(tasks), self.workers, deadline)

        def run(k: int) -> Proposal:
            used = time_until(turns.end(k))
            return propose(part, self.solver, tasks[k], lambda: math.inf if self._cancelled else used())

        try:
            return list(self._pool.map(run, range(len(tasks))))
        except KeyboardInterrupt:
            self._cancelled = True  # the threads end their walks at the next look
            raise

    def __enter__(self) -> LocalBackend:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)
