"""From parameters to objects to a run."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from time import perf_counter
from typing import Any

from threadpoolctl import threadpool_limits

from lns import stop
from lns.accept import Accept
from lns.backends.local import LocalBackend
from lns.engine import Backend, EngineParams, Search, run
from lns.errors import InvalidInput
from lns.keeper import Begun, Keeper, interrupted_by_sigterm, load
from lns.problem import QLossProblem
from lns.progress import Callbacks, ProgressLine
from lns.result import Result, RoundRecord
from lns.settings import Settings, stop_rules
from lns.solvers import Solver
from lns.start import starting_state
from lns.warm_up import compile_loops, tiny_rounds

BACKENDS = ("local", "ray")


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
    address: str | None = None,
    seed: int = 0,
    initial: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
    progress: bool = False,
    callbacks: Sequence[Callbacks] = (),
    mode: str = "default",
    accept: str | Accept = "greedy",
    max_bits: int = 512,
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
        annealer chip), ``"qpu"`` (an annealer), a callable (see `lns.solvers.Solver`), any dimod sampler or
        any dwave-hybrid runnable.
    backend, workers, address
        Where neighbourhoods run: ``"local"``, on so many threads (default: all cores), or ``"ray"``, as so
        many tasks at a time (default: all CPUs of the cluster) on the Ray cluster at `address` (``"auto"``
        for the one of this machine; default: the one this process is connected to, the one that
        ``RAY_ADDRESS`` names, or one that is started on this machine and stopped at the end).
    seed
        Seed of everything random.
    initial
        Where to begin: None for the continuous warm start, ``(weights, bias)``, ``"zero"`` or ``"random"``.
    checkpoint, checkpoint_every
        A file to keep the run in, written when it begins, about every so many seconds and when it ends, also
        by Ctrl-C or SIGTERM; `lns.resume` goes on from there. An existing file is replaced. The problem is
        kept beside it, in a file whose name ends in ``.data.npz``.
    progress
        Show a line of progress on standard error.
    callbacks
        Objects told about the run, see `lns.Callbacks`.
    mode
        ``"default"``: walks and rounds, by what has paid; ``"rounds"``: rounds alone, no classical walks,
        which is what an annealer can do by itself; ``"paper"``: the rounds of the paper, stored bits and a
        batch of examples, all other targets held where they are.
    accept
        ``"greedy"`` or a callable (see `lns.accept`).
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
    limits: dict[str, Any] = {"max_rounds": max_rounds, "target": target, "no_improvement": no_improvement}
    rules = stop_rules(time_limit=time_limit, **limits)
    settings = Settings(
        seed=seed, solver=solver, solver_options=solver_options, mode=mode, accept=accept, max_bits=max_bits,
        examples=examples, time_limit=time_limit, params=params or EngineParams(), **limits,
    )  # fmt: skip
    the_solver, acceptance = settings.make_solver(), settings.make_acceptance()
    _check_backend(backend, workers, address)
    keeper = None if checkpoint is None else Keeper(checkpoint, checkpoint_every)
    if keeper:
        keeper.save_problem(problem)
    watchers = _watchers(callbacks, progress, time_limit, max_rounds)

    where = backend, the_solver, workers, address
    with open_backend(*where, problem, settings.params.sample_rows) as run_tasks:
        began = perf_counter()
        # The search gets at least half of the time.
        half = math.inf if time_limit is None else began + 0.5 * time_limit
        with one_blas_thread():
            start = starting_state(problem, initial, seed, half)
        search = Search.begin(start)
        begun = Begun(settings, search, start.point, start.objective, perf_counter() - began)
        return _run(begun, the_solver, acceptance, run_tasks, rules, time_limit, began, watchers, keeper)


def resume(
    path: str | os.PathLike[str],
    *,
    time_limit: float | None = 30.0,
    max_rounds: int | None = None,
    target: float | None = None,
    problem: QLossProblem | None = None,
    solver: Any = None,
    solver_options: Mapping[str, Any] | None = None,
    accept: Accept | None = None,
    backend: str = "local",
    workers: int | None = None,
    address: str | None = None,
    checkpoint_every: float = 30.0,
    progress: bool = False,
    callbacks: Sequence[Callbacks] = (),
) -> Result:
    """Go on with a run that was stopped, interrupted or killed, from its checkpoint.

    It takes the same way as if it had never stopped: with a round limit, its rounds and its result are those
    of an undisturbed run. The checkpoint goes on being written.

    Parameters
    ----------
    path
        The checkpoint of a run of `lns.solve`.
    time_limit
        Seconds from now; None for no limit.
    max_rounds, target
        Rounds in all, those before included, and an objective to reach. Where they are not given, the limits
        that the run was begun with still hold, unless they have been reached.
    problem
        The problem of the run, if it is at hand; it is compared with the checkpoint. By default it is read
        from the file beside the checkpoint.
    solver, solver_options, accept
        Needed only if the run used an object instead of a name: a file cannot keep it.
    backend, workers, address, checkpoint_every, progress, callbacks
        As in `lns.solve`; where a run goes on does not change its rounds.

    Returns
    -------
    The result with all rounds, those before included.

    Raises
    ------
    CheckpointError
        If the file is damaged (`DamagedCheckpoint`), no checkpoint (`ForeignCheckpoint`), of a later version
        (`NewerCheckpoint`), or belongs to another problem (`WrongProblem`).
    """
    _check_backend(backend, workers, address)
    if time_limit is not None:
        stop.time_limit(time_limit)  # an error if it is no time
    keeper = Keeper(path, checkpoint_every)
    keeper.problem, begun = load(path, problem)
    keeper.check_writable()
    settings = _objects_again(begun.settings, solver, solver_options, accept)
    now = begun.search.progress(begun.seconds)
    settings = replace(
        settings,
        max_rounds=_limit(max_rounds, settings.max_rounds, stop.max_rounds, now),
        target=_limit(target, settings.target, stop.target, now),
        no_improvement=_limit(None, settings.no_improvement, stop.no_improvement, now),
    )
    whole = None if time_limit is None else begun.seconds + time_limit
    rules = stop_rules(
        time_limit=whole, max_rounds=settings.max_rounds, target=settings.target,
        no_improvement=settings.no_improvement,
    )  # fmt: skip
    begun = replace(begun, settings=settings)
    the_solver, acceptance = settings.make_solver(), settings.make_acceptance()
    if begun.accept is not None:
        acceptance.restore(begun.accept)  # type: ignore[attr-defined]
    watchers = _watchers(callbacks, progress, whole, settings.max_rounds)

    where = backend, the_solver, workers, address
    with open_backend(*where, begun.search.curr.problem, settings.params.sample_rows) as run_tasks:
        began = perf_counter() - begun.seconds
        return _run(begun, the_solver, acceptance, run_tasks, rules, whole, began, watchers, keeper)


def _run(
    begun: Begun,
    solver: Solver,
    accept: Accept,
    run_tasks: Backend,
    rules: Sequence[stop.Stop],
    time_limit: float | None,
    began: float,
    watchers: Sequence[Callbacks],
    keeper: Keeper | None,
) -> Result:
    """The rounds of a run that has begun, its checkpoints, and its result."""
    settings, search = begun.settings, begun.search
    problem = search.curr.problem
    deadline = math.inf if time_limit is None else began + time_limit
    select = settings.make_selector(problem, solver)
    select.restore(begun.select)
    for watcher in watchers:
        watcher.on_start(problem, search.best.objective)
    announce = _announce(watchers)

    def on_round(record: RoundRecord, search: Search) -> None:
        if keeper:
            keeper.on_round(record, search)
        announce(record, search)

    with ExitStack() as around:
        around.enter_context(one_blas_thread())
        if keeper:
            keeper.begin(begun, select, accept, began)
            around.callback(keeper.write)
            around.enter_context(interrupted_by_sigterm())
        records, reason = run(
            search, begun.start, select, accept, run_tasks, stop.first_of(rules), params=settings.params,
            seed=settings.seed, began=began, time_limit=settings.time_limit, deadline=deadline,
            follow=settings.follows(problem), on_round=on_round,
        )  # fmt: skip

    best = search.best
    result = Result(
        objective=best.objective, weights=best.weights, bias=best.bias, codes=best.codes,
        grids=best.problem.grids, flagged=problem.flagged(best.weights, best.bias),
        rounds=[*begun.records, *records], stop_reason=reason, wall_time=perf_counter() - began,
        start_objective=begun.start_objective, start_time=begun.start_time, solver=settings.solver_name,
        seed=settings.seed,
    )  # fmt: skip
    for watcher in watchers:
        watcher.on_end(result)
    return result


def open_backend(
    name: str, solver: Solver, workers: int | None, address: str | None, problem: QLossProblem, rows: int
) -> AbstractContextManager[Backend]:
    """Where neighbourhoods will run, ready for samples of so many rows: no time limit pays for that."""
    specimen = problem.specimen
    compile_loops(specimen, rows)
    if hasattr(solver, "prepare"):
        solver.prepare(problem.target_bits)  # embeddings, a connection
    if name == "ray":
        from lns.backends.ray import RayBackend

        return RayBackend(solver, workers, address, tiny_rounds(specimen, rows))
    return LocalBackend(solver, workers)


def _check_backend(name: str, workers: int | None, address: str | None) -> None:
    if name not in BACKENDS:
        raise InvalidInput(f"Unknown backend {name!r}. Choose one of {', '.join(BACKENDS)}.")
    if workers is not None and workers < 1:
        raise InvalidInput(f"workers must be at least 1. Got {workers}.")
    if address is not None and name != "ray":
        raise InvalidInput(f'address goes with backend="ray". Got backend={name!r}.')


def _watchers(
    callbacks: Sequence[Callbacks], progress: bool, time_limit: float | None, max_rounds: int | None
) -> list[Callbacks]:
    return [*callbacks, *([ProgressLine(time_limit, max_rounds)] if progress else [])]


def _objects_again(
    settings: Settings, solver: Any, solver_options: Mapping[str, Any] | None, accept: Accept | None
) -> Settings:
    """The settings of a checkpoint, with the objects that a file cannot keep given again."""
    for name, value in (("solver", solver), ("accept", accept)):
        kept = getattr(settings, name)
        if kept is None and value is None:
            raise InvalidInput(
                f"The run used an object as {name}, which a file cannot keep: pass {name}= again."
            )
        if kept is not None and value is not None:
            raise InvalidInput(f"The run goes on with its own {name}, {kept!r}: leave {name}= out.")
    if solver is not None:
        settings = replace(settings, solver=solver, solver_options=solver_options)
    return settings if accept is None else replace(settings, accept=accept)


def _limit(given: Any, before: Any, rule: Callable[[Any], stop.Stop], now: stop.Progress) -> Any:
    """A limit given anew, or the one from before as long as it has not been reached."""
    return before if given is None and before is not None and not rule(before)(now) else given


def one_blas_thread() -> AbstractContextManager[Any]:
    """Our own threads have the cores, and sums come out the same on every machine."""
    return threadpool_limits(1, user_api="blas")


def _announce(watchers: Sequence[Callbacks]) -> Callable[[RoundRecord, Search], None]:
    def on_round(record: RoundRecord, search: Search) -> None:
        for watcher in watchers:
            watcher.on_round(record)
            if record.outcome == "best":
                watcher.on_best(record, search.best.weights, search.best.bias)

    return on_round
