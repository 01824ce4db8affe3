"""Doing units side by side, in processes of this machine or on a Ray cluster, with progress."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import get_context
from time import perf_counter
from typing import Any, TextIO

import numpy as np

from lns.matrix import use_cores
from lns.paper.cache import Cache
from lns.paper.units import Unit, run_unit

Submit = Callable[[Unit], "Future[dict[str, Any]]"]


def timed(unit: Unit) -> dict[str, Any]:
    """The result of a unit, with the seconds that it took. For workers: it leaves them one thread."""
    use_cores(1)
    began = perf_counter()
    result = run_unit(unit)
    return {**result, "unit_seconds": perf_counter() - began}


def _begin_worker(parent: int) -> None:
    """No life after the parent, which may be killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def processes(workers: int) -> Iterator[Submit]:
    """Processes of this machine."""
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin_worker, (os.getpid(),))
    try:
        yield lambda unit: pool.submit(timed, unit)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def open_workers(backend: str, workers: int, address: str | None) -> Iterator[Submit]:
    """Where units are done."""
    if backend == "ray":
        from lns.backends.ray_calls import calls

        with calls(timed, address, workers) as submit:
            yield submit
    else:
        with processes(workers) as submit:
            yield submit


class Bench:
    """Does units that have not been done before, and keeps their results.

    Parameters
    ----------
    cache
        Where results are kept.
    submit, workers
        Where units are done, and how many at a time.
    stream
        For the line of progress.
    """

    def __init__(self, cache: Cache, submit: Submit, workers: int, stream: TextIO | None = None) -> None:
        self.cache, self.submit, self.workers = cache, submit, workers
        self.stream = stream or sys.stderr
        self.spent = 0.0  # seconds that units have taken, those done in earlier runs included
        self._every, self._last = (0.5 if self.stream.isatty() else 15.0), 0.0

    def results(self, units: Sequence[Unit], data: str, stage: str) -> dict[int, dict[str, Any]]:
        """The result of every unit, by its place in the list."""
        done = {k: found for k, unit in enumerate(units) if (found := self.cache.get(unit, data)) is not None}
        # In a random order, so that the time of the first tells the time of all.
        order = np.random.default_rng(0).permutation(len(units)).tolist()
        waiting = [k for k in order if k not in done]
        began, total, reused = perf_counter(), len(units), len(done)
        running: dict[Future[dict[str, Any]], int] = {}
        while waiting or running:
            while waiting and len(running) < 2 * self.workers:  # one at work and one in the queue, each
                k = waiting.pop(0)
                running[self.submit(units[k])] = k
            for future in wait(running, timeout=1.0, return_when=FIRST_COMPLETED).done:
                k = running.pop(future)
                done[k] = future.result()
                self.cache.put(units[k], data, done[k])
            self._show(stage, len(done), total, (perf_counter() - began), reused)
        self._show(stage, total, total, perf_counter() - began, reused, last=True)
        self.spent += sum(float(one.get("unit_seconds", 0.0)) for one in done.values())
        return done

    def _show(
        self, stage: str, done: int, total: int, seconds: float, reused: int, last: bool = False
    ) -> None:
        now = perf_counter()
        if not last and now - self._last < self._every:
            return
        self._last = now
        fresh = done - reused
        left = "" if last or not fresh else f", about {_span(seconds / fresh * (total - done))} left"
        text = f"{stage}: {done} of {total} units{left}"
        tty = self.stream.isatty()
        end = "\n" if last or not tty else ""
        self.stream.write((f"\r\x1b[K{text}" if tty else text) + end)
        self.stream.flush()


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
