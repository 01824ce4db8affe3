"""Which setting counts: the paper's choice by clean test folds, and an honest one by noisy validation folds.

They are never mixed. The paper's protocol takes the setting with the lowest mean error on the clean test
folds, and reports that error: a choice that looks at what it is judged by. The honest protocol sees noisy
labels only, corrects for the flip rates (known, or estimated from the same noisy data), and is judged once,
on the 30 % that had no part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lns.flip_rates import FlipRates, estimate_flip_rates
from lns.paper.folds import Part
from lns.paper.scores import Summary

PAPER, KNOWN, ESTIMATED = "paper", "honest-known", "honest-estimated"
RATE_ROWS = 20_000  # that flip rates are estimated from


def shortlist(
    tried: Sequence[Summary], count: int, belongs: Callable[[Summary], bool] = lambda one: True
) -> list[Summary]:
    """The best by clean test error; of equals the first tried."""
    return sorted((one for one in tried if belongs(one)), key=lambda one: one.error)[:count]


def honest_choice(tried: Sequence[Summary], rates: FlipRates) -> Summary:
    """The best by noise-corrected error on noisy validation folds; of equals the first tried."""
    return min(tried, key=lambda one: one.corrected(rates))


def choice_for_recovery(tried: Sequence[Summary], rates: FlipRates) -> Summary:
    """The setting to find wrong labels with, chosen on noisy labels; of equals the first tried."""
    return max(tried, key=lambda one: one.expected_f1(rates))


def known_rates(noise_percent: float) -> FlipRates:
    """The rates of the noise that was injected: negatives only."""
    return FlipRates(noise_percent / 100, 0.0)


def estimated_rates(part: Part, seed: int) -> FlipRates:
    """The rates as the noisy labels themselves tell."""
    few = part.limited(RATE_ROWS, seed)
    return estimate_flip_rates(few.train.X, few.y, seed=seed)
