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
LAMS = (DEFAULT_LAM, 1e-5, 1e-4, 1e-2)  # to choose from
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
    3. The bound itself is replaced by the candidate with the lowest noise-corrected validation error if the
       difference exceeds its standard error. The plain validation error would choose wrongly: with one-sided
       noise it prefers models that repeat the noise.
    4. λ is chosen among four values in the same way: a smaller one before q, any of them after it.

    With fewer than 25 examples in a class, q = -1 and λ = 0.001 are returned: too little to choose by. Of
    large data 6,000 rows are used, fewer if they are wide; a rare class may be half of them.

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
    lams = LAMS if lam is None else (float(lam),)
    weight = np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    rows, weight = _sample(matrix, labels, weight, seed)
    labels = labels[rows]
    if min((labels == label).sum() for label in (-1, 1)) < FEWEST:
        return Chosen({-1: DEFAULT_Q, 1: DEFAULT_Q}, lams[0], given, {})
    fit = CrossFit(matrix.take(rows).X, labels, weight, FOLDS, seed)

    with threadpool_limits(1, user_api="blas"):  # thousands of small calls: threads would wait for each other
        convex = fit.scores(NEVER, lams[0])
        rates = given or rates_from_scores(convex, fit.y, fit.share)
        judge = _Judge(fit, rates)
        judge.test((NEVER, NEVER, lams[0]), convex)
        pairs = _pairs(float(fit.share[fit.y * convex <= 0].sum()))
        judge.choice = (*pairs[0], lams[0])
        # With noise and a q that does not stand in its way, a larger λ only looks good: not yet.
        judge.choose([(*pairs[0], lam) for lam in lams if lam <= lams[0]], 1.0)
        judge.choose([(*pair, judge.choice[2]) for pair in pairs], 1.0)
        judge.choose([(*judge.choice[:2], lam) for lam in lams], 0.0)
    negative, positive, chosen_lam = judge.choice
    return Chosen({-1: negative, 1: positive}, chosen_lam, rates, judge.errors)


Candidate = tuple[float, float, float]  # q of -1, q of +1, λ


class _Judge:
    """Holds a choice, and leaves it for a better one."""

    def __init__(self, fit: CrossFit, rates: FlipRates) -> None:
        self.fit, self.rates = fit, rates
        self.negative_share = float(fit.share[fit.y < 0].sum())
        self.errors: dict[Candidate, float] = {}
        self.choice: Candidate = (NEVER, NEVER, 0.0)
        self._wrong: dict[Candidate, NDArray[np.bool_]] = {}
        # What one more wrong answer adds to the corrected error, by the label of the example.
        slopes = [(1 - rates.positive + rates.negative), (1 - rates.negative + rates.positive)]
        self._cost = fit.share * np.where(fit.y < 0, *slopes) / rates.remaining

    def choose(self, candidates: list[Candidate], doubts: float) -> None:
        """Go to the best candidate if its error is lower by so many standard errors of the difference."""
        for candidate in candidates:
            if candidate not in self.errors:
                negative, positive, lam = candidate
                self.test(candidate, self.fit.scores({-1: negative, 1: positive}, lam))
        best = min(candidates, key=self.errors.__getitem__)
        differ = self._wrong[best] != self._wrong[self.choice]
        doubt = float(np.sqrt(np.square(self._cost[differ]).sum()))
        if self.errors[best] < self.errors[self.choice] - doubts * doubt:
            self.choice = best

    def test(self, candidate: Candidate, scores: NDArray) -> None:
        """Note the error of a candidate, given its out-of-fold scores."""
        self._wrong[candidate] = self.fit.y * scores <= 0
        self.errors[candidate] = corrected_error(*self.fit.wrong(scores), self.negative_share, self.rates)


def _pairs(error: float) -> list[tuple[float, float]]:
    """Candidates (q of -1, q of +1): first the lower bound for both, last the convex loss."""
    values = [float(q) for q in q_candidates(min(max(error, 0.01), 0.45), count=4)]
    alike = [(q, q) for q in values]
    one_sided = [pair for q in values[:-1] for pair in ((q, 0.0), (0.0, q))]
    return [*alike, *one_sided, (NEVER, NEVER)]


def _sample(matrix: Any, y: NDArray, weight: NDArray, seed: int) -> tuple[NDArray[np.intp], NDArray]:
    """Rows that keep the work bounded, and weights that keep the shares of the classes.

    Of a rare class up to half of the sample is taken: its errors count as much as those of the other.
    """
    rows = matrix.shape[0]
    numbers = matrix.X.nnz / rows if hasattr(matrix.X, "nnz") else matrix.shape[1]
    most = int(min(MOST_ROWS, max(500, MOST_NUMBERS / max(1.0, numbers))))
    if rows <= most:
        return np.arange(rows), weight
    rng = np.random.default_rng(seed)
    groups = sorted((np.flatnonzero(y == label) for label in (-1, 1)), key=len)
    rare = rng.permutation(groups[0])[: most // 2]
    other = rng.permutation(groups[1])[: most - len(rare)]
    kept = weight.astype(np.float64)
    for group, taken in zip(groups, (rare, other), strict=True):
        kept[taken] *= weight[group].sum() / max(weight[taken].sum(), 1e-300)
    chosen = np.sort(np.concatenate([rare, other]))
    return chosen, kept[chosen]
