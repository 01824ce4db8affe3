"""What ``lns train`` does once its arguments are known: a training and how good it is."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from lns.commands import options
from lns.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lns.datasets.dataset import Dataset
    from lns.problem import QLossProblem
    from lns.progress import Callbacks, HeldOutError
    from lns.result import Result
    from lns.run_folder import RunWriter
    from lns.ties import Settled

NAMED_NOISE = 0.4  # of data sets known by name, unless --noise says otherwise
FOR_TIES = 0.125  # of the time limit, where labels are suspected to be wrong


@dataclass(frozen=True)
class Training:
    """A finished run and what is needed to judge it."""

    args: argparse.Namespace
    noise: float
    problem: QLossProblem
    result: Result
    flipped: NDArray[Any]
    test: Dataset
    held_out: HeldOutError
    settled: Settled | None = None  # if there was a tie to settle

    @property
    def train_error(self) -> float:
        """Share of the training examples, noise included, that are on the wrong side."""
        return float((self.problem.margins(self.result.weights, self.result.bias) <= 0).mean())

    @property
    def found(self) -> int:
        """Flipped examples that are flagged."""
        return int((self.result.flagged & self.flipped).sum())

    def as_dict(self) -> dict[str, Any]:
        """The JSON object."""
        from lns.memory import peak_memory_mb

        args, result = self.args, self.result
        flipped, flagged, gains = int(self.flipped.sum()), int(result.flagged.sum()), result.gains()
        return {
            "dataset": self.test.name,
            "examples": self.problem.num_examples,
            "features": self.problem.num_features,
            "num_variables": self.problem.num_variables,
            "noise": self.noise,
            "q": _plain_q(args.q),
            "lam": args.lam,
            "solver": result.solver,
            "backend": args.backend,
            "seed": args.seed,
            "start_objective": float(result.start_objective),
            "objective": float(result.objective),
            "gain_by_solver": sum(gains.values()) - gains.get("walk", 0.0),
            "gain_by_walks": gains.get("walk", 0.0),
            "train_error": self.train_error,
            "test_error": self.held_out(result.weights, result.bias),
            "flagged": flagged,
            "flip_recall": self.found / flipped if flipped else None,
            "flip_precision": self.found / flagged if flipped and flagged else None,
            "rounds": len(result.rounds),
            "accepted": result.accepted,
            "wall_time": result.wall_time,
            "peak_memory_mb": peak_memory_mb(),
            "stop_reason": result.stop_reason,
        }

    def summary(self) -> str:
        """The same for people."""
        values, flipped = self.as_dict(), int(self.flipped.sum())
        peak, out, kind = values["peak_memory_mb"], self.args.out, "clean" if flipped else "held-out"
        lines = [
            f"data set     {values['dataset']}: {values['examples']:,} training and {len(self.test):,} test "
            f"examples, {values['features']:,} features",
            f"full QUBO    {values['num_variables']:,} variables",
            f"noise        {flipped:,} training labels flipped ({100 * self.noise:g} % of the negatives)",
            self.result.summary(),
            f"training     {100 * values['train_error']:.2f} % error on the labels trained with",
            f"test         {100 * values['test_error']:.2f} % error on {kind} labels",
        ]
        if self.settled is not None and self.settled.gain:
            above = 100 * (self.result.objective / self.settled.lowest - 1)
            lines.append(
                f"tie          {above:.3f} % above the lowest objective, as the errors on true labels should "
                f"be about {100 * self.settled.gain:.1f} points fewer"
            )
        if flipped:
            precise = values["flip_precision"]
            share = "" if precise is None else f"; {100 * precise:.1f} % of the flagged are flips"
            lines.append(
                f"flips found  {self.found:,} of {flipped:,} ({100 * values['flip_recall']:.1f} %){share}"
            )
        if peak is not None:
            lines.append(f"memory       {peak:,.0f} MB at most")
        if out is not None:
            lines.append(f"kept in      {out}  (a page about it: lns report {out} --open)")
        return "\n".join(lines)


def train(args: argparse.Namespace) -> Training:
    """Load, split, flip and search as the arguments say."""
    import lns
    from lns.datasets.load import DATASETS
    from lns.datasets.split import subsample_rows, train_test_split
    from lns.progress import HeldOutError, ProgressLine

    data = lns.load_dataset(args.dataset, args.data_dir)
    noise = args.noise
    if noise is None:
        noise = NAMED_NOISE if data.name in DATASETS else 0.0
    about = _about(data) if args.out is not None else {}
    drawn = None
    if args.rows is not None:
        if args.rows > len(data):
            raise InvalidInput(
                f"--rows must be at most {len(data):,}, the rows of {data.name}. Got {args.rows:,}."
            )
        drawn = subsample_rows(data, args.rows, args.seed)
        data = data.take(drawn)
    train_rows, test_rows = train_test_split(data, seed=args.seed)
    part, test = data.take(train_rows), data.take(test_rows)
    del data  # large sets are held once
    y, flipped = lns.flip_labels(part.y, noise, seed=args.seed)
    problem = lns.QLossProblem(
        part.X, y, q=args.q, lam=args.lam, weight_bits=args.weight_bits, weight_range=args.weight_range
    )
    held_out = HeldOutError(test)
    callbacks: list[Callbacks] = [held_out]
    rows = train_rows if drawn is None else drawn[train_rows]
    with _run_folder(args, about, part, rows, y, flipped if noise else None, held_out) as folder:
        callbacks += [folder] if folder is not None else []
        if not args.json:
            callbacks.append(ProgressLine(args.time_limit, args.max_rounds, held_out=held_out))
        result, settled = _search_and_settle(args, problem, callbacks)
        training = Training(args, noise, problem, result, flipped, test, held_out, settled)
        if folder is not None:
            folder.finish(training.result, training.as_dict())
    return training


def _search_and_settle(
    args: argparse.Namespace, problem: QLossProblem, callbacks: list[Callbacks]
) -> tuple[Result, Settled | None]:
    """A search, and where labels are suspected to be wrong, a choice among solutions it cannot tell apart."""
    from lns.keeper import interrupted_by_sigterm
    from lns.progress import Callbacks
    from lns.ties import settle, suspected_rates

    class Searched(Callbacks):
        """The problem on the levels that are searched: a run that goes on has them from its checkpoint."""

        def on_start(self, problem: QLossProblem, objective: float) -> None:
            self.problem = problem

    began = perf_counter()
    if not args.ties or not any(rates := suspected_rates(problem, args.seed)):
        return _search(args, problem, callbacks, args.time_limit), None
    left = math.inf if args.time_limit is None else args.time_limit - (perf_counter() - began)
    limit = None if args.time_limit is None else max((1 - FOR_TIES) * left, 0.5 * args.time_limit)
    searched = Searched()
    result = _search(args, problem, [*callbacks, searched], limit)
    if result.stop_reason in ("target", "interrupted"):  # whoever asked for that waits for what was found
        return result, None
    # The time of a run that goes on counts from its first beginning.
    spent = limit if args.resume and limit is not None else result.wall_time
    with interrupted_by_sigterm():
        settled = settle(
            searched.problem, result, rates, args.ties, seed=args.seed, deadline=perf_counter() + left - spent
        )
    return settled.result, settled


def _search(
    args: argparse.Namespace, problem: QLossProblem, callbacks: list[Callbacks], time_limit: float | None
) -> Result:
    """Begin a search, or go on with one."""
    import lns

    limits = {"time_limit": time_limit, "max_rounds": args.max_rounds, "target": args.target}
    where: dict[str, Any] = {
        "backend": args.backend, "workers": args.workers, "address": args.address, "callbacks": callbacks,
    }  # fmt: skip
    checkpoint = checkpoint_of(args)
    if args.resume:
        assert checkpoint is not None  # checked with the other options
        return lns.resume(checkpoint, problem=problem, **limits, **where)
    return lns.solve(
        problem, solver=args.solver, solver_options=solver_options(args), seed=args.seed, mode=args.mode,
        checkpoint=checkpoint, **limits, **where,
    )  # fmt: skip


@contextlib.contextmanager
def _run_folder(
    args: argparse.Namespace,
    about: dict[str, Any],
    part: Dataset,
    rows: NDArray[Any],
    y: NDArray[Any],
    flipped: NDArray[Any] | None,
    held_out: HeldOutError,
) -> Iterator[RunWriter | None]:
    """The folder of ``--out`` during the run, served with ``--live``; None without ``--out``."""
    if args.out is None:
        yield None
        return
    from lns.run_folder import RunWriter
    from lns.suspects import Labels

    remembered = options.as_values(args.parser, args)
    if os.path.isfile(args.dataset):
        remembered["dataset"] = os.path.abspath(args.dataset)
    config = {"options": remembered, "data": {**about, "training_rows": len(y), "test_rows": held_out.size}}
    labels = Labels(rows, y, part.classes, flipped)
    folder = RunWriter(Path(args.out), config, part, labels, held_out, resumed=args.resume)
    with contextlib.ExitStack() as stack:
        stack.callback(folder.close)
        if args.live:
            from lns.report.live import serving

            stack.enter_context(serving(Path(args.out), args.port))
        try:
            yield folder
        except (Exception, KeyboardInterrupt) as error:
            folder.failed(error)
            raise


def _about(data: Dataset) -> dict[str, Any]:
    from lns.run_folder import describe_data

    return describe_data(data)


def checkpoint_of(args: argparse.Namespace) -> str | None:
    """Where the search is saved, if anywhere."""
    if args.checkpoint is None and args.out is not None:
        from lns.run_folder import CHECKPOINT

        return os.path.join(args.out, CHECKPOINT)
    return args.checkpoint


def solver_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of the solver, the chip among them."""
    given = dict(args.solver_option)
    return given if args.topology is None else {"topology": args.topology, **given}


def _plain_q(q: float | dict[int, float]) -> Any:
    """q for JSON, which has no infinity."""
    if isinstance(q, dict):
        return {str(label): _plain_q(value) for label, value in q.items()}
    return q if math.isfinite(q) else str(q)
