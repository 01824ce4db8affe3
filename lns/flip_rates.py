"""How many labels are wrong in each class, and the error that a classifier would have without them.

Both assume noise that depends on the class only: of the examples that belong to class -1 a share ρ₋ carries
the label +1, of those that belong to class +1 a share ρ₊ carries the label -1, whatever their features, and
ρ₋ + ρ₊ < 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from lns.cross_fit import NEVER, CrossFit
from lns.errors import InvalidInput

TAIL = 0.1  # share of a class that counts as its surest examples
LEAST_TAIL = 40  # examples; fewer would leave the rate to chance
MOST_TOTAL = 0.9  # estimates that add up to more are scaled down: the correction divides by 1 - ρ₋ - ρ₊
PASSES = 3
RATE_LAM = 1e-3


class FlipRates(NamedTuple):
    """Share of the true negatives labelled +1, and of the true positives labelled -1."""

    negative: float
    positive: float

    @property
    def remaining(self) -> float:
        """1 - ρ₋ - ρ₊: how much of the difference between the classes the noise has left."""
        return 1.0 - self.negative - self.positive

    def clean_share(self, labelled: float) -> float:
        """Share of true positives, given the share of examples labelled +1."""
        return min(max((labelled - self.negative) / self.remaining, 0.0), 1.0)


def corrected_error(
    wrong_negative: float,
    wrong_positive: float,
    negative_share: float,
    rates: FlipRates | tuple[float, float],
) -> float:
    """The error on clean labels, estimated from errors on noisy ones.

    The 0/1 loss ℓ of an example labelled y is replaced by

        [(1 - ρ₋ᵧ) ℓ(y) - ρᵧ ℓ(-y)] / (1 - ρ₋ - ρ₊),

    whose mean over the noise is the loss with the true label (Natarajan et al. 2013, lemma 1). With
    ℓ(-y) = 1 - ℓ(y) only the shares of wrong answers in each class are needed. On few examples the estimate
    can be negative; only differences between classifiers matter for choosing.

    Parameters
    ----------
    wrong_negative, wrong_positive
        Of the examples *labelled* -1 (+1), the share that the classifier puts on the other side.
    negative_share
        Share of the examples that are labelled -1.
    rates
        ρ₋ and ρ₊ of the noise, as known or as estimated by `estimate_flip_rates`.

    References
    ----------
    N. Natarajan, I. S. Dhillon, P. Ravikumar, A. Tewari: Learning with noisy labels. NIPS 2013.

    Examples
    --------
    A perfect classifier, when a fifth of 500 negatives among 1,000 examples is labelled +1: the 100 flips are
    the wrong sixth of those labelled +1.

    >>> round(corrected_error(0.0, 1 / 6, 0.4, FlipRates(0.2, 0.0)), 12)
    0.0
    """
    rates = check_rates(rates)
    for name, value in (
        ("wrong_negative", wrong_negative),
        ("wrong_positive", wrong_positive),
        ("negative_share", negative_share),
    ):
        if not 0 <= value <= 1:
            raise InvalidInput(f"{name} must lie in [0, 1]. Got {value}.")
    negative = (1 - rates.positive) * wrong_negative - rates.negative * (1 - wrong_negative)
    positive = (1 - rates.negative) * wrong_positive - rates.positive * (1 - wrong_positive)
    return (negative_share * negative + (1 - negative_share) * positive) / rates.remaining


def check_rates(rates: Any) -> FlipRates:
    """Two rates in [0, 1) that add up to less than 1."""
    try:
        negative, positive = (float(rate) for rate in rates)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"Flip rates must be two numbers, of class -1 and of class +1. Got {rates!r}."
        ) from None
    if not (0 <= negative < 1 and 0 <= positive < 1 and negative + positive < 1):
        raise InvalidInput(
            f"Flip rates must lie in [0, 1) and add up to less than 1. Got {negative} and {positive}."
        )
    return FlipRates(negative, positive)


def rates_from_scores(scores: NDArray, y: NDArray, share: NDArray[np.float64]) -> FlipRates:
    """Flip rates from scores of examples by a model that has not seen their labels.

    The lowest scores belong to examples that are negative beyond doubt, whatever their labels say: the share
    labelled +1 among them is ρ₋, and likewise at the other end. "The lowest" are a tenth of the true
    negatives, whose number follows from the rates, so this is repeated a few times; but at least as
    much as 40 examples labelled so weigh, or half of them.

    Where even the surest examples of a class are not sure (classes that overlap everywhere), their true
    error is counted as noise: the estimate is then too high.
    """
    rates, share = FlipRates(0.0, 0.0), share / share.sum()
    labelled = float(share[y > 0].sum())
    for _ in range(PASSES):
        positive = rates.clean_share(labelled)
        # Of the class as labelled, if that is less: an estimate that is too high must not feed itself.
        tails = TAIL * min(1.0 - positive, 1.0 - labelled), TAIL * min(positive, labelled)
        found = [
            _tail_share(scores * side, y == side, share, tail)
            for side, tail in zip((-1, 1), tails, strict=True)
        ]
        shrink = min(1.0, MOST_TOTAL / max(sum(found), 1e-9))
        rates = FlipRates(found[0] * shrink, found[1] * shrink)
    return rates


def _tail_share(scores: NDArray, right: NDArray[np.bool_], share: NDArray, tail: float) -> float:
    """Weighted share of labels of the other class among the highest scores, equal scores together."""
    order = np.argsort(-scores, kind="stable")
    least = float(share[right].sum()) * min(LEAST_TAIL / right.sum(), 0.5)
    last = min(int(np.searchsorted(np.cumsum(share[order]), max(tail, least))), len(order) - 1)
    top = scores >= scores[order[last]]
    return float(share[top & ~right].sum() / share[top].sum())


def estimate_flip_rates(
    X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, *, folds: int = 4, seed: int = 0
) -> FlipRates:
    """Estimate which share of the labels of each class is wrong.

    A convex linear model is trained on all folds but one and scores the examples of that one; see
    `rates_from_scores` for what follows. The estimate is good when each class has examples that are far from
    the boundary, and when the noise depends on the class only. It is too high for a class without sure
    examples, and uncertain by about ±0.1 for a class of one or two hundred examples.

    Parameters
    ----------
    X, y, sample_weight
        As for `lns.QLossProblem`; columns scaled to [0, 1].
    folds, seed
        Number of parts and the seed that draws them.

    Returns
    -------
    ρ₋ (share of the true negatives that are labelled +1) and ρ₊.

    Examples
    --------
    >>> import lns
    >>> data = lns.load_dataset("mease-wyner")
    >>> y, _ = lns.flip_labels(data.y, rate=0.2, flip_class=-1)
    >>> rates = estimate_flip_rates(data.X, y)
    >>> abs(rates.negative - 0.2) < 0.05, rates.positive < 0.02
    (True, True)
    """
    fit = CrossFit(X, y, sample_weight, folds, seed)
    with threadpool_limits(1, user_api="blas"):  # thousands of small calls: threads would wait for each other
        scores = fit.scores(NEVER, RATE_LAM)
    return rates_from_scores(scores, fit.y, fit.share)
