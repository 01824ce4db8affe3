"""``lns report``: a run folder as one page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from lns.commands.parser import say
from lns.errors import InvalidInput

DESCRIPTION = """\
Write one HTML page about a run that was kept with 'lns train --out': how good the classifier is, how the
search went, which training labels look wrong, the weights. It needs no network, and no other file. Runs that
were interrupted, or are going on, have a page too.
"""

EXAMPLES = """\
examples:
  lns report my-run                    writes my-run/report.html
  lns report my-run --open             and shows it in the browser
  lns report my-run -o run7.html       somewhere else
"""


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """The options of ``lns report``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "report",
        help="write a page about a run",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("run_dir", metavar="RUN_DIR", help="a folder of 'lns train --out'")
    add("-o", "--output", metavar="FILE.html", help="where to write; default RUN_DIR/report.html")
    add("--open", action="store_true", help="open the page in the browser")
    return parser


def run(args: argparse.Namespace) -> int:
    """Write the page, say where it is, open it."""
    from lns.files import write_text
    from lns.report.page import render
    from lns.report.story import Story
    from lns.run_folder import REPORT

    folder = Path(args.run_dir)
    page = render(Story(folder))
    path = folder / REPORT if args.output is None else Path(args.output)
    try:
        write_text(path, page)
    except OSError as error:
        raise InvalidInput(
            f"The report cannot be written to {path}: {error.strerror or error}. Name another place with -o."
        ) from None
    print(path)
    if args.open:
        import webbrowser

        if not webbrowser.open(path.absolute().as_uri()):
            say(f"no browser was found: open {path} yourself.")
    return 0
