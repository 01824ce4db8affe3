"""Combining proposals that were made side by side from one state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lns.grid import unpack_bits
from lns.neighbourhood import fusion

if TYPE_CHECKING:
    from lns.state import State

MAX_FUSED = 6  # proposals whose 2^k combinations are all tried, in one matrix product


def merge(
    state: State, proposals: NDArray[np.int32], fuse: bool = True
) -> tuple[NDArray[np.int32], float, NDArray[np.float64]]:
    """The best combination of proposals by the true objective.

    "Take this proposal's change or not" is one bit each: a QUBO small enough to solve by trying all its
    settings, each judged by the objective itself. The order in which proposals arrive changes nothing: they
    are sorted first.

    Returns
    -------
    The best codes other than the current ones, their objective, and the objective of each proposal alone.
    """
    alone = np.full(len(proposals), state.objective)
    same: dict[bytes, list[int]] = {}  # a proposal made twice counts once
    for k in np.lexsort(proposals.T[::-1]):
        if (proposals[k] != state.codes).any():
            same.setdefault(proposals[k].tobytes(), []).append(int(k))
    numbers = list(same.values())
    if not numbers:
        return state.codes, state.objective, alone
    different = proposals[[equal[0] for equal in numbers]]
    if len(different) > MAX_FUSED or not fuse:  # each is judged on its own, and the best ones are kept
        values = state.evaluate(different)
        _tell(alone, numbers, values)
        best = np.argsort(values, kind="stable")[: MAX_FUSED if fuse else 1]
        if not fuse:
            return different[best[0]], float(values[best[0]]), alone
        different, numbers = different[best], [numbers[k] for k in best]
    settings = unpack_bits(np.arange(1, 2 ** len(different)), len(different))
    combined = fusion(state.codes, different).codes(state.codes, settings, state.problem.tops)
    values = state.evaluate(combined)
    _tell(alone, numbers, values[2 ** np.arange(len(different)) - 1])  # the settings of one bit
    values[(combined == state.codes).all(axis=1)] = np.inf
    first = int(np.argmin(values))
    return combined[first], float(values[first]), alone


def _tell(alone: NDArray[np.float64], numbers: list[list[int]], values: NDArray[np.float64]) -> None:
    """Write the value of each different proposal to all places where it was made."""
    for equal, value in zip(numbers, values, strict=True):
        alone[equal] = value
