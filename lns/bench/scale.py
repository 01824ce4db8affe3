"""``lns bench scale``: time and memory from thousands to millions of rows, and of features.

The first table is of a noisy linear rule in 54 dense features, as many as covertype has. ``to_target_s`` is
the time to within 0.1 % of the best objective known for that data, warm start included; the best known ones
were found by ``lns bench scale --best`` and are kept in `BEST`. The second table is of sparse data made like
text. Beside both stand scikit-learn's estimators on the same data. Every size has a process of its own; its
peak memory is taken before scikit-learn's turn.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lns.commands.parser import Parser
from lns.driver import solve
from lns.memory import peak_memory_mb
from lns.problem import QLossProblem
from lns.result import Result

FEATURES = 54
SIZES = (10_000, 40_000, 160_000, 640_000, 2_560_000, 5_810_120)
BEST = {
    10_000: 0.312083543,
    40_000: 0.331091068,
    160_000: 0.348734341,
    640_000: 0.330254633,
    2_560_000: 0.329182386,
    5_810_120: 0.319510447,
}
BEST_SECONDS = 60.0
WITHIN = 1e-3
SLOPES = {"round_s": "seconds per round", "to_target_s": "to target"}

# Rows, features and seconds.
TEXT = ((20_000, 5_000, 5.0), (20_000, 20_000, 5.0), (60, 1_000_000, 5.0), (200_000, 200_000, 30.0))
WORDS = 120  # drawn for a row, some of them twice: about 100 non-zeros
TEST_ROWS = 20_000
FLIPPED = 0.2  # of the negatives, in both tables
TEXT_SETTINGS: dict[str, Any] = {"q": {-1: -3.0, 1: -0.2}, "lam": 1e-5}  # +1 is the class with wrong labels

Row = dict[str, float]


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
    y[(y < 0) & (rng.random(rows) < FLIPPED)] = 1
    return X, y


def make_text(rows: int, features: int, seed: int = 0) -> tuple[sparse.csr_array, NDArray[np.int8]]:
    """Rows of words with a power law, half of which say nothing, and labels of a linear rule."""
    rng = np.random.default_rng(seed)
    parts = [_words(min(10_000, rows - a), features, rng) for a in range(0, rows, 10_000)]
    weight = rng.standard_normal(features) * (rng.random(features) < 0.5)
    score = np.concatenate([part @ weight for part in parts])
    X = sparse.vstack(parts, format="csr")
    score += 0.1 * score.std() * rng.standard_normal(rows)
    return X, np.where(score > np.median(score), 1, -1).astype(np.int8)


def _words(rows: int, features: int, rng: np.random.Generator) -> sparse.csr_array:
    rank = (features + 1.0) ** rng.random((rows, WORDS))  # the k-th word has a share of about 1/k
    words = np.minimum(rank.astype(np.int32) - 1, features - 1)
    ends = np.arange(0, words.size + 1, WORDS, dtype=np.int32)
    values = np.full(words.size, 1.0 / np.sqrt(WORDS), dtype=np.float32)
    X = sparse.csr_array((values, words.ravel(), ends), shape=(rows, features))
    X.sum_duplicates()
    return X


def measure(rows: int, seconds: float) -> Row:
    """One size of the first table."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    solve(QLossProblem(*make_data(1_000)), max_rounds=2, time_limit=None)  # compiles the loops
    X, y = make_data(rows)
    problem = QLossProblem(X, y)
    warm = timed(lambda: problem.warm_start)
    start = solve(problem, max_rounds=0, time_limit=None)
    result = solve(problem, time_limit=seconds)
    target = BEST.get(rows, result.objective) * (1 + WITHIN)
    return {
        "rows": rows,
        "warm_start_s": warm,
        "start_s": start.start_time,
        "start": start.objective,
        "round_s": seconds_per_round(result),
        "to_target_s": warm + (start.start_time if start.objective <= target else seconds_to(result, target)),
        "best_known": BEST.get(rows, np.nan),
        "objective": result.objective,
        "peak_mb": peak_memory_mb() or np.nan,
        "logistic_s": timed(lambda: LogisticRegression().fit(X, y)),
        "svc_s": timed(lambda: LinearSVC(dual=False).fit(X, y)),
    }


def measure_text(rows: int, features: int, seconds: float) -> Row:
    """One size of the second table; errors are those on clean labels of other rows."""
    solve(QLossProblem(*make_text(200, 1_000), **TEXT_SETTINGS), max_rounds=4, time_limit=None)
    X, y = make_text(rows + TEST_ROWS, features)
    test, truth, X, y = X[rows:], y[rows:], X[:rows], y[:rows]
    y[(y < 0) & (np.random.default_rng(1).random(rows) < FLIPPED)] = 1
    error = lambda w, b: float(np.mean(truth * (test @ w + b) <= 0))  # noqa: E731
    start = solve(QLossProblem(X, y, **TEXT_SETTINGS), max_rounds=0, time_limit=None)
    problem = QLossProblem(X, y, **TEXT_SETTINGS)
    result: list[Result] = []
    took = timed(lambda: result.append(solve(problem, time_limit=seconds)))
    peak = peak_memory_mb() or np.nan
    from sklearn.svm import LinearSVC  # not before: it needs memory, too

    svc = LinearSVC()
    svc_seconds = timed(lambda: svc.fit(X, y))
    return {
        "rows": rows,
        "features": features,
        "data_mb": (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 2**20,
        "peak_mb": peak,
        "start_s": start.start_time,
        "start_error": error(start.weights, start.bias),
        "limit_s": seconds,
        "took_s": took,
        "rounds": len(result[0].rounds),
        "error": error(result[0].weights, result[0].bias),
        "svc_s": svc_seconds,
        "svc_error": error(svc.coef_[0], svc.intercept_[0]),
    }


def best_known(rows: int) -> float:
    """The lowest objective of several settings, a minute each."""
    problem = QLossProblem(*make_data(rows))
    return min(solve(problem, time_limit=BEST_SECONDS, mode=mode).objective for mode in ("default", "rounds"))


def timed(task: Callable[[], Any]) -> float:
    """Seconds that a task takes."""
    began = perf_counter()
    task()
    return perf_counter() - began


def seconds_to(result: Result, target: float) -> float:
    """When the rounds of a run have come to an objective; infinity if they have not."""
    return next((record.seconds for record in result.rounds if record.best <= target), np.inf)


def seconds_per_round(result: Result) -> float:
    """The median over the rounds that free weights."""
    times = [
        record.select_time + record.solve_time + record.merge_time
        for record in result.rounds
        if any(len(one.weights) for one in record.neighbourhoods)
    ]
    return float(np.median(times)) if times else np.nan


def slope(rows: list[Row], name: str) -> float:
    """Exponent k of name ~ rows^k, by least squares on logarithms."""
    x, y = (np.log([row[key] for row in rows]) for key in ("rows", name))
    return float(np.polyfit(x, y, 1)[0])


def alone(task: Callable[..., Any], *args: Any) -> Any:
    """What a task returns in a process of its own: memory that others have needed does not count."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(task, *args).result()


def main(argv: list[str]) -> int:
    """Entry point of ``lns bench scale``."""
    parser = Parser(prog="lns bench scale", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="time limit of each run (default 20)")
    parser.add_argument("--max-rows", type=int, default=SIZES[-1], help="leave larger sizes out")
    parser.add_argument("--only", choices=("dense", "text"), help="one of the two tables")
    parser.add_argument("--best", action="store_true", help="only find the best known objectives anew")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    args = parser.parse_args(argv)
    sizes = [size for size in SIZES if size <= args.max_rows]
    if args.best:
        for size in sizes:
            print(f"{size}: {alone(best_known, size):.9f}", flush=True)
        return 0
    dense = [(measure, size, args.seconds) for size in sizes if args.only != "text"]
    text = [(measure_text, *size) for size in TEXT if args.only != "dense" and size[0] <= args.max_rows]
    tables: list[list[Row]] = []
    for jobs in (dense, text):
        tables.append([])
        for job in jobs:
            tables[-1].append(alone(*job))
            if not args.json:
                print("  ".join(f"{name} {value:.6g}" for name, value in tables[-1][-1].items()), flush=True)
    rows, texts = tables
    slopes = {name: slope(rows, name) for name in SLOPES} if len(rows) > 1 else {}
    if args.json:
        run = {"seconds": args.seconds, "cores": os.cpu_count()}
        print(json.dumps({**run, "rows": rows, "slopes": slopes, "text": texts}))
    elif slopes:
        print("; ".join(f"{name} ~ rows^{slopes[key]:.2f}" for key, name in SLOPES.items()))
    return 0
