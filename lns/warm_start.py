"""Where a search begins: the continuous problem, followed from its convex end to the wanted q.

With q = -∞ the loss is the squared hinge and its minimum is unique. Raising q in stages, each started from
the minimum of the one before, lands near a good basin of the non-convex problem in seconds. The result also
says how large each weight wants to be, and so where the levels of its grid should lie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from lns.grid import Grid, weight_bound, weights_around

if TYPE_CHECKING:
    from lns.problem import QLossProblem

# How far below the wanted q each stage truncates the loss.
STAGES = (np.inf, 4.0, 2.0, 1.0, 0.5, 0.25, 0.1, 0.0)
MAX_WHITENED = 2_000
PATH_ROWS = 50_000  # the path runs on at most so many rows; the last stage then runs on all of them


def whitening(problem: QLossProblem) -> NDArray[np.float64]:
    """A matrix T such that the square loss is round in the coordinates z of (w, b) = T z.

    L-BFGS then needs a tenth of the iterations on correlated features. Beyond MAX_WHITENED features only the
    scales are evened out.
    """
    n = problem.num_features
    if n > MAX_WHITENED:
        return np.diag(1.0 / np.sqrt(np.append(problem.squared_means(), 1.0) + 1e-12))
    gram, _ = problem.matrix.moments(np.arange(n + 1), problem.share, problem.share)
    return rounding(gram, problem.lam)


def rounding(gram: NDArray[np.float64], lam: float) -> NDArray[np.float64]:
    """A matrix T such that zᵀTᵀ(gram + λ)Tz is |z|²; the bias, which comes last, is not regularised."""
    n = len(gram) - 1
    gram = gram.copy()
    gram[np.diag_indices(n)] += lam
    diagonal = np.diag_indices(n + 1)
    gram[diagonal] = gram[diagonal] * (1 + 1e-6) + 1e-12  # constant, repeated or empty columns
    return solve_triangular(cholesky(gram), np.eye(n + 1))


def minimise(
    problem: QLossProblem,
    w: NDArray,
    b: float,
    transform: NDArray,
    shift: float = 0.0,
    iterations: int = 100,
    deadline: float = math.inf,
) -> tuple[NDArray[np.float64], float]:
    """A local minimum of the continuous objective with q lowered by `shift`, by L-BFGS.

    Past the `deadline` (of `time.perf_counter`) it returns where it is.
    """
    lam = problem.lam

    def value_and_gradient(z: NDArray) -> tuple[float, NDArray]:
        solution = transform @ z
        w, b = solution[:-1], solution[-1]
        loss, gradient = problem.loss_and_gradient(w, b, shift)
        gradient[:-1] += 2 * lam * w
        return loss + lam * float(w @ w), transform.T @ gradient

    def look_at_the_clock(intermediate_result: Any) -> None:
        if perf_counter() > deadline:
            raise StopIteration

    start = np.linalg.solve(transform, np.append(w, b))
    options: Any = {"maxiter": iterations, "maxfun": 2 * iterations, "ftol": 1e-9, "gtol": 1e-7}
    found = minimize(
        value_and_gradient, start, jac=True, method="L-BFGS-B", options=options, callback=look_at_the_clock
    )
    solution = transform @ found.x
    return solution[:-1], float(solution[-1])


def continuous_path(
    problem: QLossProblem, stages: Sequence[float] = STAGES, seed: int = 0, deadline: float = math.inf
) -> tuple[NDArray[np.float64], float]:
    """Follow the minimum from the convex loss to the wanted q; large data on a sample, then on all rows."""
    rows = problem.num_examples
    few, chosen = min(PATH_ROWS, problem.max_sample_rows), None
    if rows > few:
        chosen = np.sort(np.random.default_rng(seed).choice(rows, few, replace=False))
    part = problem.subset(chosen)
    w, b = np.zeros(problem.num_features), 0.0
    # L-BFGS makes thousands of small BLAS calls: threads would wait for each other and change roundings.
    with threadpool_limits(1, user_api="blas"):
        transform = whitening(part)
        for shift in stages:  # all but the last need only be near their minimum
            w, b = minimise(part, w, b, transform, shift, 100 if shift == 0 else 40, deadline)
        if chosen is not None:
            w, b = minimise(problem, w, b, transform, 0.0, 60, deadline)
    return w, b


def automatic_grids(problem: QLossProblem) -> tuple[Grid, Grid]:
    """Intervals for ``"auto"`` ranges: around the continuous solution."""
    return grids_around(problem, *problem.warm_start)


def grids_around(problem: QLossProblem, w: NDArray[np.float64], b: float) -> tuple[Grid, Grid]:
    """One interval per weight around a continuous solution, and one around its bias."""
    # A weight that the continuous solution leaves at zero gets the interval in which one level changes the
    # objective by about 1e-4 of itself.
    sensitivity = np.sqrt(problem.squared_means()) + 1e-12
    floor = np.minimum(0.05 / sensitivity, weight_bound(problem.lam))
    weights = weights_around(w, floor, problem.lam, problem.weight_bits)
    reach = max(2.0, 0.5 * abs(b))
    bias = Grid.make(b - reach, b + reach, problem.bias_bits, 1, "bias_range")
    return weights, bias
