"""Training error against risk while each is being minimised: the paper's first figure.

On noisy labels the square loss can go down while the training error goes up; a loss that gives up on wrong
labels keeps the two together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lns.driver import solve
from lns.engine import EngineParams
from lns.paper.folds import Part, Source, wrong_side
from lns.paper.plans import Plan, QSetting
from lns.paper.qloss import problem_of
from lns.progress import Callbacks
from lns.result import RoundRecord

CASES = (("long-servedio", 20, "zero:1", -0.6), ("mease-wyner", 20, "zero:24", -0.3))
LAM, STEPS, ROUNDS = 0.000126, 60, 150
# One neighbourhood a round, nothing around it: there is a way to look at before the end is reached.
SMALL_STEPS = EngineParams(kinds=("window", "fusion"), neighbourhoods=1)


class _Solutions(Callbacks):
    """Every new best solution of a search."""

    def __init__(self) -> None:
        self.met: list[tuple[float, NDArray[np.float64], float]] = []

    def on_best(self, record: RoundRecord, weights: Any, bias: float) -> None:
        self.met.append((record.best, weights, bias))


def trace(
    part: Part, source: Source, noise_percent: int, plan: Plan, interval: str, q: float
) -> list[dict[str, Any]]:
    """Risk and training error of square loss and of q-loss, step by step."""
    X, y = np.asarray(part.train.X), part.y  # dense: the drawn sets are
    design = np.column_stack([X, np.ones(len(y))]).astype(np.float64)

    def square(v: NDArray) -> tuple[float, NDArray]:
        miss = 1 - y * (design @ v)
        penalty = np.append(v[:-1], 0.0)
        return float(np.mean(miss**2) + LAM * penalty @ penalty), -2 * design.T @ (miss * y) / len(
            y
        ) + 2 * LAM * penalty

    on_the_way: list[tuple[float, NDArray[np.float64], float]] = []

    def keep(intermediate_result: Any) -> None:
        v = intermediate_result.x.copy()
        on_the_way.append((float(intermediate_result.fun), v[:-1], float(v[-1])))

    minimize(
        square, np.zeros(design.shape[1]), jac=True, method="L-BFGS-B", callback=keep,
        options={"maxiter": STEPS},
    )  # fmt: skip
    search = _Solutions()
    solve(
        problem_of(part, QSetting(q, q, LAM, interval), plan), time_limit=None, max_rounds=ROUNDS,
        initial="random", seed=source.seed, workers=1, callbacks=[search], params=SMALL_STEPS,
    )  # fmt: skip
    return [
        {
            "loss": loss, "dataset": source.name, "noise_percent": noise_percent, "step": step,
            "training_error_percent": 100 * float(wrong_side(w, b, X, y).mean()), "risk": risk,
        }
        for loss, met in (("square", on_the_way), ("q-loss", search.met))
        for step, (risk, w, b) in enumerate(met)
    ]  # fmt: skip
