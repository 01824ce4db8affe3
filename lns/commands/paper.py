"""``lns paper``: the experiments of the paper, our numbers beside the printed ones."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from lns.commands.parser import closest, count, natural, say

DATASETS = ("long-servedio", "mease-wyner", "covertype", "mushrooms", "adult9", "web8")

DESCRIPTION = """\
Repeat the experiments of the paper: test error against label noise on six data sets, q-loss with one q and
with one q per class, seven rivals and three methods of today, in the paper's protocol and in an honest one;
and how many of the flipped labels are found.

Results are kept in the folder of --out as they come. The same command goes on where it was stopped, and
commands for other data sets add to the same folder.
"""

EXAMPLES = """\
examples:
  lns paper --quick --out quick                     all six in minutes: 3 folds, a coarse grid, 10,000 rows
  lns paper --dataset long-servedio,mease-wyner     two sets, everything
  lns paper --out paper-run                         the whole: hours; stop it, run it again, it goes on
  lns paper --dataset covertype --folds 5 --out paper-run
"""


def names(text: str) -> list[str]:
    """Names of data sets, separated by commas."""
    found = [name.strip().lower() for name in text.split(",") if name.strip()]
    for name in found:
        if name not in DATASETS:
            raise argparse.ArgumentTypeError(
                f"must be among {', '.join(DATASETS)}, not {name!r}{closest(name, DATASETS)}"
            )
    if not found:
        raise argparse.ArgumentTypeError("must name a data set")
    return list(dict.fromkeys(found))


def percentages(text: str) -> list[int]:
    """Percentages from 0 to 49, separated by commas."""
    found = [natural(part) for part in text.split(",")]
    for noise in found:
        if noise >= 50:
            raise argparse.ArgumentTypeError(f"must be percentages below 50 (20 is 20 %), not {noise}")
    return sorted(set(found))


def folds(text: str) -> int:
    """How many of ten folds."""
    value = count(text)
    if value > 10:
        raise argparse.ArgumentTypeError(f"must be a number from 1 to 10, not {text}")
    return value


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """The options of ``lns paper``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "paper",
        help="repeat the experiments of the paper",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--dataset", type=names, default=list(DATASETS), metavar="NAMES",
        help=f"separated by commas; default all: {', '.join(DATASETS)}")  # fmt: skip
    add("--noise", type=percentages, default=[0, 10, 20, 30, 40], metavar="PERCENT",
        help="share of the negatives that is flipped; default 0,10,20,30,40")  # fmt: skip
    add("--out", default="paper-run", metavar="DIR", help="where results are kept; default paper-run")
    add("--quick", action="store_true", help="3 folds, a coarse grid, 10,000 rows of each set at most")
    add("--folds", type=folds, metavar="N", help="how many of the ten folds are scored; default 10")
    add("--max-rows-for-choice", type=count, default=20_000, metavar="N",
        help="training rows that settings are compared on; the best are trained on all; "
             "default 20,000")  # fmt: skip
    add("--seed", type=natural, default=0, metavar="N", help="of rows, folds, flips and search; default 0")
    add("--backend", choices=("local", "ray"), default="local",
        help="processes of this machine, or a Ray cluster; default local")  # fmt: skip
    add("--workers", type=count, metavar="N", help="units of work at a time; default: all cores")
    add("--address", metavar="HOST:PORT", help="the cluster of --backend ray; default: one on this machine")
    add("--data-dir", metavar="DIR", help="where to look first for the files of the data sets")
    return parser


def run(args: argparse.Namespace) -> int:
    """Run, or go on."""
    from lns.errors import InvalidInput
    from lns.paper.experiment import Effort
    from lns.paper.run import Options
    from lns.paper.run import run as run_paper

    if args.address is not None and args.backend != "ray":
        raise InvalidInput("--address goes with --backend ray: add it.")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    options = Options(
        out=Path(args.out),
        datasets=args.dataset,
        noises=args.noise,
        effort=Effort(args.folds or (3 if args.quick else 10), args.max_rows_for_choice, args.quick),
        seed=args.seed,
        backend=args.backend,
        workers=args.workers or cores,
        address=args.address,
        data_dir=args.data_dir,
        command=_command(args),
    )
    try:
        run_paper(options)
    except KeyboardInterrupt:
        say(f"interrupted; what was done is in {args.out}, and the same command goes on from there.")
        return 130
    print(f"results: {Path(args.out) / 'results.md'} and results.html")
    return 0


def _command(args: argparse.Namespace) -> list[str]:
    """The call that gives these results: what was left out is left out, where data lies does not matter."""
    words = ["lns", "paper"]
    for action in args.parser._actions:
        value = getattr(args, action.dest, None)
        if action.dest in ("help", "debug", "data_dir", "address") or value == action.default:
            continue
        words.append(action.option_strings[-1])
        if value is not True:
            words.append(",".join(map(str, value)) if isinstance(value, list) else str(value))
    return words
