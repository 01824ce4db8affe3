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
    order = np.lexsort(proposals.T[::-1])
    alone = state.evaluate(proposals)
    changed = [k for k in order if (proposals[k] != state.codes).any()]
    # The same proposal twice counts once; the best ones are kept if there are too many.
    unique = {proposals[k].tobytes(): k for k in changed}
    kept = sorted(unique.values(), key=lambda k: (alone[k], proposals[k].tobytes()))[:MAX_FUSED]
    if not kept:
        return state.codes, state.objective, alone
    if len(kept) == 1 or not fuse:
        return proposals[kept[0]], float(alone[kept[0]]), alone
    settings = unpack_bits(np.arange(1, 2 ** len(kept)), len(kept))
    combined = fusion(state.codes, proposals[kept]).codes(state.codes, settings, state.problem.tops)
    values = state.evaluate(combined)
    values[(combined == state.codes).all(axis=1)] = np.inf
    best = int(np.argmin(values))
    return combined[best], float(values[best]), alone
