"""Solvers by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from lns.errors import InvalidInput
from lns.solvers._protocol import Solver
from lns.solvers.dimod_sampler import Annealing, Descent, DimodSolver, Tabu
from lns.solvers.emulator import Emulator
from lns.solvers.exact import Exact
from lns.solvers.hybrid_runnable import HybridSolver, is_runnable
from lns.solvers.qpu import QPU

SOLVERS: dict[str, Callable[..., Solver]] = {
    "tabu": Tabu,
    "sa": Annealing,
    "descent": Descent,
    "exact": Exact,
    "emulator": Emulator,
    "qpu": QPU,
}


def register(name: str, factory: Callable[..., Solver]) -> None:
    """Make a solver known by name; a taken name is an error."""
    if name in SOLVERS:
        raise InvalidInput(f"A solver named {name!r} is registered already.")
    SOLVERS[name] = factory


def make_solver(solver: Any, options: Mapping[str, Any] | None = None) -> Solver:
    """A solver from its name and options, or from a callable, a dimod sampler or a hybrid runnable."""
    options = dict(options or {})
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise InvalidInput(f"Unknown solver {solver!r}. Choose one of {', '.join(sorted(SOLVERS))}.")
        factory = SOLVERS[solver]
        check_options(solver, factory, options)
        return factory(**options)
    if callable(getattr(solver, "sample", None)):
        return DimodSolver(solver, **options)
    if is_runnable(solver):
        return HybridSolver(solver, **options)
    if not callable(solver):
        raise InvalidInput(
            f"solver must be a name, a callable, a dimod sampler or a hybrid runnable. Got {solver!r}."
        )
    if options:
        raise InvalidInput("solver_options go with a solver's name or a dimod sampler, not with a callable.")
    return solver


def check_options(name: str, factory: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Unknown options are errors with the closest match."""
    try:
        known = [field.name for field in fields(factory) if field.init]  # type: ignore[arg-type]
    except TypeError:
        return
    for option in options:
        if option not in known:
            close = difflib.get_close_matches(option, known, 1)
            hint = f" Did you mean {close[0]!r}?" if close else f" It takes {', '.join(known)}."
            raise TypeError(f"The solver {name!r} has no option {option!r}.{hint}")
