"""Choose q, one value or one per class, and λ, from the data alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from lns.cross_fit import NEVER, CrossFit
from lns.flip_rates import FlipRates, check_rates, corrected_error, rates_from_scores
from lns.matrix import as_matrix, numbers_per_row
from lns.q_range import q_candidates

DEFAULT_LAM = 1e-3
LAMS = (DEFAULT_LAM, 1e-5, 1e-4, 1e-2)  # to choose from
DEFAULT_Q = -1.0  # where there is too little data to choose
FEWEST = 25  # examples of the smallest class, below which nothing is chosen
FOLDS = 4
MOST_ROWS = 6_000
MOST_NUMBERS = 400_000  # rows times numbers in a row; more data is sampled

Candidate = tuple[float, float, float]  # q of -1, q of +1, λ


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
        The flip rates that the errors were corrected for, if they were.
    errors
        Validation error of every candidate (q of -1, q of +1, λ) that was tried; none if there was too little
        data to choose.
    """

    q: dict[int, float]
    lam: float
    rates: FlipRates | None
    errors: dict[Candidate, float]


def error_costs(rates: FlipRates) -> tuple[float, float]:
    """What an example labelled -1 (+1) adds to the corrected error by being wrong, times its share."""
    slopes = 1 - rates.positive + rates.negative, 1 - rates.negative + rates.positive
    return slopes[0] / rates.remaining, slopes[1] / rates.remaining


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
    given = None if rates is None else check_rates(rates)
    lams = LAMS if lam is None else (float(lam),)
    part = _Part.of(X, np.asarray(y), sample_weight, seed)
    if part.fewest < FEWEST:
        return Chosen({-1: DEFAULT_Q, 1: DEFAULT_Q}, lams[0], given, {})
    fit = CrossFit(part.X, part.labels, part.weight, FOLDS, seed)
    with threadpool_limits(1, user_api="blas"):  # thousands of small calls: threads would wait for each other
        convex = fit.scores(NEVER, lams[0])
        found = given or rates_from_scores(convex, fit.y, fit.share)
        negative_share = float(fit.share[fit.y < 0].sum())

        def judge(candidate: Candidate) -> tuple[float, NDArray[np.bool_]]:
            negative, positive, lam = candidate
            scores = fit.scores({-1: negative, 1: positive}, lam)
            return corrected_error(*fit.wrong(scores), negative_share, found), fit.y * scores <= 0

        cost = fit.share * np.where(fit.y < 0, *error_costs(found))
        values = _values(float(fit.share[fit.y * convex <= 0].sum()))
        one_sided = [pair for q in values[:-1] for pair in ((q, 0.0), (0.0, q))]
        choice = _Choice(judge, cost)
        negative, positive, chosen_lam = choice.settle([*zip(values, values, strict=True), *one_sided], lams)
    return Chosen({-1: negative, 1: positive}, chosen_lam, found, choice.errors)


def choose_q_for_classes(
    X: Any,
    codes: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    lam: float | None = None,
    seed: int = 0,
) -> Chosen:
    """Choose one q, and λ unless it is given, for several classes that are trained one against the rest.

    As `choose_q`, but with one q for all, and by the plain validation error of the class with the highest
    score: flips between several classes are not described by two rates. If one class is flipped into one
    other far more often than elsewhere, that error can choose wrongly.

    Parameters
    ----------
    X, sample_weight, lam, seed
        As for `choose_q`.
    codes
        The class of every example: 0, 1, 2, ...
    """
    lams = LAMS if lam is None else (float(lam),)
    part = _Part.of(X, np.asarray(codes), sample_weight, seed)
    if part.fewest < FEWEST:
        return Chosen({-1: DEFAULT_Q, 1: DEFAULT_Q}, lams[0], None, {})
    fits = [
        CrossFit(part.X, np.where(part.labels == code, 1, -1), part.weight, FOLDS, seed)
        for code in range(part.labels.max() + 1)
    ]
    share = fits[0].share

    def judge(candidate: Candidate) -> tuple[float, NDArray[np.bool_]]:
        scores = np.stack([fit.scores(candidate[0], candidate[2]) for fit in fits])
        wrong = scores.argmax(axis=0) != part.labels
        return float(share[wrong].sum()), wrong

    with threadpool_limits(1, user_api="blas"):
        choice = _Choice(judge, share)
        values = _values(choice.error((NEVER, NEVER, lams[0])))
        q, _, chosen_lam = choice.settle([*zip(values, values, strict=True)], lams)
    return Chosen({-1: q, 1: q}, chosen_lam, None, choice.errors)


def _values(error: float) -> list[float]:
    """The paper's candidates for q, given the error on labels as they are."""
    return [float(q) for q in q_candidates(min(max(error, 0.01), 0.45), count=4)]


class _Choice:
    """Goes from candidate to candidate, where the gain is beyond chance.

    Parameters
    ----------
    judge
        Error of a candidate, and which examples it gets wrong.
    cost
        What each wrong example adds to the error.
    """

    def __init__(
        self, judge: Callable[[Candidate], tuple[float, NDArray[np.bool_]]], cost: NDArray[np.float64]
    ) -> None:
        self._judge, self._cost = judge, cost
        self._judged: dict[Candidate, tuple[float, NDArray[np.bool_]]] = {}

    @property
    def errors(self) -> dict[Candidate, float]:
        """Error of every candidate that was looked at."""
        return {candidate: error for candidate, (error, _) in self._judged.items()}

    def error(self, candidate: Candidate) -> float:
        """Error of a candidate."""
        if candidate not in self._judged:
            self._judged[candidate] = self._judge(candidate)
        return self._judged[candidate][0]

    def settle(self, pairs: list[tuple[float, float]], lams: tuple[float, ...]) -> Candidate:
        """The best pair of q and λ, beginning with the first of each."""
        best: Candidate = (*pairs[0], lams[0])
        # With noise and a q that does not stand in its way, a larger λ only looks good: not yet.
        best = self._better(best, ((*pairs[0], lam) for lam in lams if lam <= lams[0]), 1.0)
        best = self._better(best, ((*pair, best[2]) for pair in [*pairs, (NEVER, NEVER)]), 1.0)
        return self._better(best, ((*best[:2], lam) for lam in lams), 0.0)

    def _better(self, now: Candidate, candidates: Iterable[Candidate], doubts: float) -> Candidate:
        """The best candidate, if its error is lower by so many standard errors of the difference."""
        best = min([now, *candidates], key=self.error)
        differ = self._judged[best][1] != self._judged[now][1]
        doubt = float(np.sqrt(np.square(self._cost[differ]).sum()))
        return best if self.error(best) < self.error(now) - doubts * doubt else now


@dataclass(frozen=True)
class _Part:
    """As much of the data as the choice looks at."""

    X: Any
    labels: NDArray
    weight: NDArray[np.float64]

    @classmethod
    def of(cls, X: Any, labels: NDArray, sample_weight: ArrayLike | None, seed: int) -> _Part:
        """All rows, or a sample that bounds the work, with weights that keep the shares of the classes.

        Every class gets the same number of rows if it has so many: errors on a rare one count, too.
        """
        matrix = as_matrix(X)
        rows = matrix.shape[0]
        weight = np.ones(rows) if sample_weight is None else np.array(sample_weight, dtype=np.float64)
        groups = sorted((np.flatnonzero(labels == label) for label in np.unique(labels)), key=len)
        numbers = numbers_per_row(matrix)
        most = int(min(MOST_ROWS, max(500, MOST_NUMBERS / max(1.0, numbers * len(groups) / 2))))
        if rows <= most:
            return cls(matrix.X, labels, weight)
        rng = np.random.default_rng(seed)
        taken: list[NDArray] = []
        for k, group in enumerate(groups):
            room = (most - sum(map(len, taken))) // (len(groups) - k)
            taken.append(rng.permutation(group)[:room])
            whole = weight[group].sum()
            weight[taken[-1]] *= whole / max(weight[taken[-1]].sum(), 1e-300)
        chosen = np.sort(np.concatenate(taken))
        return cls(matrix.take(chosen).X, labels[chosen], weight[chosen])

    @property
    def fewest(self) -> int:
        """Examples of the smallest class."""
        return int(np.unique(self.labels, return_counts=True)[1].min())
