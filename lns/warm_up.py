"""Compiling (or loading) the inner loops before the clock of a run starts."""

from __future__ import annotations

import numpy as np

from lns.problem import QLossProblem
from lns.rounds import Choice, Part, Task, propose
from lns.solvers import Tabu

_COMPILED: set[tuple] = set()


def compile_loops(problem: QLossProblem) -> None:
    """Run a very small round on this kind of data once in this process, so that no time limit pays for it."""
    kind = kind_of(problem)
    if kind not in _COMPILED:
        part, task = tiny_round(problem)
        part.problem.state().gains()
        propose(part, Tabu(), task)
        _COMPILED.add(kind)


def kind_of(problem: QLossProblem) -> tuple:
    """What the compiled loops depend on: the layout and the precision of the data."""
    return type(problem.matrix), problem.matrix.X.dtype, _order(problem)


def tiny_round(problem: QLossProblem) -> tuple[Part, Task]:
    """Two examples of a problem, one of each class, and a neighbourhood on them."""
    X = problem.matrix.X
    rows = np.array([np.argmax(problem.y > 0), np.argmax(problem.y < 0)])
    few = X[rows].copy(_order(problem)) if isinstance(X, np.ndarray) else X[rows]
    tiny = QLossProblem(few, [1, -1], weight_bits=1, weight_range=(-1, 1), bias_range=(-1, 1))
    codes = tiny.state().codes
    choice = Choice("random", np.arange(min(2, tiny.num_features)), examples=1)
    return Part(tiny, codes, 2, 0), Task(codes, choice, 10, np.random.SeedSequence(0))


def _order(problem: QLossProblem) -> str:
    X = problem.matrix.X
    return "F" if isinstance(X, np.ndarray) and X.flags.f_contiguous else "C"
