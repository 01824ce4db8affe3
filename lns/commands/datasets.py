"""``lns datasets``: what is known by name, about one set, and its files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lns.datasets.load import DatasetInfo

EXAMPLES = """\
examples:
  lns datasets                     all of them, and which are on this machine
  lns datasets info covertype      size, source and checksum of one
  lns datasets fetch adult9        download its files, or check those that are here
  lns datasets info my.csv         size, density and balance of a file

Files are looked for in --data-dir, then in the folder of LNS_DATA_DIR, then in the user's cache.
"""


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """The options of ``lns datasets``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "datasets",
        help="list, describe or fetch data sets",
        description="Data sets known by name.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("action", nargs="?", default="list", choices=("list", "info", "fetch"))
    parser.add_argument("name", nargs="?", metavar="NAME")
    parser.add_argument("--data-dir", metavar="DIR", help="where to look first for files")
    return parser


def run(args: argparse.Namespace) -> int:
    """Do what the action says."""
    if args.action == "list":
        if args.name is not None:
            args.parser.error(f"list takes no name; for one set: lns datasets info {args.name}")
        return _list(args.data_dir)
    if args.name is None:
        args.parser.error(f"{args.action} needs the name of a data set; 'lns datasets' lists them")
    return (_info if args.action == "info" else _fetch)(args.name, args.data_dir)


def _list(data_dir: str | None) -> int:
    from lns.datasets.load import DATASETS

    for info in DATASETS.values():
        here = "drawn" if not info.files else "missing" if None in _places(info, data_dir) else "here"
        print(f"{info.name:15}{info.rows:>9,} x {info.features:<5}{here:9}{info.summary}")
    return 0


def _info(name: str, data_dir: str | None) -> int:
    from lns.datasets.load import DATASETS, load_dataset
    from lns.datasets.remote import REMOTES

    info = DATASETS.get(name.lower())
    complete = True
    if info is not None:
        print(f"{info.name}: {info.summary}\nsize         {info.rows:,} rows x {info.features:,} features")
        places = _places(info, data_dir)
        for filename, place in zip(info.files, places, strict=True):
            print(
                f"file         {filename}: {place or f'not on this machine (lns datasets fetch {info.name})'}"
            )
            print(f"  source     {', '.join(REMOTES[filename].urls)}")
            print(f"  SHA-256    {REMOTES[filename].sha256} (uncompressed)")
        complete = None not in places
    if complete:
        from lns.datasets.split import describe

        found = describe(load_dataset(name, data_dir, download_if_missing=False))
        if info is None:
            print(f"{found.name}: a file\nsize         {found.rows:,} rows x {found.features:,} features")
        print(f"density      {found.density_percent:.2f} % of the entries are not zero")
        print(f"baseline     {found.baseline_error_percent:.2f} % error of always answering the larger class")
    return 0


def _fetch(name: str, data_dir: str | None) -> int:
    from lns.datasets.load import fetch_dataset

    paths = fetch_dataset(name, data_dir)
    for path in paths:
        print(path)
    if not paths:
        print(f"{name.lower()} is drawn at random with a fixed seed: nothing to fetch.")
    return 0


def _places(info: DatasetInfo, data_dir: str | None) -> list[Path | None]:
    """Where the files of a set are on this machine."""
    from lns.datasets.lookup import locate
    from lns.datasets.remote import REMOTES
    from lns.errors import DataError

    found: list[Path | None] = []
    for filename in info.files:
        try:
            found.append(locate(REMOTES[filename], data_dir, download_if_missing=False))
        except DataError:
            found.append(None)
    return found
