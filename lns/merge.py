"""Combining proposals that were made side by side from one state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lns.grid import unique_codes, unpack_bits
from lns.neighbourhood import fusion

if TYPE_CHECKING:
    from lns.state import State

MAX_COMBINED = 6  # proposals whose 2^k combinations are all tried, in one matrix product


def merge(state: State, proposals: NDArray[np.int32]) -> tuple[NDArray[np.int32], float, NDArray[np.float64]]:
    """The best combination of proposals by the true objective.

    "Take this proposal's change or not" is one bit each: a QUBO small enough to solve by trying all its
    settings, each judged by the objective itself. The order in which proposals arrive changes nothing: they
    are sorted first.

    Returns
    -------
    The best codes other than the current ones, their objective, and the objective of each proposal alone.
    """
    different, place = unique_codes(proposals)
    values = state.evaluate(different)
    alone = values[place]
    moved = np.flatnonzero((different != state.codes).any(axis=1))
    if not len(moved):
        return state.codes, state.objective, alone
    best = moved[np.argsort(values[moved], kind="stable")][:MAX_COMBINED]
    if len(best) == 1:
        return different[best[0]], float(values[best[0]]), alone
    settings = unpack_bits(np.arange(1, 2 ** len(best)), len(best))
    combined = fusion(state.codes, different[best]).codes(state.codes, settings, state.problem.tops)
    values = state.evaluate(combined)
    values[(combined == state.codes).all(axis=1)] = np.inf
    first = int(np.argmin(values))
    return combined[first], float(values[first]), alone
