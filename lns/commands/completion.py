"""``lns completion``: for the TAB key of a shell."""

from __future__ import annotations

import argparse
from typing import Any

SHELLS = ("bash", "zsh", "fish", "tcsh")

EXAMPLES = """\
examples:
  lns completion bash > ~/.local/share/bash-completion/completions/lns
  lns completion zsh > "${fpath[1]}/_lns"
  lns completion fish > ~/.config/fish/completions/lns.fish
  lns completion tcsh > ~/.lns-completion.csh         and source it in ~/.tcshrc

Then start a new shell. For the bash you are in: eval "$(lns completion bash)"
"""


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """The options of ``lns completion``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "completion",
        help="print what makes a shell complete commands, options and names",
        description="Print a script that lets the TAB key complete commands, options, data sets and files.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("shell", choices=SHELLS)
    return parser


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    import shtab

    from lns.cli import build_parser

    parser = build_parser()
    for command in _commands(parser):
        _add_hints(command)
    print(shtab.complete(parser, args.shell))
    return 0


def _commands(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    (action,) = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    return list(action.choices.values())


def _add_hints(command: argparse.ArgumentParser) -> None:
    """Where the parser leaves a word open: the names that it may be, or files and folders."""
    import shtab

    from lns.datasets.load import DATASETS
    from lns.solvers import SOLVERS

    for action in command._actions:
        if action.dest == "solver":
            action.choices = [*SOLVERS]
        elif action.dest in ("dataset", "data"):
            names_or_files = f'_lns_data() {{ compgen -W "{" ".join(DATASETS)}" -- $1; compgen -f -- $1; }}'
            action.complete = {  # type: ignore[attr-defined]
                **shtab.FILE,
                "bash": "_lns_data",
                "preamble": {"bash": names_or_files},
            }
        elif action.metavar in ("DIR", "RUN_DIR"):
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif str(action.metavar).startswith("FILE"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
