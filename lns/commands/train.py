"""``lns train``: split, flip labels, search, and say how good the classifier is."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from lns.commands import options
from lns.commands.parser import (
    closest,
    count,
    interval,
    limit,
    natural,
    number,
    q_values,
    rate,
    say,
    setting,
)
from lns.commands.training import NAMED_NOISE, checkpoint_of, solver_options, train
from lns.errors import InvalidInput

SOLVERS = (
    "tabu",
    "sa",
    "descent",
    "exact",
    "emulator",
    "qpu",
)  # for the help; whoever registers more can use them too
BACKENDS = ("local", "ray")
MODES = ("default", "rounds", "paper")

#: What makes a run the run that it is: these stay as they were when it goes on.
FIXED = (
    *("dataset", "noise", "rows", "q", "lam", "weight-bits", "weight-range", "seed"),
    *("solver", "topology", "solver-option", "mode"),
)

DESCRIPTION = """\
Train a classifier on 70 % of a data set and test it on the other 30 %.

Noise flips labels of negative training examples; the test labels stay clean. The summary says how many of
the flips were found: an example is flagged as mislabelled when its margin is at most q.
"""

EXAMPLES = """\
examples:
  lns train long-servedio --noise 0.2 --q -1,0 --time-limit 10 --out first-run
      a first run, on data that comes with the package, kept in a folder; lns report first-run --open shows it
  lns train my.csv --q -1,0 --time-limit 60 --out my-run
      your own file; afterwards my-run/flagged.csv has every row whose label looks wrong
  lns train covertype --noise 0.4 --q -0.7,0 --time-limit 600 --out cover --live
      with a page in the browser that grows with the run; Ctrl-C stops it and keeps what was found
  lns train --out cover --resume --time-limit 300
      goes on with it
  lns train my.csv --max-rounds 100 --time-limit none --seed 7
      a run that can be repeated bit by bit: limited by rounds, not by seconds
  lns train long-servedio --solver emulator --topology chimera:8
      every sub-QUBO through an emulated annealer chip
  lns train long-servedio --solver sa --solver-option num_reads=20 --json
      simulated annealing with more reads; one JSON object for other programs
  lns train --config run.toml --seed 3
      options from a file

A file for --config has the names of the options; what stands on the command line wins:
  dataset = "my.csv"
  q = [-1, 0]
  time-limit = 60
  solver = "sa"
  [solver-option]
  num_reads = 20

--json prints one object with the keys dataset, examples (for training), features, num_variables, noise, q,
lam, solver, backend, seed, start_objective, objective (of the classifier: the lowest that was found, or with
--ties at most that share above it), gain_by_solver and gain_by_walks (by how much rounds and walks lowered
it), train_error (on the labels trained with), test_error (clean), flagged,
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
    add("--noise", type=rate, metavar="RATE",
        help=f"probability that the label of a negative training example is flipped; default {NAMED_NOISE} "
             "for a data set known by name, 0 for a file")  # fmt: skip
    add("--rows", type=count, metavar="N", help="use only so many rows, drawn at random before the split")
    add("--data-dir", metavar="DIR", help="where to look first for the files of a named data set")
    model = parser.add_argument_group("model")
    add = model.add_argument
    add("--q", type=q_values, default=-0.5, metavar="Q | NEG,POS",
        help="where the loss stops growing, at most 0; one value, or one for the negatives and one for the "
             "positives; default -0.5")  # fmt: skip
    add("--lam", type=number, default=1e-6, metavar="L", help="weight of the sum of squares; default 1e-6")
    add("--weight-bits", type=count, default=4, metavar="N", help="bits of a weight; default 4")
    add("--weight-range", type=interval, default="auto", metavar="LO,HI",
        help="one interval for all weights; default: one for each, found by itself")  # fmt: skip
    search = parser.add_argument_group("search (stops by the first rule that holds)")
    add = search.add_argument
    add("--time-limit", type=limit, default=30.0, metavar="S", help="seconds, or 'none'; default 30")
    add("--max-rounds", type=count, metavar="N", help="rounds; with it and a seed a run can be repeated")
    add("--target", type=number, metavar="F", help="an objective that is good enough")
    add("--mode", choices=MODES, default="default",
        help="default: walks and rounds, by what they bring; rounds: no classical walks; paper: stored bits "
             "and a batch, all other targets held")  # fmt: skip
    add("--ties", type=rate, default=0.0, metavar="SHARE",
        help="objectives that differ by at most this share (try 0.0008) count as equal: if the labels of one "
             "class look noisier, the noise-corrected error decides; default 0: the lowest")  # fmt: skip
    add("--solver", default="tabu", metavar="NAME", help=f"{', '.join(SOLVERS)}; default tabu")
    add("--topology", metavar="CHIP",
        help="the chip of --solver emulator: chimera:8, zephyr:15, ...; default pegasus:16")  # fmt: skip
    add("--solver-option", type=setting, action="append", default=[], metavar="NAME=VALUE",
        help="an option of the solver, such as num_reads=20; may be given several times")  # fmt: skip
    add("--seed", type=natural, default=0, metavar="N", help="of rows, split, noise and search; default 0")
    place = parser.add_argument_group("where it runs")
    add = place.add_argument
    add("--backend", choices=BACKENDS, default="local",
        help="the threads of this process, or a Ray cluster; default local")  # fmt: skip
    add("--workers", type=count, metavar="N", help="threads, or workers on the cluster; default: all cores")
    add("--address", metavar="HOST:PORT", help="the cluster of --backend ray; default: one on this machine")
    keep = parser.add_argument_group("what is kept and shown")
    add = keep.add_argument
    add("--out", metavar="DIR",
        help="keep the run in a new folder: options, model, events, flagged rows, checkpoint")  # fmt: skip
    add("--checkpoint", metavar="FILE",
        help="where to save the search now and then, and at Ctrl-C; with --out DIR/run.ckpt")  # fmt: skip
    add("--resume", action="store_true",
        help="go on with the run of --out (its options are remembered) or of --checkpoint")  # fmt: skip
    add("--live", action="store_true", help="serve the report of --out on this machine during the run")
    add("--port", type=natural, default=0, metavar="N", help="of --live; default: any that is free")
    add("--config", metavar="FILE", help="options from a TOML file")
    add("--json", action="store_true", help="print one JSON object instead of the summary")
    return parser


def prepare(args: argparse.Namespace) -> None:
    """Let options from a folder to go on with, and from a file, be the defaults."""
    if args.resume and args.out is not None:
        from lns.run_folder import read_config

        remembered = read_config(Path(args.out))["options"]
        options.set_defaults(args.parser, remembered, f"{args.out}/config.json")
        # Now, before the command line and --config have their say.
        defaults = {name: args.parser.get_default(action.dest) for name, action in _fixed(args.parser)}
        args.parser.set_defaults(remembered=defaults)
    if args.config is not None:
        options.set_defaults(args.parser, options.read_toml(args.config), args.config)


def run(args: argparse.Namespace) -> int:
    """Train, then print the summary or the JSON object."""
    check(args)
    # Whatever a library prints goes to standard error: standard output holds the answer and nothing else.
    with contextlib.redirect_stdout(sys.stderr):
        training = train(args)
    print(json.dumps(training.as_dict(), allow_nan=False) if args.json else training.summary())
    if training.result.stop_reason != "interrupted":
        return 0
    say(f"interrupted after {len(training.result.rounds)} rounds; {how_to_go_on(args)}")
    return 130


def check(args: argparse.Namespace) -> None:
    """Refuse what cannot work, before any data is read."""
    if args.address is not None and args.backend != "ray":
        raise InvalidInput("--address goes with --backend ray: add it.")
    if args.live and args.out is None:
        raise InvalidInput("--live shows the folder of a run: add --out DIR.")
    if args.port and not args.live:
        raise InvalidInput("--port goes with --live: add it.")
    if args.resume:
        _check_resume(args)
    elif args.out is not None:
        from lns.run_folder import check_new

        check_new(Path(args.out))
    checkpoint = args.checkpoint
    if checkpoint is not None and not args.resume and not Path(checkpoint).absolute().parent.is_dir():
        raise InvalidInput(f"--checkpoint names a folder that is not there: {Path(checkpoint).parent}.")
    _check_solver(args)


def _check_resume(args: argparse.Namespace) -> None:
    checkpoint = checkpoint_of(args)
    if checkpoint is None:
        raise InvalidInput("--resume needs to know the run: add --out DIR or --checkpoint FILE.")
    if not os.path.isfile(checkpoint):
        raise InvalidInput(
            f"There is no checkpoint {checkpoint} to go on from: start the run again, without --resume"
            + (" and with another --out." if args.out is not None else ".")
        )
    for name, action in _fixed(args.parser):
        before, now = getattr(args, "remembered", {}).get(name), getattr(args, action.dest)
        if args.out is not None and now != before and not _same_file(name, before, now):
            raise InvalidInput(
                f"--{name} cannot change when a run goes on: leave it out, or start a new run in another "
                "--out."
            )


def _fixed(parser: argparse.ArgumentParser) -> list[tuple[str, argparse.Action]]:
    return [(name, action) for name, action in options.by_name(parser).items() if name in FIXED]


def _same_file(name: str, before: Any, now: Any) -> bool:
    return name == "dataset" and os.path.exists(now) and os.path.abspath(now) == before


def how_to_go_on(args: argparse.Namespace) -> str:
    """What to type after Ctrl-C."""
    checkpoint = checkpoint_of(args)
    if checkpoint is None:
        return "nothing was saved (--out DIR keeps a run)."
    if not os.path.isfile(checkpoint):
        return f"what was found is in {args.out}."
    if args.out is not None:
        return f"go on with: lns train --out {shlex.quote(args.out)} --resume"
    return f"go on with the same command and --resume (saved in {checkpoint})."


def _check_solver(args: argparse.Namespace) -> None:
    from lns.solvers import SOLVERS as known
    from lns.solvers import make_solver

    name = args.solver
    if name not in known:
        raise InvalidInput(
            f"Unknown solver {name!r}: choose one of {', '.join(known)}{closest(name, [*known])}"
        )
    if args.topology is not None and name != "emulator":
        raise InvalidInput(f"--topology goes with --solver emulator. Got --solver {name}.")
    try:
        make_solver(name, solver_options(args))
    except TypeError as error:  # an option that it does not have
        raise InvalidInput(f"--solver-option: {error}") from None
