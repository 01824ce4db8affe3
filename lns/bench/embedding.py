"""The largest round that a clique, minorminer's search and our template find room for on each chip."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lns.commands.parser import Parser, rate, seconds

if TYPE_CHECKING:
    from lns.embedding.bench import Row

HEADER = ("chip", "dead", "weights", "route", "examples", "total", "qubits", "mean", "longest", "CPU s")
WIDTHS = (12, 5, 8, 9, 9, 6, 7, 6, 8, 7)


def main(argv: list[str]) -> int:
    """Entry point of ``lns bench embedding``."""
    parser = Parser(prog="lns bench embedding", description=__doc__, allow_abbrev=False)
    parser.add_argument("--chip", action="append", metavar="NAME", help="only this chip; may be repeated")
    parser.add_argument("--dead", type=rate, default=0.0, metavar="F", help="dead qubits (0.02 is 2 %%)")
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=10.0,
        metavar="S",
        help="seconds for each attempt of the search; 0 leaves it out; default 10",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of damage and search; default 0")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    args = parser.parse_args(argv)

    from lns.embedding import Chip, Store, best_shape
    from lns.embedding.bench import CASES, ROUTES, bench_embedding

    cases = list(CASES)
    if args.chip:
        chips = {chip.name: chip for chip in map(Chip.from_name, args.chip)}
        cases = [case for case in CASES if case[0] in chips]
        others = [chip for name, chip in chips.items() if all(name != case[0] for case in CASES)]
        cases += [(chip.name, best_shape(chip, store=Store(None)).weights, 4) for chip in others]
    if not args.json:
        print(_line(HEADER), flush=True)
    rows = bench_embedding(
        cases,
        routes=[route for route in ROUTES if route != "search" or args.timeout > 0],
        dead=args.dead,
        timeout=args.timeout,
        seed=args.seed,
        progress=None if args.json else _show,
    )
    if args.json:
        found = [row.to_dict() for row in rows]
        print(json.dumps({"dead": args.dead, "timeout": args.timeout, "seed": args.seed, "rows": found}))
    else:
        print("total: weight bits and 4 target bits for each example; mean and longest: chain lengths.")
    return 0


def _show(row: Row) -> None:
    first = (row.chip, row.dead_qubits, row.weights, row.route)
    if row.total:
        rest = (row.examples, row.total, row.qubits, f"{row.mean_chain:.1f}", row.max_chain)
    else:
        rest = ("-",) * 5  # type: ignore[assignment]
    print(_line((*first, *rest, f"{row.cpu_seconds:.1f}")), flush=True)


def _line(cells: tuple) -> str:
    pairs = list(zip(map(str, cells), WIDTHS, strict=True))
    return "".join(c.ljust(w) if k in (0, 3) else f"{c:>{w - 1}} " for k, (c, w) in enumerate(pairs)).rstrip()
