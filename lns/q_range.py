"""Which q to try: the paper's section "Bounding q"."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lns.errors import InvalidInput


def effective_error(error: float, noise: float = 0.0, negative_share: float = 1.0) -> float:
    """β_eff = β - 2βν + ν: the error to expect once labels have been flipped.

    Only negatives are flipped, so ν is the flip rate times the share of negatives. The subtraction accounts
    for examples that were wrong before and become right.

    Parameters
    ----------
    error
        Estimate β of the error on the data as given, in [0, 0.5).
    noise
        Probability that the label of a negative example is flipped, in [0, 1).
    negative_share
        P(y = -1), in [0, 1].
    """
    for name, value, high in (("error", error, 0.5), ("noise", noise, 1.0)):
        if not 0 <= value < high:
            raise InvalidInput(f"{name} must lie in [0, {high}). Got {value}.")
    if not 0 <= negative_share <= 1:
        raise InvalidInput(f"negative_share must lie in [0, 1]. Got {negative_share}.")
    nu = noise * negative_share
    return error - 2 * error * nu + nu


def q_lower_bound(
    error: float, noise: float = 0.0, negative_share: float = 1.0, least: float = -1000.0
) -> float:
    """The lower end 1 - 1/√β_eff of the useful range of q.

    If all of the β_eff wrong examples are to be flagged, the risk is at least β_eff (1 - q)², and that must
    stay below 1, the risk of all-zero weights. `least` replaces -∞ when no error is expected at all.

    Examples
    --------
    >>> float(round(q_lower_bound(error=0.2196, noise=0.1, negative_share=0.636283), 4))
    -0.9792
    """
    effective = effective_error(error, noise, negative_share)
    if effective == 0:
        return least
    return max(least, 1.0 - 1.0 / np.sqrt(effective))


def q_candidates(
    error: float, noise: float = 0.0, negative_share: float = 1.0, count: int = 10
) -> NDArray[np.float64]:
    """`count` equally spaced values from the lower bound to 0, both included."""
    if count < 2:
        raise InvalidInput(f"count must be at least 2. Got {count}.")
    return np.linspace(q_lower_bound(error, noise, negative_share), 0.0, count)
