"""From parameters to objects to a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lns import stop as stop_rules
from lns.accept import ACCEPT, Accept
from lns.backends.local import LocalBackend
from lns.engine import EngineParams, Search, run
from lns.errors import InvalidInput
from lns.problem import QLossProblem
from lns.progress import Callbacks, ProgressLine
from lns.result import Result, RoundRecord
from lns.rounds import Choice, Part, Task, propose
from lns.select import AdaptiveSelector
from lns.solvers import Tabu, make_solver

BACKENDS = ("local",)
BACKGROUNDS = ("curvature", "pairwise", "pinned")
CODINGS = ("window", "stored")


def solve(
    problem: QLossProblem,
    *,
    time_limit: float | None = 30.0,
    max_rounds: int | None = None,
    target: float | None = None,
    no_improvement: int | None = None,
    solver: Any = "tabu",
    solver_options: Mapping[str, Any] | None = None,
    backend: str = "local",
    workers: int | None = None,
    seed: int = 0,
    initial: Any = None,
    progress: bool = False,
    callbacks: Sequence[Callbacks] = (),
    accept: str | Accept = "record",
    background: str = "curvature",
    coding: str = "window",
    max_bits: int = 64,
    examples: int = 8,
    params: EngineParams | None = None,
) -> Result:
    """Minimise the objective of a problem by large neighbourhood search.

    Parameters
    ----------
    problem
        The training problem.
    time_limit, max_rounds, target, no_improvement
        Stop rules: seconds, rounds, an objective to reach, rounds without a new best. The first that holds.
        ``time_limit=None`` means no limit. With a round limit that is reached first, the same seed gives the
        same rounds and the same result.
    solver, solver_options
        Who solves the sub-QUBOs: ``"tabu"``, ``"sa"``, ``"descent"``, ``"exact"``, ``"emulator"`` (of an
        annealer chip), ``"qpu"`` (an annealer), a callable (see `lns.solvers.Solver`) or any dimod sampler.
    backend, workers
        Where neighbourhoods run: ``"local"``, on so many threads (default: all cores).
    seed
        Seed of everything random.
    initial
        Where to begin: None for the continuous warm start, ``(weights, bias)``, ``"zero"`` or ``"random"``.
    progress
        Show a line of progress on standard error.
    callbacks
        Objects told about the run, see `lns.Callbacks`.
    accept
        ``"record"``, ``"annealed"``, ``"greedy"`` or a callable (see `lns.accept`).
    background
        How examples without target bits enter a sub-QUBO: ``"curvature"``, ``"pairwise"``, ``"pinned"``.
    coding
        Bits of a round: ``"window"`` (levels around the current one) or ``"stored"`` (the paper's).
    max_bits, examples
        Largest number of weight bits of a round, and of examples with target bits.
    params
        Further settings of the search.

    Returns
    -------
    The best solution found, with a record of every round.

    Examples
    --------
    >>> import lns
    >>> data = lns.load_dataset("long-servedio")
    >>> problem = lns.QLossProblem(data.X, data.y, q=-0.5, lam=0.003, weight_bits=2)
    >>> result = lns.solve(problem, max_rounds=3)
    >>> len(result.rounds), result.stop_reason
    (3, 'max_rounds')
    """
    rules = _stop_rules(time_limit, max_rounds, target, no_improvement)
    if backend not in BACKENDS:
        raise InvalidInput(f"Unknown backend {backend!r}. Choose one of {', '.join(BACKENDS)}.")
    if workers is not None and workers < 1:
        raise InvalidInput(f"workers must be at least 1. Got {workers}.")
    for name, value, known in (("background", background, BACKGROUNDS), ("coding", coding, CODINGS)):
        if value not in known:
            raise InvalidInput(f"Unknown {name} {value!r}. Choose one of {', '.join(known)}.")
    for name, number in (("seed", seed), ("max_bits", max_bits), ("examples", examples)):
        if not isinstance(number, (int, np.integer)) or number < 0:
            raise InvalidInput(f"{name} must be an int of at least 0. Got {number!r}.")
    the_solver = make_solver(solver, solver_options)
    acceptance = _acceptance(accept)
    params = params or EngineParams()
    watchers: list[Callbacks] = [*callbacks, *([ProgressLine(time_limit, max_rounds)] if progress else [])]

    compile_loops(problem)
    if hasattr(the_solver, "prepare"):
        the_solver.prepare(problem.target_bits)  # embeddings, a connection: no time limit pays for these
    began = perf_counter()
    with threadpool_limits(1, user_api="blas"):
        if initial is None and time_limit is not None:
            problem.find_warm_start(began + 0.5 * time_limit)  # the search gets at least half of the time
        start = starting_codes(problem, initial, seed)
        start_objective = problem.state(start).objective
    start_time = perf_counter() - began
    for watcher in watchers:
        watcher.on_start(problem, start_objective)

    # Rounds are sized to what the solver takes: weight bits first, target bits in what is left.
    most = getattr(the_solver, "max_variables", None) or 10**9
    max_bits = min(max_bits, most, getattr(the_solver, "max_weight_bits", None) or 10**9)
    select = AdaptiveSelector(
        problem.num_features + 1,
        max_bits=max_bits,
        bits_per_weight=AdaptiveSelector.WINDOW_BITS
        if coding == "window"
        else max(problem.weight_bits, problem.bias_bits),
        max_examples=min(examples, max(0, most - max_bits) // problem.target_bits),
        background=background,
        coding=coding,
    )
    with LocalBackend(the_solver, workers) as run_tasks:
        search, records, reason = run(
            problem, start, select, acceptance, run_tasks, stop_rules.first_of(rules), params=params,
            seed=seed, began=began, time_limit=time_limit, on_round=_announce(watchers),
        )  # fmt: skip

    best = search.best
    result = Result(
        objective=best.objective, weights=best.weights, bias=best.bias, codes=best.codes,
        flagged=best.margins <= problem.q, rounds=records, stop_reason=reason,
        wall_time=perf_counter() - began, start_objective=start_objective, start_time=start_time, seed=seed,
        solver=solver if isinstance(solver, str) else type(solver).__name__,
    )  # fmt: skip
    for watcher in watchers:
        watcher.on_end(result)
    return result


def compile_loops(problem: QLossProblem) -> None:
    """Compile (or load) the inner loops for this kind of data, so that no time limit pays for it."""
    X = problem.matrix.X
    order = "F" if isinstance(X, np.ndarray) and X.flags.f_contiguous else "C"
    kind = type(problem.matrix), X.dtype, order
    if kind in _COMPILED:
        return
    rows = np.array([np.argmax(problem.y > 0), np.argmax(problem.y < 0)])
    few = X[rows].copy(order) if isinstance(X, np.ndarray) else X[rows]
    tiny = QLossProblem(few, [1, -1], weight_bits=1, weight_range=(-1, 1), bias_range=(-1, 1))
    state = tiny.state()
    state.gains()
    choice = Choice("random", np.arange(min(2, tiny.num_features)), examples=1)
    task = Task(state.codes, choice, 10, np.random.SeedSequence(0))
    propose(Part(tiny, state.codes, 2, 0), Tabu(), task)
    _COMPILED.add(kind)


_COMPILED: set[tuple] = set()


def starting_codes(problem: QLossProblem, initial: Any, seed: int) -> NDArray[np.int32]:
    """The codes at which a search begins."""
    if initial is None:
        return problem.codes(*problem.warm_start)
    if isinstance(initial, str):
        if initial == "zero":
            return problem.codes(np.zeros(problem.num_features), 0.0)
        if initial == "random":
            return np.random.default_rng(seed).integers(0, problem.tops + 1, dtype=np.int32)
        raise InvalidInput(f'initial must be (weights, bias), "zero" or "random". Got {initial!r}.')
    try:
        w, b = initial
    except (TypeError, ValueError):
        raise InvalidInput('initial must be (weights, bias), "zero" or "random".') from None
    return problem.codes(*problem.check_solution(w, b))


def _stop_rules(
    time_limit: float | None, max_rounds: int | None, target: float | None, no_improvement: int | None
) -> list[stop_rules.Stop]:
    given: tuple[tuple[Callable[[Any], stop_rules.Stop], float | None], ...] = (
        (stop_rules.target, target),
        (stop_rules.max_rounds, max_rounds),
        (stop_rules.no_improvement, no_improvement),
        (stop_rules.time_limit, time_limit),
    )
    rules: list[stop_rules.Stop] = [make(value) for make, value in given if value is not None]
    if not rules:
        raise InvalidInput("Give at least one of time_limit, max_rounds, target and no_improvement.")
    return rules


def _acceptance(accept: str | Accept) -> Accept:
    if not isinstance(accept, str):
        return accept
    if accept not in ACCEPT:
        raise InvalidInput(f"Unknown acceptance {accept!r}. Choose one of {', '.join(ACCEPT)}.")
    return ACCEPT[accept]()


def _announce(watchers: Sequence[Callbacks]) -> Callable[[RoundRecord, Search], None]:
    def on_round(record: RoundRecord, search: Search) -> None:
        for watcher in watchers:
            watcher.on_round(record)
            if record.outcome == "best":
                watcher.on_best(record, search.best.weights, search.best.bias)

    return on_round
