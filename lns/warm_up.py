"""Compiling (or loading) the inner loops before the clock of a run starts."""

from __future__ import annotations

import numpy as np

from lns.problem import QLossProblem
from lns.rounding import round_compensated
from lns.rounds import Choice, Part, Task, propose
from lns.solvers import Tabu

_COMPILED: set[tuple] = set()
FEW = 3  # features of the tiny problems


def compile_loops(problem: QLossProblem, sample_rows: int) -> None:
    """Run very small rounds on this kind of data once in this process, so that no time limit pays for it."""
    for part, task in tiny_rounds(problem, sample_rows):
        X = part.problem.matrix.X
        kind = type(X), X.dtype, isinstance(X, np.ndarray) and X.flags.c_contiguous, task.choice.kind
        if kind not in _COMPILED:
            propose(part, Tabu(), task)
            round_compensated(part.problem, np.full(part.problem.num_features, 0.5), 0.5)
            _COMPILED.add(kind)


def tiny_rounds(problem: QLossProblem, sample_rows: int) -> list[tuple[Part, Task]]:
    """Neighbourhoods on two examples of a problem, in every memory order that rounds will meet.

    Compiled loops depend on it, and on the precision of the data. Samples are always kept by columns.
    """
    X = problem.matrix.X
    rows = np.array([np.argmax(problem.y > 0), np.argmax(problem.y < 0)])
    if not isinstance(X, np.ndarray):
        return _tasks(X[:, :FEW][rows])
    own = "F" if X.flags.f_contiguous else "C"
    orders = [own, "F"] if own == "C" and problem.num_examples > sample_rows else [own]
    return [
        pair
        for order in orders
        for pair in _tasks(X[np.ix_(rows, np.arange(min(FEW, X.shape[1])))].copy(order))
    ]


def _tasks(X: object) -> list[tuple[Part, Task]]:
    tiny = QLossProblem(X, [1, -1], weight_bits=1, weight_range=(-1, 1), bias_range=(-1, 1))
    codes = tiny.state().codes
    part = Part(tiny, 2, 0, np.zeros(tiny.num_features), 0.0)
    choices = (
        Choice("window", np.arange(min(2, tiny.num_features), dtype=np.intp), examples=1),
        Choice("walk", np.empty(0, dtype=np.intp), heat=1.0),
    )
    return [(part, Task(codes, tiny.grids, choice, 10, np.random.SeedSequence(0))) for choice in choices]
