"""Linear classifiers that minimise mean L(m_s) + λ(‖w‖² + b²) for any differentiable loss, by L-BFGS.

The bias is regularised like a weight, as liblinear does it. The paper does not say how its rivals treat the
bias, but its choices of λ do: on adult9 with 30 % noise the logistic loss has its 17.75 % at the largest λ,
at which a free bias answers one class only.

Losses that are not convex are minimised from several starts, and the lowest objective counts. On large data
each start descends on a sample, and only the best of the ends goes on with all rows.
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
from lns.quick_fit import MAX_WHITENED, rounding

CONTEST_ROWS = 5_000  # more rows than that hardly change which start is best
ITERATIONS = 400
CONTEST_ITERATIONS = 150


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
        """Mean loss + λ‖(w, b)‖² of a solution (w, b), and its gradient."""
        m = self.y * (self.matrix.dot(solution[:-1]) + self.y.dtype.type(solution[-1]))

        def part(start: int, stop: int) -> tuple[float, NDArray]:
            values, slopes = loss(m[start:stop].astype(np.float64))
            return float(values.sum()), slopes * self.y[start:stop]

        sums, parts = zip(*over_rows(part, len(m), 16), strict=True)
        slope = np.concatenate(parts) / len(m)
        gradient = np.append(self.matrix.transposed_dot(slope), slope.sum()) + 2.0 * lam * solution
        return sum(sums) / len(m) + lam * float(solution @ solution), gradient

    def rounding(self, lam: float) -> Floats:
        """Coordinates in which the square loss with its regularisation is round."""
        gram = self.gram.copy()
        gram[-1, -1] += lam
        return rounding(gram, lam)

    def descend(
        self, loss: Loss, lam: float, start: Floats, iterations: int = ITERATIONS
    ) -> tuple[float, Floats]:
        """The objective at the local minimum below a start, and that minimum."""
        transform = self.rounding(lam)

        def value_and_gradient(z: Floats) -> tuple[float, Floats]:
            value, gradient = self.objective(loss, lam, transform @ z)
            return value, transform.T @ gradient

        # Single precision cannot tell objectives apart that are closer than this.
        precision = 1e-8 if self.y.dtype == np.float32 else 1e-12
        options: Any = {"maxiter": iterations, "maxfun": 2 * iterations, "ftol": precision, "gtol": 1e-7}
        at = np.linalg.solve(transform, start)
        found = minimize(value_and_gradient, at, jac=True, method="L-BFGS-B", options=options)
        return float(found.fun), transform @ found.x


def fit_path(X: Any, y: NDArray[Any], path: list[tuple[Loss, float]], starts: int, seed: int) -> list[Fitted]:
    """One classifier for every loss and λ of a path; each begins where the one before it ended.

    Parameters
    ----------
    X, y
        The examples; labels are -1 and +1.
    path
        Losses and λ, neighbours alike: from the largest λ to the smallest is quickest.
    starts
        How many to try: where the last one ended (enough for a convex loss), then the solutions of the
        logistic loss and of the smoothed hinge, then random ones.
    seed
        Of the random starts and of the sample they compete on.
    """
    training = Training.of(X, y)
    contest = training.sample(CONTEST_ROWS, seed) if starts > 1 else training
    rng = np.random.default_rng([seed, 1])
    here = np.zeros(training.matrix.shape[1] + 1)
    convex = dict.fromkeys((logistic, smoothed_hinge)[: starts - 1], here)
    solved_for = None
    fitted = []
    # L-BFGS makes thousands of small BLAS calls: threads would wait for each other and change roundings.
    with threadpool_limits(1, user_api="blas"):
        for loss, lam in path:
            if starts > 1:
                if lam != solved_for:
                    convex = {one: contest.descend(one, lam, start)[1] for one, start in convex.items()}
                    solved_for = lam
                begins = [here, *convex.values(), *scattered(contest, lam, starts - 1 - len(convex), rng)]
                ends = [contest.descend(loss, lam, begin, CONTEST_ITERATIONS)[1] for begin in begins]
                here = ends[int(np.argmin([training.objective(loss, lam, end)[0] for end in ends]))]
            _, here = training.descend(loss, lam, here)
            fitted.append(Fitted(here[:-1].copy(), float(here[-1])))
    return fitted


def scattered(training: Training, lam: float, number: int, rng: np.random.Generator) -> list[Floats]:
    """Random starts whose scores are about as large as the margins the losses look at."""
    transform = training.rounding(lam)
    size = len(transform)
    return [transform @ rng.normal(size=size) * (2.0 / np.sqrt(size)) for _ in range(number)]
