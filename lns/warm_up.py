"""Compiling (or loading) the inner loops before the clock of a run starts."""

from __future__ import annotations

import numpy as np

from lns.problem import QLossProblem
from lns.rounds import Choice, Part, Task, propose
from lns.solvers import Tabu

_COMPILED: set[tuple] = set()


def compile_loops(problem: QLossProblem, sample_rows: int) -> None:
    """Run very small rounds on this kind of data once in this process, so that no time limit pays for it."""
    for part, task in tiny_rounds(problem, sample_rows):
        X = part.problem.matrix.X
        kind = type(X), X.dtype, isinstance(X, np.ndarray) and X.flags.c_contiguous
        if kind not in _COMPILED:
            part.problem.state().gains()
            propose(part, Tabu(), task)
            _COMPILED.add(kind)


def tiny_rounds(problem: QLossProblem, sample_rows: int) -> list[tuple[Part, Task]]:
    """A neighbourhood on two examples of a problem, in every memory order that rounds will meet.

    Compiled loops depend on it, and on the precision of the data. Samples are always kept by columns.
    """
    X = problem.matrix.X
    rows = np.array([np.argmax(problem.y > 0), np.argmax(problem.y < 0)])
    if not isinstance(X, np.ndarray):
        return [_round(X[rows])]
    own = "F" if X.flags.f_contiguous else "C"
    orders = [own, "F"] if own == "C" and problem.num_examples > sample_rows else [own]
    return [_round(X[rows].copy(order)) for order in orders]


def _round(X: object) -> tuple[Part, Task]:
    tiny = QLossProblem(X, [1, -1], weight_bits=1, weight_range=(-1, 1), bias_range=(-1, 1))
    codes = tiny.state().codes
    choice = Choice("random", np.arange(min(2, tiny.num_features)), examples=1)
    return Part(tiny, codes, 2, 0), Task(codes, choice, 10, np.random.SeedSequence(0))
