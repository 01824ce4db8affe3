"""``lns bench quality``: the engine beside everything a user could pick instead, at equal wall time.

One table: per instance the median and the worst seed of the engine and of the rival annealer, whole-QUBO
solvers where the QUBO fits, and the continuous path. --ablate switches the engine's ingredients off in turn.
--best-known counts how many seeds reach the best known objectives of the instance files.
"""

from __future__ import annotations

import csv
import fnmatch
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from lns import qubo
from lns.bench.rival import Rival
from lns.commands.parser import Parser
from lns.datasets.load import load_dataset
from lns.datasets.noise import flip_labels
from lns.datasets.split import subsample, train_test_split
from lns.driver import solve
from lns.engine import EngineParams
from lns.errors import DataError
from lns.problem import QLossProblem

MAX_ROWS = 20_000
FULL_QUBO_COUPLERS = 1_000_000  # whole-QUBO solvers run below this size

# One q per class, where label noise is one-sided: (q of negatives, q of positives).
CLASS_Q = {"covertype": (-0.7, 0.0), "adult9": (-0.5, 0.0), "web8": (-2.0, -0.2), "mushrooms": (-1.0, 0.0)}
SYNTHETIC = {
    "long-servedio": {"lam": 0.003, "bias_range": (-2.0, 2.0), 2: (0.0, 1.0), 4: (-1.0, 1.0)},
    "mease-wyner": {"lam": 0.000126, "bias_range": (-24.0, 24.0), 2: (0.0, 8.0), 4: (-8.0, 8.0)},
}

ABLATIONS: dict[str, dict[str, Any]] = {
    "engine": {},
}


# What the QUBO rounds are worth: with and without them, first in an engine that has nothing else but polish.
ROUNDS_ADD = {
    "QUBO rounds add to polish alone": ("no opening walk", "polish alone"),
    "QUBO rounds add to all else": ("engine", "no QUBO rounds"),
}


@dataclass(frozen=True)
class Instance:
    """A training problem of the panel."""

    dataset: str
    noise: float
    bits: int
    per_class: bool = False

    @property
    def name(self) -> str:
        """Short name, as in the table."""
        return (
            f"{self.dataset} {100 * self.noise:.0f}% {self.bits}bit{' per-class q' if self.per_class else ''}"
        )

    def make(self, data_dir: str | None) -> QLossProblem:
        """70 % of the data (at most 20,000 rows), negatives flipped."""
        data = load_dataset(self.dataset, data_dir)
        data = data.take(train_test_split(data, 0.3, seed=0)[0])
        if data.num_examples > MAX_ROWS:
            data = subsample(data, MAX_ROWS, seed=0)
        y, _ = flip_labels(data.y, self.noise, seed=1)
        if self.dataset in SYNTHETIC:
            known: Mapping[Any, Any] = SYNTHETIC[self.dataset]
            return QLossProblem(
                data.X, y, q=-0.5, lam=known["lam"], weight_bits=self.bits, weight_range=known[self.bits],
                bias_range=known["bias_range"],
            )  # fmt: skip
        q: Any = -0.5
        if self.per_class:
            q = dict(zip((-1, 1), CLASS_Q[self.dataset], strict=True))
        return QLossProblem(data.X, y, q=q, lam=1e-6, weight_bits=self.bits)


def panel() -> list[Instance]:
    """All instances, synthetic ones first."""
    noises = (0.0, 0.2, 0.4)
    synthetic = [Instance(name, noise, bits) for name in SYNTHETIC for noise in noises for bits in (2, 4)]
    real = [Instance(name, noise, 4) for name in CLASS_Q for noise in noises]
    return synthetic + real + [Instance(name, 0.4, 4, per_class=True) for name in CLASS_Q]


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


def compare(
    instance: Instance, seconds: float, seeds: int, others: bool, data_dir: str | None
) -> dict[str, Any]:
    """One row of the table."""
    problem = instance.make(data_dir)
    start = problem.codes(*problem.warm_start)
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
        "instance": instance.name, "examples": problem.num_examples, "features": problem.num_features,
        "engine": float(np.median(ours)), "engine_worst": max(ours), "rival": float(np.median(theirs)),
        "rival_us_per_move": speed, "ratio": float(np.median(ours) / np.median(theirs)),
        "ratio_worst": float(max(ours) / np.median(theirs)), "overhead": float(np.median(overhead)),
        "continuous": problem.objective(*problem.warm_start), "rounded": problem.state(start).objective,
    }  # fmt: skip
    if others and qubo.num_couplers(problem) <= FULL_QUBO_COUPLERS:
        row |= whole_qubo(problem, seconds, seed=0)
    return row


def ablate(instance: Instance, seconds: float, seeds: int, data_dir: str | None) -> dict[str, Any]:
    """Median objective of the engine with each ingredient switched off, and what QUBO rounds add."""
    problem = instance.make(data_dir)
    problem.codes(*problem.warm_start)
    row: dict[str, Any] = {"instance": instance.name}
    for name, settings in ABLATIONS.items():
        solve(problem, max_rounds=2, time_limit=1.0, **settings)  # compiles what it needs
        found = [solve(problem, time_limit=seconds, seed=seed, **settings).objective for seed in range(seeds)]
        row[name] = float(np.median(found))
    for title, (with_rounds, without) in ROUNDS_ADD.items():
        gain = 1 - row[with_rounds] / row[without]
        row[title] = f"{100 * gain:.4f} %" if gain > 0 else "nothing"
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
    parser.add_argument("--ablate", action="store_true", help="switch ingredients off in turn")
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
            chosen = [instance for instance in panel() if fnmatch.fnmatch(instance.name, args.instances)]
            if not chosen:
                names = ", ".join(instance.name for instance in panel())
                parser.error(f"no instance has a name like {args.instances!r}; there are {names}")
            for instance in chosen:
                try:
                    if args.ablate:
                        row = ablate(instance, args.seconds, args.seeds, args.data_dir)
                    else:
                        row = compare(instance, args.seconds, args.seeds, not args.no_others, args.data_dir)
                except DataError as error:
                    print(f"left out: {instance.name}: {error}", file=sys.stderr)
                    continue
                rows.append(row)
                print(table(rows[-1:]), file=sys.stderr, flush=True)
    if args.json:
        print(
            json.dumps({"seconds": args.seconds, "seeds": args.seeds, "cores": os.cpu_count(), "rows": rows})
        )
    else:
        print(table(rows))
        if rows and not args.best_known:
            print(what_rounds_add(rows) if args.ablate else verdict(rows))
    return 0


def what_rounds_add(rows: list[dict[str, Any]]) -> str:
    """On how many instances the search ends lower with QUBO rounds than without, and on which not."""
    lines = []
    for title in ROUNDS_ADD:
        without = [row["instance"] for row in rows if row[title] == "nothing"]
        end = f"; not on {', '.join(without)}" if without else ""
        lines.append(f"{title} on {len(rows) - len(without)} of {len(rows)} instances{end}")
    return "\n".join(lines)


def verdict(rows: list[dict[str, Any]]) -> str:
    """What the comparison says in one sentence."""
    wide = [row for row in rows if row["features"] >= 50]
    return (
        f"engine/rival: median at most 1.000 on {sum(row['ratio'] <= 1.0 for row in rows)} of {len(rows)}, "
        f"worst seed at most 1.002 on {sum(row['ratio_worst'] <= 1.002 for row in rows)}, "
        f"median below 0.9995 on {sum(row['ratio'] < 0.9995 for row in wide)} of the {len(wide)} "
        "with 50 or more features"
    )
