"""``lns submit``: the training of ``lns train`` as a job on a Ray cluster."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

from lns.commands import train
from lns.commands.parser import Parser, say
from lns.errors import InvalidInput

if TYPE_CHECKING:
    from lns.backends.jobs import Ending, Jobs

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
NO_COMMAND = 127  # what a shell returns if there is no such program
OF_THE_JOB = ("address", "attach", "no_wait", "on_interrupt", "working_dir", "env", "python")

DESCRIPTION = """\
Run 'lns train' as a job on a Ray cluster: what it prints appears here as it comes, and the result and the
exit code are its own. All of its options are passed on; files and folders in them are those of the cluster.
Unless --backend says otherwise, rounds run on the whole cluster.
"""

EXAMPLES = """\
examples:
  lns submit covertype --noise 0.4 --q -0.7,0 --address http://head:8265
  lns submit my.csv --working-dir . --json       sends the folder with the file along
  lns submit covertype --time-limit 3600 --no-wait
  lns submit --attach raysubmit_Zx3... --json    follows that job again, from its beginning

A cluster with token authentication wants the token that 'ray get-auth-token' prints on its head node: in
~/.ray/auth_token here, or in the environment variable RAY_AUTH_TOKEN. The cluster needs qlns installed,
nothing else.
"""


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """The options of ``lns train``, to be passed on as they are, and those of the job."""
    passed_on = train_parser()
    for action in passed_on._actions:  # what they mean is decided below, by the parser that knows
        action.type, action.choices, action.default = None, None, argparse.SUPPRESS
    parser: argparse.ArgumentParser = commands.add_parser(
        "submit",
        help="train on a Ray cluster",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        parents=[passed_on],
        conflict_handler="resolve",
    )
    job = parser.add_argument_group("the job")
    add = job.add_argument
    add("--address", metavar="URL", help="dashboard of the cluster; default http://127.0.0.1:8265")
    add("--working-dir", metavar="DIR", help="a folder to send along; the job runs in its copy")
    add("--env", metavar="NAME=VALUE", action="append", default=[],
        help="an environment variable of the job; may be given several times")  # fmt: skip
    add("--python", metavar="PROGRAM", default="python",
        help="the interpreter on the cluster that has qlns; default python")  # fmt: skip
    add("--no-wait", action="store_true", help="print the name of the job and leave it alone")
    add("--attach", metavar="JOB", help="follow a job that was submitted before, instead of a new one")
    add("--on-interrupt", choices=("ask", "stop", "leave"), default="ask",
        help="what Ctrl-C here does to the job; default ask, or stop where nobody can be asked")  # fmt: skip
    return parser


def run(args: argparse.Namespace) -> int:
    """Submit, follow, and end as the job did."""
    words = training_words(args)
    if args.attach is not None and [word for word in words if word != "--json"]:
        raise InvalidInput("--attach follows a job as it was submitted: leave the options of training out.")
    variables = _variables(args.env)
    command = shlex.join([args.python, "-m", "lns", "train", *words])
    from lns.backends.jobs import Jobs

    jobs = Jobs(args.address)
    job = args.attach or jobs.submit(command, working_dir=args.working_dir, variables=variables)
    if args.no_wait:
        print(job)
        say(f"submitted to {jobs.address}; 'lns submit --attach {job}' follows it.")
        return DONE
    return follow(jobs, job, "json" in args, args.on_interrupt)


def train_parser() -> argparse.ArgumentParser:
    """The parser of ``lns train``, on its own."""
    parser = train.add_parser(Parser(prog="lns").add_subparsers())
    parser.prog = "lns submit"
    return parser


def training_words(args: argparse.Namespace) -> list[str]:
    """The words of ``lns train`` that were given here, checked by its own parser."""
    parser = train_parser()
    words: list[str] = []
    known = {action.dest for action in parser._actions}
    for action in parser._actions:
        if action.dest in OF_THE_JOB or not hasattr(args, action.dest) or action.dest == "help":
            continue
        value = getattr(args, action.dest)
        if not action.option_strings:
            words.append(str(value))
        elif action.nargs == 0:
            words.append(action.option_strings[0])
        else:
            values = value if isinstance(value, list) else [value]
            words += [f"{action.option_strings[0]}={one}" for one in values]
    if args.attach is None and {"backend", "address"} <= known:
        if not hasattr(args, "backend"):
            words.append("--backend=ray")
        if getattr(args, "backend", "ray") == "ray":
            words.append("--address=auto")  # the cluster that the job is on
    parser.parse_args(words)
    return words


def follow(jobs: Jobs, job: str, wants_json: bool, on_interrupt: str) -> int:
    """Show what the job prints until it ends; its exit code."""
    result: str | None = None
    not_installed = False

    def hear(line: str) -> None:
        nonlocal result, not_installed
        not_installed |= "No module named lns" in line
        if wants_json and is_result(line):
            result = line
        else:
            print(line, file=sys.stderr if wants_json else sys.stdout, flush=True)

    try:
        ending = jobs.follow(job, hear)
    except KeyboardInterrupt:
        return interrupted(jobs, job, on_interrupt)
    if result is not None:
        print(result)
    code = exit_code(ending)
    hint = ""
    if not_installed or ending.code == NO_COMMAND:
        hint = " Install qlns on the cluster, or name the interpreter that has it by --python."
    if code not in (DONE, USAGE):  # of bad input the job itself has said what is wrong
        say(f"the job {job} {ending.status.lower()}: {ending.message.rstrip('.')}.{hint}")
    elif code == DONE and wants_json and result is None:
        say(f"the job {job} ended without a result.")
        return FAILED
    return code


def is_result(line: str) -> bool:
    """Whether a line is the JSON object of ``lns train --json``."""
    if not line.startswith("{"):
        return False
    try:
        value = json.loads(line)
    except ValueError:
        return False
    return isinstance(value, dict) and {"objective", "stop_reason"} <= value.keys()


def exit_code(ending: Ending) -> int:
    """The exit code of ``lns train`` where it is one, else that of a failure."""
    if ending.status == "SUCCEEDED":
        return DONE
    if ending.status == "STOPPED":
        return INTERRUPTED
    return ending.code if ending.code in (USAGE, INTERRUPTED) else FAILED


def interrupted(jobs: Jobs, job: str, on_interrupt: str) -> int:
    """Ctrl-C: stop the job, or leave it alone."""
    if on_interrupt == "ask":
        on_interrupt = (
            "stop" if not sys.stdin.isatty() or _says_yes(f"Stop the job {job}, too? [y/N] ") else "leave"
        )
    if on_interrupt == "stop":
        jobs.stop(job)
        say(f"interrupted; the job {job} was told to stop.")
    else:
        say(f"interrupted; the job {job} goes on: 'lns submit --attach {job}' follows it.")
    return INTERRUPTED


def _says_yes(question: str) -> bool:
    sys.stderr.write(f"\n{question}")
    sys.stderr.flush()
    try:
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    except KeyboardInterrupt:  # Ctrl-C again
        return True


def _variables(given: list[str]) -> dict[str, str]:
    variables = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise InvalidInput(f"--env must be NAME=VALUE. Got {one!r}.")
        variables[name] = value
    return variables
