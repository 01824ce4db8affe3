"""``lns train``: split, flip labels, search, and say how good the classifier is."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lns.commands.parser import closest
from lns.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lns.datasets.dataset import Dataset
    from lns.problem import QLossProblem
    from lns.result import Result

SOLVERS = (
    "tabu",
    "sa",
    "descent",
    "exact",
    "emulator",
    "qpu",
)  # for the help; whoever registers more can use them too
NAMED_NOISE = 0.4

DESCRIPTION = """\
Train a classifier on 70 % of a data set and test it on the other 30 %.

Noise flips labels of negative training examples; the test labels stay clean. The summary says how many of
the flips were found: an example is flagged as mislabelled when its margin is at most q.
"""

EXAMPLES = """\
examples:
  lns train long-servedio --noise 0.2 --time-limit 5
  lns train mease-wyner --noise 0.2 --weight-bits 2 --weight-range 0,8
  lns train covertype --rows 20000 --noise 0.4 --q -0.7,0 --json
  lns train long-servedio --solver emulator --topology chimera:8
  lns train my.csv --solver sa --max-rounds 100 --time-limit none --seed 7

--json prints one object with the keys dataset, examples (for training), features, num_variables, noise, q,
lam, solver, backend, seed, objective, train_error (on the labels trained with), test_error (clean), flagged,
flip_recall, flip_precision, rounds, accepted, wall_time (seconds), peak_memory_mb and stop_reason. Errors,
recall and precision are fractions; null where there is nothing to count.
"""


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """The options of ``lns train``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "train",
        help="train a classifier and test it",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("dataset", nargs="?", default="long-servedio", metavar="DATASET",
        help="a name (see 'lns datasets') or a file: .svm, .csv (both also .gz), .npz, .parquet; "
             "default long-servedio")  # fmt: skip
    data = parser.add_argument_group("data")
    add = data.add_argument
    add("--noise", type=_noise, metavar="RATE",
        help=f"probability that the label of a negative training example is flipped; default {NAMED_NOISE} "
             "for a data set known by name, 0 for a file")  # fmt: skip
    add("--rows", type=_count, metavar="N", help="use only so many rows, drawn at random before the split")
    add("--data-dir", metavar="DIR", help="where to look first for the files of a named data set")
    model = parser.add_argument_group("model")
    add = model.add_argument
    add("--q", type=_q, default=-0.5, metavar="Q | NEG,POS",
        help="where the loss stops growing, at most 0; one value, or one for the negatives and one for the "
             "positives; default -0.5")  # fmt: skip
    add("--lam", type=_number, default=1e-6, metavar="L", help="weight of the sum of squares; default 1e-6")
    add("--weight-bits", type=_count, default=4, metavar="N", help="bits of a weight; default 4")
    add("--weight-range", type=_pair, default="auto", metavar="LO,HI",
        help="one interval for all weights; default: one for each, found by itself")  # fmt: skip
    search = parser.add_argument_group("search (stops by the first rule that holds)")
    add = search.add_argument
    add("--solver", default="tabu", metavar="NAME", help=f"{', '.join(SOLVERS)}; default tabu")
    add("--topology", metavar="CHIP",
        help="the chip of --solver emulator: chimera:8, zephyr:15, ...; default pegasus:16")  # fmt: skip
    add("--time-limit", type=_seconds, default=30.0, metavar="S", help="seconds, or 'none'; default 30")
    add("--max-rounds", type=_count, metavar="N", help="rounds; with it and a seed a run can be repeated")
    add("--target", type=_number, metavar="F", help="an objective that is good enough")
    add("--workers", type=_count, metavar="N", help="threads; default: all cores")
    add("--seed", type=_seed, default=0, metavar="N", help="of rows, split, noise and search; default 0")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the summary")
    return parser


def run(args: argparse.Namespace) -> int:
    """Train, then print the summary or the JSON object."""
    _check_solver(args.solver, args.topology)
    # Whatever a library prints goes to standard error: standard output holds the answer and nothing else.
    with contextlib.redirect_stdout(sys.stderr):
        training = train(args)
    print(json.dumps(training.as_dict(), allow_nan=False) if args.json else training.summary())
    return 130 if training.result.stop_reason == "interrupted" else 0


@dataclass(frozen=True)
class Training:
    """A finished run and what is needed to judge it."""

    args: argparse.Namespace
    noise: float
    problem: QLossProblem
    result: Result
    flipped: NDArray[Any]
    test: Dataset

    @property
    def train_error(self) -> float:
        """Share of the training examples, noise included, that are on the wrong side."""
        return float((self.problem.margins(self.result.weights, self.result.bias) <= 0).mean())

    @property
    def test_error(self) -> float:
        """Share of the clean test examples that are on the wrong side."""
        from lns.matrix import as_matrix

        scores = as_matrix(self.test.X).dot(self.result.weights) + self.result.bias
        return float((scores * self.test.y <= 0).mean())

    @property
    def found(self) -> int:
        """Flipped examples that are flagged."""
        return int((self.result.flagged & self.flipped).sum())

    def as_dict(self) -> dict[str, Any]:
        """The JSON object."""
        from lns.memory import peak_memory_mb

        args, result = self.args, self.result
        flipped, flagged = int(self.flipped.sum()), int(result.flagged.sum())
        return {
            "dataset": self.test.name,
            "examples": self.problem.num_examples,
            "features": self.problem.num_features,
            "num_variables": self.problem.num_variables,
            "noise": self.noise,
            "q": _plain_q(args.q),
            "lam": args.lam,
            "solver": result.solver,
            "backend": "local",
            "seed": args.seed,
            "objective": float(result.objective),
            "train_error": self.train_error,
            "test_error": self.test_error,
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
        peak = values["peak_memory_mb"]
        lines = [
            f"data set     {values['dataset']}: {values['examples']:,} training and {len(self.test):,} test "
            f"examples, {values['features']:,} features",
            f"full QUBO    {values['num_variables']:,} variables",
            f"noise        {flipped:,} training labels flipped ({100 * self.noise:g} % of the negatives)",
            self.result.summary(),
            f"training     {100 * values['train_error']:.2f} % error on the labels trained with",
            f"test         {100 * values['test_error']:.2f} % error on clean labels",
        ]
        if flipped:
            precise = values["flip_precision"]
            share = "" if precise is None else f"; {100 * precise:.1f} % of the flagged are flips"
            lines.append(
                f"flips found  {self.found:,} of {flipped:,} ({100 * values['flip_recall']:.1f} %){share}"
            )
        if peak is not None:
            lines.append(f"memory       {peak:,.0f} MB at most")
        return "\n".join(lines)


def train(args: argparse.Namespace) -> Training:
    """Load, split, flip and search as the arguments say."""
    import lns
    from lns.datasets.load import DATASETS
    from lns.datasets.split import subsample, train_test_split

    data = lns.load_dataset(args.dataset, args.data_dir)
    noise = args.noise
    if noise is None:
        noise = NAMED_NOISE if data.name in DATASETS else 0.0
    if args.rows is not None:
        if args.rows > len(data):
            raise InvalidInput(
                f"--rows must be at most {len(data):,}, the rows of {data.name}. Got {args.rows:,}."
            )
        data = subsample(data, args.rows, args.seed)
    train_rows, test_rows = train_test_split(data, seed=args.seed)
    part, test = data.take(train_rows), data.take(test_rows)
    del data  # large sets are held once
    y, flipped = lns.flip_labels(part.y, noise, seed=args.seed)
    problem = lns.QLossProblem(
        part.X, y, q=args.q, lam=args.lam, weight_bits=args.weight_bits, weight_range=args.weight_range
    )
    result = lns.solve(
        problem,
        time_limit=args.time_limit,
        max_rounds=args.max_rounds,
        target=args.target,
        solver=args.solver,
        solver_options=_solver_options(args.topology),
        workers=args.workers,
        seed=args.seed,
        progress=not args.json,
    )
    return Training(args, noise, problem, result, flipped, test)


def _check_solver(name: str, topology: str | None) -> None:
    """Refuse what the solver will not take, before any data is read."""
    from lns.solvers import SOLVERS as known
    from lns.solvers import make_solver

    if name not in known:
        raise InvalidInput(
            f"Unknown solver {name!r}: choose one of {', '.join(known)}{closest(name, [*known])}"
        )
    if topology is not None and name != "emulator":
        raise InvalidInput(f"--topology goes with --solver emulator. Got --solver {name}.")
    make_solver(name, _solver_options(topology))


def _solver_options(topology: str | None) -> dict[str, Any]:
    return {} if topology is None else {"topology": topology}


def _plain_q(q: float | dict[int, float]) -> Any:
    """q for JSON, which has no infinity."""
    if isinstance(q, dict):
        return {str(label): _plain_q(value) for label, value in q.items()}
    return q if math.isfinite(q) else str(q)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, not {text!r}") from None


def _noise(text: str) -> float:
    rate = _number(text)
    if not 0 <= rate < 1:
        raise argparse.ArgumentTypeError(f"must be a rate from 0 to below 1 (0.2 is 20 %), not {text}")
    return rate


def _seconds(text: str) -> float | None:
    if text.lower() == "none":
        return None
    seconds = _number(text)
    if not seconds > 0:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0 or 'none', not {text}")
    return seconds if math.isfinite(seconds) else None


def _whole(text: str, least: int) -> int:
    try:
        value = int(text.replace(",", "").replace("_", ""))
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, not {text!r}")
    return value


def _count(text: str) -> int:
    return _whole(text, 1)


def _seed(text: str) -> int:
    return _whole(text, 0)


def _pair(text: str) -> tuple[float, float] | str:
    if text == "auto":
        return text
    low, comma, high = text.partition(",")
    if not comma:
        raise argparse.ArgumentTypeError(f"must be two numbers LO,HI, not {text!r}")
    return _number(low), _number(high)


def _q(text: str) -> float | dict[int, float]:
    negative, comma, positive = text.partition(",")
    values = [_number(part) for part in ([negative, positive] if comma else [negative])]
    for value in values:
        if not value <= 0:
            raise argparse.ArgumentTypeError(f"must be at most 0, not {value:g}")
    return dict(zip((-1, 1), values, strict=True)) if comma else values[0]
