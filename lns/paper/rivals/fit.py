"""Linear classifiers that minimise mean L(m_s) + λ‖w‖² for any differentiable loss, by L-BFGS.

The bias is not regularised. Losses that are not convex are minimised from several starts, and the lowest
objective counts. On large data the starts compete on a sample and only the winner sees all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from lns.matrix import Matrix, as_matrix, over_rows
from lns.model import LinearModel
from lns.paper.rivals.losses import Floats, Loss, logistic, smoothed_hinge
from lns.warm_start import MAX_WHITENED, rounding

CONTEST_ROWS = 20_000  # more rows than that do not change which start is best
STARTS_AT_RANDOM = 2
ITERATIONS = 400


class Fitted(LinearModel):
    """A linear classifier of -1 and +1."""


@dataclass(frozen=True)
class Training:
    """Examples to fit: a matrix and one label, -1 or +1, for every row."""

    matrix: Matrix
    y: NDArray[Any]

    @classmethod
    def of(cls, X: Any, y: NDArray[Any]) -> Training:
        matrix = as_matrix(X)
        return cls(matrix, np.asarray(y).astype(matrix.X.dtype))

    @cached_property
    def gram(self) -> Floats:
        """Mean products of the columns, the constant 1 of the bias last."""
        rows, features = self.matrix.shape
        share = np.full(rows, 1.0 / rows)
        if features > MAX_WHITENED:
            return np.diag(np.append(self.matrix.squared_column_means(share), 1.0))
        return self.matrix.moments(np.arange(features + 1), share, share)[0]

    def sample(self, rows: int, seed: int) -> Training:
        """A random part, or all if there are no more."""
        if rows >= len(self.y):
            return self
        chosen = np.sort(np.random.default_rng(seed).choice(len(self.y), rows, replace=False))
        return Training(self.matrix.take(chosen), self.y[chosen])

    def objective(self, loss: Loss, lam: float, solution: Floats) -> tuple[float, Floats]:
        """Mean loss + λ‖w‖² of a solution (w, b), and its gradient."""
        w, b = solution[:-1], solution[-1]
        m = self.y * (self.matrix.dot(w) + self.y.dtype.type(b))

        def part(start: int, stop: int) -> tuple[float, NDArray]:
            values, slopes = loss(m[start:stop].astype(np.float64))
            return float(values.sum()), slopes * self.y[start:stop]

        sums, parts = zip(*over_rows(part, len(m), 16), strict=True)
        slope = np.concatenate(parts) / len(m)
        gradient = np.append(self.matrix.transposed_dot(slope), slope.sum()).astype(np.float64)
        gradient[:-1] += 2.0 * lam * w
        return sum(sums) / len(m) + lam * float(w @ w), gradient

    def descend(
        self, loss: Loss, lam: float, start: Floats, iterations: int = ITERATIONS
    ) -> tuple[float, Floats]:
        """The objective at the local minimum below a start, and that minimum."""
        transform = rounding(self.gram, lam)

        def value_and_gradient(z: Floats) -> tuple[float, Floats]:
            value, gradient = self.objective(loss, lam, transform @ z)
            return value, transform.T @ gradient

        # Single precision cannot tell objectives apart that are closer than this.
        precision = 1e-8 if self.y.dtype == np.float32 else 1e-12
        options: Any = {"maxiter": iterations, "maxfun": 2 * iterations, "ftol": precision, "gtol": 1e-7}
        at = np.linalg.solve(transform, start)
        found = minimize(value_and_gradient, at, jac=True, method="L-BFGS-B", options=options)
        return float(found.fun), transform @ found.x


def fit_path(
    X: Any, y: NDArray[Any], path: list[tuple[Loss, float]], convex: bool, seed: int
) -> list[Fitted]:
    """One classifier for every loss and λ of a path; each begins where the one before it ended.

    Parameters
    ----------
    X, y
        The examples; labels are -1 and +1.
    path
        Losses and λ, neighbours alike: from the largest λ to the smallest is quickest.
    convex
        Whether one start is enough.
    seed
        Of the random starts and of the sample they compete on.
    """
    training = Training.of(X, y)
    contest = training if convex else training.sample(CONTEST_ROWS, seed)
    rng = np.random.default_rng([seed, 1])
    before = np.zeros(training.matrix.shape[1] + 1)
    supports: dict[float, list[Floats]] = {}
    fitted = []
    # L-BFGS makes thousands of small BLAS calls: threads would wait for each other and change roundings.
    with threadpool_limits(1, user_api="blas"):
        for loss, lam in path:
            start = before
            if not convex:
                if lam not in supports:
                    supports[lam] = convex_solutions(contest, lam, supports)
                starts = [before, *supports[lam], *scattered(contest, lam, rng)]
                start = min((contest.descend(loss, lam, one, 150) for one in starts), key=lambda end: end[0])[
                    1
                ]
            before = training.descend(loss, lam, start)[1]
            fitted.append(Fitted(before[:-1].copy(), float(before[-1])))
    return fitted


def convex_solutions(training: Training, lam: float, known: dict[float, list[Floats]]) -> list[Floats]:
    """Where the logistic loss and the smoothed hinge end, from where they ended for the last λ."""
    losses = (logistic, smoothed_hinge)
    last = list(known.values())[-1] if known else [np.zeros(training.matrix.shape[1] + 1)] * len(losses)
    return [training.descend(loss, lam, one)[1] for loss, one in zip(losses, last, strict=True)]


def scattered(training: Training, lam: float, rng: np.random.Generator) -> list[Floats]:
    """Random starts whose scores are about as large as the margins the losses look at."""
    transform = rounding(training.gram, lam)
    size = len(transform)
    return [transform @ rng.normal(size=size) * (2.0 / np.sqrt(size)) for _ in range(STARTS_AT_RANDOM)]
