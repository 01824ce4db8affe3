"""Which setting counts: the paper's choice by clean test folds, and an honest one by noisy validation folds.

They are never mixed. The paper's protocol takes the setting with the lowest mean error on the clean test
folds, and reports that error: a choice that looks at what it is judged by. The honest protocol sees noisy
labels only, corrects for the flip rates (known, or estimated from the same noisy data), and is judged once,
on the 30 % that had no part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lns.flip_rates import FlipRates, estimate_flip_rates
from lns.paper.folds import Part
from lns.paper.scores import Summary

PAPER, KNOWN, ESTIMATED = "paper", "honest-known", "honest-estimated"
Rank = Callable[[Summary], float]  # the lower the better
RATE_ROWS = 20_000  # that flip rates are estimated from


def by_clean_error(one: Summary) -> float:
    """What the paper's protocol goes by."""
    return one.error


def by_corrected_error(rates: FlipRates) -> Rank:
    """What the honest protocol goes by: the error on noisy validation folds, corrected for the noise."""
    return lambda one: one.corrected(rates)


def by_expected_flips(rates: FlipRates) -> Rank:
    """What recovery goes by: how well flags meet flips, as far as noisy validation folds tell."""
    return lambda one: -one.expected_f1(rates)


def best(tried: Iterable[Summary], rank: Rank, count: int) -> list[Summary]:
    """The best so many; of equals the first tried."""
    return sorted(tried, key=rank)[:count]


def known_rates(noise_percent: float) -> FlipRates:
    """The rates of the noise that was injected: negatives only."""
    return FlipRates(noise_percent / 100, 0.0)


def estimated_rates(part: Part, seed: int) -> FlipRates:
    """The rates as the noisy labels themselves tell."""
    few = part.limited(RATE_ROWS, seed)
    return estimate_flip_rates(few.train.X, few.y, seed=seed)
