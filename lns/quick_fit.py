"""Quick fits of the continuous problem by L-BFGS, many of them on the same data, to compare settings by."""

from __future__ import annotations

import math
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize

if TYPE_CHECKING:
    from lns.problem import QLossProblem

MAX_WHITENED = 640  # features; a square matrix of more of them takes longer than the iterations it saves


def whitening(problem: QLossProblem) -> NDArray[np.float64]:
    """A matrix T such that the square loss is round in the coordinates z of (w, b) = T z.

    L-BFGS then needs a tenth of the iterations on correlated features. Beyond MAX_WHITENED features only the
    scales are evened out: the diagonal of T is returned.
    """
    n = problem.num_features
    if n > MAX_WHITENED:
        return 1.0 / np.sqrt(np.append(problem.squared_means(), 1.0) + 1e-12)
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
    lam, diagonal = problem.lam, transform.ndim == 1

    def value_and_gradient(z: NDArray) -> tuple[float, NDArray]:
        solution = transform * z if diagonal else transform @ z
        w, b = solution[:-1], solution[-1]
        loss, gradient = problem.loss_and_gradient(w, b, shift)
        gradient[:-1] += 2 * lam * w
        return loss + lam * float(w @ w), transform * gradient if diagonal else transform.T @ gradient

    def look_at_the_clock(intermediate_result: Any) -> None:
        if perf_counter() > deadline:
            raise StopIteration

    start = np.append(w, b)
    start = start / transform if diagonal else np.linalg.solve(transform, start)
    options: Any = {"maxiter": iterations, "maxfun": 2 * iterations, "ftol": 1e-9, "gtol": 1e-7}
    found = minimize(
        value_and_gradient, start, jac=True, method="L-BFGS-B", options=options, callback=look_at_the_clock
    )
    solution = transform * found.x if diagonal else transform @ found.x
    return solution[:-1], float(solution[-1])
