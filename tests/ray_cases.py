"""Solvers with faults, and a problem, for tests on a cluster."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
from search_cases import random_problem

from lns.engine import EngineParams
from lns.solvers import Tabu

HEATS = (20.0, 9.0, 6.0, 2.0, 0.5, 0.5)  # three hot walks side by side, then three others
PARAMS = EngineParams(walk_moves=50, sample_rows=120, most_rows=250, neighbourhoods=3, heats=HEATS)


def problem():
    """A problem whose rounds take milliseconds, with more rows than they look at."""
    return random_problem(rows=300)


class Faulty:
    """Tabu that comes to grief in some of its calls, the first times, and not in the process of the tests.

    Parameters
    ----------
    fault
        ``"die"`` or ``"hang"``.
    folder
        Where it is remembered which calls have had their trouble.
    share
        Of the calls, chosen by their seeds.
    times
        How often each of them has it.
    calls
        How many have it at most.
    """

    def __init__(self, fault, folder, share=0.4, times=1, calls=10**9):
        self.fault, self.folder, self.share, self.times = fault, str(folder), share, times
        self.calls = calls
        self.home = os.getpid()

    def __call__(self, sub, start, seed):
        if os.getpid() != self.home and np.random.default_rng(seed).random() < self.share:
            for attempt in range(self.times):
                mark = Path(self.folder) / f"{seed}.{attempt}"
                if not mark.exists() and len(os.listdir(self.folder)) < self.calls:
                    mark.touch()
                    if self.fault == "die":
                        os.kill(os.getpid(), signal.SIGKILL)
                    time.sleep(1000)
        return Tabu()(sub, start, seed)


class Refuses:
    """A solver that does not work, at all or in other processes."""

    def __call__(self, sub, start, seed):
        raise ZeroDivisionError("no such thing")


class Unsendable(Tabu):
    """A solver that holds something of this process."""

    def __reduce__(self):
        raise TypeError("cannot pickle a connection")


class Slow(Tabu):
    """Tabu that takes its time."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds

    def __call__(self, sub, start, seed):
        time.sleep(self.seconds)
        return super().__call__(sub, start, seed)
