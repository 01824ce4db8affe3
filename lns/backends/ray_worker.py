"""What runs in the workers of a Ray cluster."""

from __future__ import annotations

import itertools
import os
import pickle
from collections import OrderedDict
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any

import ray
from threadpoolctl import threadpool_limits

from lns import matrix
from lns.clock import time_until
from lns.rounds import Part, propose
from lns.solvers import Solver

_count = itertools.count()


@dataclass(frozen=True)
class Parcel:
    """Something in the object store, and its name there: a worker opens each once."""

    name: str
    inside: list[Any]  # the reference; in a list, so that it is not fetched for every task

    @classmethod
    def put(cls, value: Any) -> Parcel:
        """Store a value, once for all workers."""
        return cls(f"{os.getpid()}.{next(_count)}", [ray.put(value)])


#: What this worker has opened, by name: two samples and a solver; more would fill the store with older data.
_opened: OrderedDict[str, Any] = OrderedDict()
KEPT = 4


def opened(parcel: Parcel) -> Any:
    """The contents of a parcel; arrays are read in place and cannot be changed."""
    if parcel.name not in _opened:
        while len(_opened) >= KEPT:
            _opened.popitem(last=False)
        value = ray.get(parcel.inside[0])
        _opened[parcel.name] = pickle.loads(value) if isinstance(value, bytes) else value
    _opened.move_to_end(parcel.name)
    return _opened[parcel.name]


@cache
def use_one_core() -> None:
    """A task has one CPU: no threads of BLAS or of our own beside it."""
    threadpool_limits(1, user_api="blas")
    matrix.use_cores(1)


@ray.remote(num_cpus=1, max_retries=0)
def run_task(part: Parcel, solver: Parcel, work: bytes, seconds: float) -> bytes:
    """Run a neighbourhood and return its proposal, without the choice, which the sender knows.

    `seconds` are left of its time: clocks of different machines do not agree on more than that.
    """
    used = time_until(perf_counter() + seconds)
    the_part: Part = opened(part)
    the_solver: Solver = opened(solver)
    use_one_core()
    found = propose(the_part, the_solver, pickle.loads(work), used)
    sizes = found.num_variables, found.num_couplers, found.reads
    return pickle.dumps((found.codes, found.batch, *sizes, found.timings, found.chip, found.point))
