"""The command line: arguments to a command, errors to one line and an exit code."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence

from lns import __version__
from lns.commands import bench, completion, datasets, embed, paper, predict, report, submit, train
from lns.commands.parser import USAGE, Parser, say
from lns.errors import DataError, InvalidInput, LNSError

DONE, FAILED, INTERRUPTED = 0, 1, 130

EXAMPLES = """\
examples:
  lns train                                       a first run, on data that comes with the package
  lns train long-servedio --noise 0.2 --q -1,0    one q for each class: negatives, positives
  lns train my.csv --time-limit 60 --out my-run   your own file, the run kept in a folder
  lns report my-run --open                        a page about the search, the labels and the model
  lns predict my-run new.csv                      classes of new rows
  lns datasets                                    the data sets known by name
  lns embed --topology chimera:8                  what an annealer chip has room for
  lns submit covertype --address http://head:8265 the same training as a job on a Ray cluster
  lns paper --quick                               the experiments of the paper, in minutes
  lns bench problem                               what the core operations cost on this machine
  lns completion bash                             for the TAB key of your shell

'lns COMMAND --help' says more. Exit codes: 0 done, 1 failed, 2 wrong usage or bad input, 130 interrupted.
"""


def build_parser() -> Parser:
    """All commands and options."""
    parser = Parser(
        prog="lns",
        description="Train noise-robust linear classifiers as giant QUBOs, by large neighbourhood search.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"lns {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in (train, predict, report, datasets, embed, bench, paper, submit, completion):
        sub = command.add_parser(commands)
        sub.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)
        sub.set_defaults(run=command.run, parser=sub)
    return parser


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The arguments; what they name as further sources of options has been looked at."""
    parser = build_parser()

    def read() -> argparse.Namespace:
        args, unknown = parser.parse_known_args(words)
        if unknown:
            args.parser.refuse(unknown)
        return args

    args = read()
    if args.run is train.run:
        train.prepare(args)  # defaults from files
        args = read()
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code.

    Parameters
    ----------
    argv
        The words after ``lns``; those of the process by default.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    try:
        with contextlib.nullcontext() if debug else warnings_in_one_line():
            code = run(join_negative([word for word in words if word != "--debug"]))
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        if debug and not isinstance(error, BrokenPipeError):
            traceback.print_exc()
        return explain(error)
    return code


def run(words: Sequence[str]) -> int:
    """Parse and run; wrong usage and ``--help`` become exit codes too."""
    try:
        args = parse(words)
        return int(args.run(args))
    except SystemExit as stop:
        return int(stop.code or DONE)


@contextlib.contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Warnings as one line each, without the place in the code that they are from."""
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"lns: warning: {' '.join(str(message).split())}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before


def explain(error: BaseException) -> int:
    """Say in one line on standard error what went wrong, and return the exit code."""
    if isinstance(error, BrokenPipeError):  # the reader left, as in `lns datasets | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    if isinstance(error, KeyboardInterrupt):
        say("interrupted; nothing was saved.")
        return INTERRUPTED
    if isinstance(error, (InvalidInput, DataError)):
        say(str(error))
        return USAGE
    if isinstance(error, LNSError):  # a service or a machine at fault: it says enough
        say(str(error))
        return FAILED
    if isinstance(error, MemoryError):
        say(f"out of memory ({error}). Use fewer rows: --rows N.")
        return FAILED
    say(f"{type(error).__name__}: {error} (add --debug for the traceback)")
    return FAILED


def join_negative(words: Sequence[str]) -> list[str]:
    """``--q -0.7,0`` as ``--q=-0.7,0``: argparse takes the second word for an option otherwise."""
    joined: list[str] = []
    for word in words:
        if joined and re.fullmatch(r"--[a-z-]+", joined[-1]) and re.match(r"-(\d|\.\d|inf)", word):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


if __name__ == "__main__":
    sys.exit(main())
