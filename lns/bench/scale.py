"""``lns bench scale``: what a round costs and how long a target takes, from thousands to millions of rows.

The data is a noisy linear rule in 54 dense features, as many as covertype has. Three slopes are printed, as
powers of the rows: of the seconds per round as the engine runs by default, on samples of large data and
judged on all rows; of a round on the largest sample that a long run comes to, which is every row of up to a
million; and of the seconds to a target.
"""

from __future__ import annotations

import json
import os

import numpy as np
from numpy.typing import NDArray

from lns.commands.parser import Parser
from lns.driver import solve
from lns.engine import EngineParams
from lns.memory import peak_memory_mb
from lns.problem import QLossProblem
from lns.result import Result

FEATURES = 54
SIZES = (10_000, 40_000, 160_000, 640_000, 2_560_000, 5_810_120)
SLOPES = {
    "round_s": "seconds per round",
    "largest_round_s": "per round on the largest sample",
    "to_target_s": "to target",
}
WITHIN = 1e-3  # the target is this close to the best objective of the run


def make_data(rows: int, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Correlated features in [0, 1] and labels of a linear rule, 20 % of the negatives flipped."""
    rng = np.random.default_rng(seed)
    X = np.empty((rows, FEATURES), dtype=np.float32, order="F")
    common = rng.random(rows, dtype=np.float32)
    score = np.zeros(rows, dtype=np.float32)
    for i, weight in enumerate(rng.normal(size=FEATURES).astype(np.float32)):
        X[:, i] = 0.3 * common + 0.7 * rng.random(rows, dtype=np.float32)
        score += weight * X[:, i]
    score += 0.3 * rng.standard_normal(rows, dtype=np.float32)
    y = np.where(score > np.median(score), 1, -1).astype(np.int8)
    y[(y < 0) & (rng.random(rows) < 0.2)] = 1
    return X, y


def measure(rows: int, seconds: float) -> dict[str, float]:
    """One size: warm start, seconds per round, at first and on the largest sample, and time to the target."""
    X, y = make_data(rows)
    problem = QLossProblem(X, y)
    # The most that a round can cost; the walks that open take the rest of the time and are kept short here.
    at_most = EngineParams(kinds=("window", "rounding"))
    largest = solve(problem, max_rounds=6, time_limit=None, params=at_most)
    result = solve(problem, time_limit=seconds)
    target = result.objective * (1 + WITHIN)
    reached = next((record.seconds for record in result.rounds if record.best <= target), seconds)
    if result.start_objective <= target:
        reached = result.start_time
    return {
        "rows": rows,
        "warm_start_s": largest.start_time,
        "round_s": seconds_per_round(result),
        "largest_round_s": seconds_per_round(largest),
        "objective": result.objective,
        "rounds": len(result.rounds),
        "to_target_s": largest.start_time + reached,
        "peak_mb": peak_memory_mb() or np.nan,
    }


def seconds_per_round(result: Result) -> float:
    """The median over the rounds between openings."""
    times = [
        record.select_time + record.solve_time + record.merge_time
        for record in result.rounds
        if any(len(one.weights) for one in record.neighbourhoods)
    ]
    return float(np.median(times)) if times else np.nan


def slope(rows: list[dict[str, float]], name: str) -> float:
    """Exponent k of name ~ rows^k, by least squares on logarithms."""
    x, y = (np.log([row[key] for row in rows]) for key in ("rows", name))
    return float(np.polyfit(x, y, 1)[0])


def main(argv: list[str]) -> int:
    """Entry point of ``lns bench scale``."""
    parser = Parser(prog="lns bench scale", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="time limit of each run (default 20)")
    parser.add_argument("--max-rows", type=int, default=SIZES[-1], help="leave larger sizes out")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    args = parser.parse_args(argv)
    rows = []
    for size in SIZES:
        if size <= args.max_rows:
            rows.append(measure(size, args.seconds))
            if not args.json:
                print("  ".join(f"{name} {value:.6g}" for name, value in rows[-1].items()), flush=True)
    slopes = {name: slope(rows, name) for name in SLOPES} if len(rows) > 1 else {}
    if args.json:
        print(json.dumps({"seconds": args.seconds, "cores": os.cpu_count(), "rows": rows, "slopes": slopes}))
    elif slopes:
        print("; ".join(f"{text} ~ rows^{slopes[name]:.2f}" for name, text in SLOPES.items()))
    return 0
