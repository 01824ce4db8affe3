"""Keeps a run in a checkpoint: what to write, when to write it, and how to go on from it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lns.accept import Accept
from lns.checkpoint import data_path, read_checkpoint, write_atomically, write_checkpoint
from lns.engine import Search
from lns.errors import CheckpointWarning, DamagedCheckpoint, InvalidInput, WrongProblem
from lns.problem import QLossProblem
from lns.problem_file import fingerprint, grids_to_arrays, on_levels_of, read_problem, write_problem
from lns.records import from_columns, to_columns
from lns.result import RoundRecord
from lns.select import Selector
from lns.settings import Settings
from lns.sharded import ShardedProblem

COUNTERS = ("rounds", "best_round")
MOST = 0.05  # share of the time that writing may take


@dataclass(frozen=True)
class Begun:
    """A run that has begun: where from, and what it has behind it."""

    settings: Settings
    search: Search
    start: NDArray[np.float64]  # weights and, last, the bias
    start_objective: float
    start_time: float
    seconds: float = 0.0
    records: Sequence[RoundRecord] = ()
    select: dict[str, float] = field(default_factory=dict)
    accept: Any = None


class Keeper:
    """Writes checkpoints of one run.

    After every round it takes down all that the next one depends on, which costs next to nothing; every so
    many seconds it writes that to the file. Whenever the run ends, the file is of the end of a round.

    Parameters
    ----------
    path
        The checkpoint. The problem goes to a file beside it, once.
    every
        Seconds between two writes; longer if they take more than a twentieth of the time.
    """

    def __init__(self, path: str | os.PathLike[str], every: float) -> None:
        self.path = Path(path).absolute()
        self.every = every
        if not every > 0:
            raise InvalidInput(f"checkpoint_every must be above 0. Got {every}.")
        if self.path.is_dir() or not self.path.parent.is_dir():
            what = "is a folder" if self.path.is_dir() else "lies in a folder that does not exist"
            raise InvalidInput(f"checkpoint must name a file in an existing folder. {self.path} {what}.")
        self.problem = ""
        self._warned = False
        self._records: list[RoundRecord] = []
        self._now: tuple[dict[str, Any], dict[str, NDArray], int] | None = None
        self._due = 0.0

    def save_problem(self, problem: QLossProblem) -> None:
        """Write the problem beside the checkpoint; an error if that cannot be done.

        Shards are not copied: they have sources of their own, and are too large for one process.
        """
        self.problem = _fingerprint(problem)
        if isinstance(problem, ShardedProblem):
            self.check_writable()
            return
        try:
            write_atomically(data_path(self.path), lambda file: write_problem(file, problem))
        except OSError as error:
            raise InvalidInput(
                f"checkpoint cannot be written to {self.path.parent}: {error.strerror}. Choose another file."
            ) from error

    def check_writable(self) -> None:
        """An error if the folder takes no new files."""
        probe = self.path.with_name(self.path.name + ".tmp")
        try:
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise InvalidInput(
                f"The run goes on writing {self.path}, and its folder takes no files ({error.strerror}). "
                "Copy the checkpoint and its data to another folder."
            ) from error

    def begin(self, begun: Begun, select: Selector, accept: Accept, began: float) -> None:
        """Take down where the run begins and write it: the start is worth keeping, too."""
        self._select, self._accept, self._began = select, accept, began
        self._records = list(begun.records)
        self._header = {
            "problem": self.problem,
            "in_shards": isinstance(begun.search.curr.problem, ShardedProblem),
            "settings": begun.settings.to_dict(),
            "start_objective": begun.start_objective,
            "start_time": begun.start_time,
        }
        self._arrays = {"start": begun.start}
        self._take_down(begun.search)
        self.write()

    def on_round(self, record: RoundRecord, search: Search) -> None:
        """Take down the end of a round; write it if it is time."""
        self._records.append(record)
        self._take_down(search)
        if perf_counter() >= self._due:
            self.write()

    def _take_down(self, search: Search) -> None:
        header: dict[str, Any] = {
            "search": {name: getattr(search, name) for name in COUNTERS},
            "elite_values": [value for value, _ in search.elites],
            "select": self._select.state(),
            "accept": self._accept.state() if hasattr(self._accept, "state") else None,
            "seconds": perf_counter() - self._began,
        }
        arrays: dict[str, Any] = {
            "curr": search.curr.codes,
            "best": search.best.codes,
            "elites": np.array([point for _, point in search.elites]),
            **grids_to_arrays("curr", search.curr.problem),
            **grids_to_arrays("best", search.best.problem),
        }
        # One assignment: an interrupt finds either this round or the one before, never half of one.
        self._now = header, arrays, len(self._records)

    def write(self) -> None:
        """Write what was taken down last. If that fails, say so once; the file before stays as it was."""
        if self._now is None:
            return
        header, arrays, count = self._now
        began = perf_counter()
        try:
            columns = to_columns(self._records[:count])
            write_checkpoint(
                self.path,
                {**self._header, **header},
                {**self._arrays, **arrays, **{f"record.{name}": array for name, array in columns.items()}},
            )
        except OSError as error:
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"The checkpoint {self.path} could not be written ({error.strerror}). The run goes on "
                    "and tries again; the last good file stays.",
                    CheckpointWarning,
                    stacklevel=2,
                )
        ended = perf_counter()
        self._due = ended + max(self.every, (ended - began) / MOST)


def load(path: str | os.PathLike[str], problem: QLossProblem | None = None) -> tuple[str, Begun]:
    """The run in a checkpoint and the fingerprint of its problem, given or read from beside it."""
    where = Path(path).absolute()
    header, arrays = read_checkpoint(where)
    try:
        expected = header["problem"]
        settings = Settings.from_dict(header["settings"])
        names = [name for name in arrays if name.startswith("record.")]
        records = from_columns({name.removeprefix("record."): arrays[name] for name in names})
        given = problem is not None
        if problem is None:
            if header.get("in_shards"):
                raise InvalidInput(
                    f"The checkpoint {where} is of a problem in shards, which it does not keep: pass the "
                    "same ShardedProblem once more (problem=)."
                )
            problem = read_problem(data_path(where))
        found = _fingerprint(problem)
        if found != expected:
            whose = "the problem given is" if given else f"{data_path(where)} holds"
            raise WrongProblem(
                f"The checkpoint {where} belongs to the problem {expected}, but {whose} {found}: other data "
                "or other parameters."
            )
        return expected, Begun(
            settings=settings,
            search=_search(problem, header, arrays),
            start=arrays["start"],
            start_objective=header["start_objective"],
            start_time=header["start_time"],
            seconds=header["seconds"],
            records=records,
            select=header["select"],
            accept=header["accept"],
        )
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise DamagedCheckpoint(
            f"The checkpoint {where} lacks a part or has a wrong one: {error}."
        ) from error


def _fingerprint(problem: QLossProblem) -> str:
    return problem.fingerprint if isinstance(problem, ShardedProblem) else fingerprint(problem)


def _search(problem: QLossProblem, header: dict[str, Any], arrays: dict[str, NDArray]) -> Search:
    curr = on_levels_of(problem, "curr", arrays).state(arrays["curr"])
    best = on_levels_of(problem, "best", arrays).state(arrays["best"])
    counters = {name: header["search"][name] for name in COUNTERS}
    elites = list(zip(header["elite_values"], arrays["elites"], strict=True))
    return Search(curr=curr, best=best, elites=elites, **counters)


@contextlib.contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """SIGTERM ends a run as Ctrl-C does: with its result and its checkpoint. In the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)


def _interrupt(signum: int, frame: Any) -> None:
    raise KeyboardInterrupt
