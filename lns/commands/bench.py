"""``lns bench``: measurements that anybody can repeat."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

BENCHES = {
    "classifier": "test error of the default classifier with noisy labels, beside scikit-learn's",
    "embedding": "how large a round each way of embedding finds room for, on every chip",
    "problem": "what the core operations cost, as ratios to a bare pass over the data",
    "quality": "the objective reached in equal time, by this engine and by others",
    "ray": "rounds a second, overhead, traffic and memory on a Ray cluster; data in shards",
    "scale": "cost of a round and time to a target, from thousands to millions of rows",
}

EXAMPLES = """\
examples:
  lns bench                        what there is
  lns bench problem --json         one JSON object on standard output
  lns bench quality --help         the options of one of them
"""


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """The options of ``lns bench``; those behind the name belong to the benchmark."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "bench",
        help="run a benchmark",
        description="Benchmarks:\n" + _table(),
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("name", nargs="?", choices=(*BENCHES,))
    parser.add_argument("options", nargs=argparse.REMAINDER, help="options of the benchmark")
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the benchmark, or list all."""
    if args.name is None:
        print(_table())
        return 0
    return int(import_module(f"lns.bench.{args.name}").main(args.options))


def _table() -> str:
    return "\n".join(f"  {name:12}{text}" for name, text in BENCHES.items())
