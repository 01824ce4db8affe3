"""Choose q, one value or one per class, and λ, from the data alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from lns.cross_fit import NEVER, CrossFit
from lns.flip_rates import FlipRates, check_rates, corrected_error, rates_from_scores
from lns.matrix import as_matrix
from lns.q_range import q_candidates

DEFAULT_LAM = 1e-3
LAMS = (1e-5, 1e-4, 1e-2)  # tried besides DEFAULT_LAM, once q is known
DEFAULT_Q = -1.0  # where there is too little data to choose
FEWEST = 25  # examples of the smaller class, below which nothing is chosen
FOLDS = 4
MOST_ROWS = 6_000
MOST_NUMBERS = 400_000  # rows times numbers in a row; more data is sampled


@dataclass(frozen=True)
class Chosen:
    """What was chosen, and why.

    Parameters
    ----------
    q
        q of the examples labelled -1 and of those labelled +1.
    lam
        λ.
    rates
        The flip rates that the errors were corrected for; None if there was too little data to choose.
    errors
        Corrected validation error of every candidate (q of -1, q of +1, λ) that was tried.
    """

    q: dict[int, float]
    lam: float
    rates: FlipRates | None
    errors: dict[tuple[float, float, float], float]


def choose_q(
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    lam: float | None = None,
    rates: FlipRates | tuple[float, float] | None = None,
    seed: int = 0,
) -> Chosen:
    """Choose q by cross-validation on noisy labels, and λ with it unless it is given.

    1. A convex model scores examples it was not trained on. Its error β on the labels as they are bounds the
       useful q from below by 1 - 1/√β (`lns.q_range`), and its surest examples tell the flip rates
       (`lns.flip_rates`) unless they are given.
    2. Candidates are four values from that bound to 0 for both classes alike, the same with one class at 0
       (the one whose labels are suspected), and the convex loss. Each is followed by the continuous path.
    3. The candidate with the lowest noise-corrected validation error is taken. The plain validation error
       would choose wrongly: with one-sided noise it prefers models that repeat the noise.
    4. Smaller and larger λ are tried with that q.

    With fewer than 25 examples in a class, q = -1 and λ = 0.001 are returned: too little data to choose
    by. Large data is sampled (6,000 rows, fewer if they are wide).

    Parameters
    ----------
    X, y, sample_weight
        As for `lns.QLossProblem`; columns scaled to [0, 1].
    lam
        λ if it is known.
    rates
        ρ₋ and ρ₊ if they are known.
    seed
        Seed of the folds, and of the sample of large data.
    """
    matrix, labels = as_matrix(X), np.asarray(y)
    given = None if rates is None else check_rates(rates)
    start_lam = DEFAULT_LAM if lam is None else float(lam)
    rows = _rows_to_use(matrix, labels, seed)
    fewest = min((labels[rows] == label).sum() for label in (-1, 1))
    if fewest < FEWEST:
        return Chosen({-1: DEFAULT_Q, 1: DEFAULT_Q}, start_lam, given, {})
    weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
    fit = CrossFit(matrix.take(rows).X, labels[rows], weight, FOLDS, seed)

    with threadpool_limits(1, user_api="blas"):  # thousands of small calls: threads would wait for each other
        convex = fit.scores(NEVER, start_lam)
        rates = given or rates_from_scores(convex, fit.y, fit.share)
        judge = _Judge(fit, rates)
        judge.try_scores((NEVER, NEVER, start_lam), convex)
        if judge.plain_error(convex) == 0:  # not one label to doubt
            return Chosen({-1: NEVER, 1: NEVER}, start_lam, rates, judge.errors)
        for negative, positive in _pairs(judge.plain_error(convex)):
            judge.try_candidate((negative, positive, start_lam))
        if lam is None:
            negative, positive, _ = judge.best
            for other in LAMS:
                judge.try_candidate((negative, positive, other))
    negative, positive, chosen_lam = judge.best
    return Chosen({-1: negative, 1: positive}, chosen_lam, rates, judge.errors)


class _Judge:
    """Keeps the corrected error of every candidate."""

    def __init__(self, fit: CrossFit, rates: FlipRates) -> None:
        self.fit, self.rates = fit, rates
        self.negative_share = float(fit.share[fit.y < 0].sum())
        self.errors: dict[tuple[float, float, float], float] = {}

    def plain_error(self, scores: NDArray) -> float:
        """Error on the labels as they are."""
        return float(self.fit.share[self.fit.y * scores <= 0].sum())

    def try_candidate(self, candidate: tuple[float, float, float]) -> None:
        negative, positive, lam = candidate
        self.try_scores(candidate, self.fit.scores({-1: negative, 1: positive}, lam))

    def try_scores(self, candidate: tuple[float, float, float], scores: NDArray) -> None:
        self.errors[candidate] = corrected_error(*self.fit.wrong(scores), self.negative_share, self.rates)

    @property
    def best(self) -> tuple[float, float, float]:
        """The candidate with the lowest error, the earliest of several."""
        return min(self.errors, key=self.errors.__getitem__)


def _pairs(error: float) -> list[tuple[float, float]]:
    """Candidates (q of -1, q of +1), in the order in which ties are decided."""
    values = [float(q) for q in q_candidates(min(max(error, 0.01), 0.45), count=4)]
    alike = [(q, q) for q in values]
    one_sided = [pair for q in values[:-1] for pair in ((q, 0.0), (0.0, q))]
    return alike + one_sided


def _rows_to_use(matrix: Any, y: NDArray, seed: int) -> NDArray[np.intp]:
    """All rows, or a sample that keeps the work bounded and as many of the rarer class as of the other."""
    rows = matrix.shape[0]
    numbers = matrix.X.nnz / rows if hasattr(matrix.X, "nnz") else matrix.shape[1]
    most = int(min(MOST_ROWS, max(500, MOST_NUMBERS / max(1.0, numbers))))
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
