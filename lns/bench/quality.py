"""``lns bench quality``: the engine beside everything a user could pick instead, at equal wall time.

One table: per instance the median and the worst seed of the engine and of the rival annealer, whole-QUBO
solvers where the QUBO fits, and the continuous path. --null replaces the solver of sub-QUBOs by one that does
nothing, --ablate switches the engine's mechanisms off in turn, --best-known counts how many seeds reach the
best known objectives of the instance files.
"""

from __future__ import annotations

import csv
import fnmatch
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from lns import qubo
from lns.bench.ablation import ablation_row, null_row
from lns.bench.instances import REGIMES, panel
from lns.bench.rival import Rival
from lns.commands.parser import Parser
from lns.driver import solve
from lns.errors import DataError
from lns.problem import QLossProblem
from lns.start import starting_state

FULL_QUBO_COUPLERS = 1_000_000  # whole-QUBO solvers run below this size


def whole_qubo(problem: QLossProblem, seconds: float, seed: int) -> dict[str, float]:
    """True objectives of the answers of general solvers that are given the full QUBO."""
    import hybrid
    from dwave.samplers import SimulatedAnnealingSampler, TabuSampler

    bqm = problem.to_bqm()

    def annealing() -> Any:
        # Sweeps that fill the time, from the speed of a short run.
        began = perf_counter()
        SimulatedAnnealingSampler().sample(bqm, num_reads=1, num_sweeps=10, seed=seed)
        sweeps = max(10, int(10 * seconds / (perf_counter() - began)))
        return SimulatedAnnealingSampler().sample(bqm, num_reads=1, num_sweeps=sweeps, seed=seed)

    def hybrid_workflow() -> Any:
        flow = hybrid.Loop(
            hybrid.Race(
                hybrid.InterruptableTabuSampler(),
                hybrid.EnergyImpactDecomposer(size=50)
                | hybrid.TabuSubproblemSampler()
                | hybrid.SplatComposer(),
            )
            | hybrid.ArgMin(),
            max_time=seconds,
        )
        return flow.run(hybrid.State.from_problem(bqm)).result().samples

    contenders: dict[str, Callable[[], Any]] = {
        "full-QUBO SA": annealing,
        "full-QUBO Tabu": lambda: TabuSampler().sample(bqm, timeout=int(1000 * seconds), seed=seed),
        "dwave-hybrid": hybrid_workflow,
    }
    return {name: problem.objective(*problem.decode(contender())) for name, contender in contenders.items()}


def compare(name: str, problem: QLossProblem, seconds: float, seeds: int, others: bool) -> dict[str, Any]:
    """One row of the table."""
    start = starting_state(problem, None, 0).codes
    rival = Rival(problem)
    solve(problem, max_rounds=2)  # compiled before any clock runs
    ours, theirs, speed, overhead = [], [], 0.0, []
    for seed in range(seeds):  # in turn, so that a busy machine disturbs both alike
        result = solve(problem, time_limit=seconds, seed=seed)
        ours.append(result.objective)
        overhead.append(result.overhead)
        objective, speed = rival(start, seconds, seed)
        theirs.append(objective)
    row: dict[str, Any] = {
        "instance": name, "examples": problem.num_examples, "features": problem.num_features,
        "engine": float(np.median(ours)), "engine_worst": max(ours), "rival": float(np.median(theirs)),
        "rival_us_per_move": speed, "ratio": float(np.median(ours) / np.median(theirs)),
        "ratio_worst": float(max(ours) / np.median(theirs)), "overhead": float(np.median(overhead)),
        "continuous": problem.objective(*problem.warm_start), "start": problem.state(start).objective,
    }  # fmt: skip
    if others and qubo.num_couplers(problem) <= FULL_QUBO_COUPLERS:
        row |= whole_qubo(problem, seconds, seed=0)
    return row


def best_known(folder: Path, seconds: float, seeds: int) -> list[dict[str, Any]]:
    """How many seeds reach the best known objective of each instance file, and how fast."""
    with open(folder / "best_known.csv", newline="") as file:
        known = list(csv.DictReader(file))
    rows = []
    for row in known:
        with np.load(folder / row["file"], allow_pickle=False) as data:
            X, y = data["X"].astype(np.float64), data["y"]
        problem = QLossProblem(
            X, y, q=float(row["q"]), lam=float(row["lam"]), weight_bits=int(row["weight_bits"]),
            weight_range=(float(row["weight_lo"]), float(row["weight_hi"])), bias_bits=int(row["bias_bits"]),
            bias_range=(float(row["bias_lo"]), float(row["bias_hi"])),
        )  # fmt: skip
        solve(problem, max_rounds=2)
        target = float(row["best_objective"]) + 1e-6
        results = [solve(problem, time_limit=seconds, target=target, seed=seed) for seed in range(seeds)]
        reached = [result.wall_time for result in results if result.objective <= target]
        rows.append(
            {
                "instance": f"{row['file']} {row['weight_bits']}bit",
                "best_known": float(row["best_objective"]),
                "reached": len(reached),
                "seeds": seeds,
                "lowest": min(result.objective for result in results),
                "median_seconds": float(np.median(reached)) if reached else None,
                "slowest_seconds": max(reached) if reached else None,
            }
        )
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as aligned text."""
    columns = list(dict.fromkeys(name for row in rows for name in row))

    def text(value: Any) -> str:
        return "-" if value is None else f"{value:#.6g}" if isinstance(value, float) else str(value)

    cells = [columns, *([text(row.get(name)) for name in columns] for row in rows)]
    widths = [max(len(line[k]) for line in cells) for k in range(len(columns))]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells
    )


def main(argv: list[str]) -> int:
    """Entry point of ``lns bench quality``."""
    parser = Parser(prog="lns bench quality", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="wall time of every contender (default 5)")
    parser.add_argument(
        "--seeds", type=int, default=3, help="seeds of the engine and of the rival (default 3)"
    )
    parser.add_argument("--instances", default="*", help="only those whose name matches, e.g. 'covertype*'")
    parser.add_argument("--data-dir", default=None, help="where the real data sets lie")
    parser.add_argument("--no-others", action="store_true", help="leave the whole-QUBO solvers out")
    parser.add_argument("--ablate", action="store_true", help="switch mechanisms off in turn, paired seeds")
    parser.add_argument("--null", action="store_true", help="what the answers of sub-QUBOs are worth")
    parser.add_argument("--best-known", action="store_true", help="the instance files with known objectives")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    args = parser.parse_args(argv)

    rows: list[dict[str, Any]] = []
    with threadpool_limits(1, user_api="blas"):
        if args.best_known:
            folder = Path(args.data_dir or os.environ.get("LNS_DATA_DIR", ".")) / "instances"
            if not (folder / "best_known.csv").exists():
                raise DataError(
                    f"{folder / 'best_known.csv'} does not exist: give --data-dir or set LNS_DATA_DIR."
                )
            rows = best_known(folder, args.seconds, args.seeds)
        else:
            makers = {instance.name: instance.make for instance in panel()} | REGIMES
            known = REGIMES if args.null else makers
            chosen = fnmatch.filter(known, args.instances)
            if not chosen:
                parser.error(f"no instance has a name like {args.instances!r}; there are {', '.join(known)}")
            for name in chosen:
                try:
                    problem = known[name](args.data_dir)
                except DataError as error:
                    print(f"left out: {name}: {error}", file=sys.stderr)
                    continue
                if args.null or args.ablate:
                    row = (null_row if args.null else ablation_row)(name, problem, args.seconds, args.seeds)
                else:
                    row = compare(name, problem, args.seconds, args.seeds, not args.no_others)
                rows.append(row)
                print(table(rows[-1:]), file=sys.stderr, flush=True)
    if args.json:
        print(
            json.dumps({"seconds": args.seconds, "seeds": args.seeds, "cores": os.cpu_count(), "rows": rows})
        )
    else:
        print(table(rows))
        if rows and "ratio" in rows[0]:
            print(verdict(rows))
    return 0


def verdict(rows: list[dict[str, Any]]) -> str:
    """What the comparison says in one sentence."""
    wide = [row for row in rows if row["features"] >= 50]
    return (
        f"engine/rival: median at most 1.000 on {sum(row['ratio'] <= 1.0 for row in rows)} of {len(rows)}, "
        f"worst seed at most 1.002 on {sum(row['ratio_worst'] <= 1.002 for row in rows)}, "
        f"median below 0.9995 on {sum(row['ratio'] < 0.9995 for row in wide)} of the {len(wide)} "
        "with 50 or more features"
    )
