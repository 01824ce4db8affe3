"""From the proposals of a round, which were made side by side from one state, to one candidate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lns.errors import EnergyMismatchError
from lns.grid import unique_codes, unpack_bits
from lns.start import land

if TYPE_CHECKING:
    from lns.rounds import Proposal
    from lns.state import State

MAX_COMBINED = 6  # proposals whose 2^k combinations are all tried, in one matrix product


def merge(
    curr: State, proposals: Sequence[Proposal], deadline: float = math.inf
) -> tuple[State, NDArray[np.float64]]:
    """The best state that comes of the proposals, and the objective of each of them.

    The targets of all examples follow from the weights, so there is nothing else to merge. A proposal off the
    grid gets levels of its own.
    """
    problem = curr.problem
    if all(one.point is None for one in proposals):
        codes, value, alone = combine(curr, np.stack([one.codes for one in proposals]))
        state = curr if codes is curr.codes else problem.state(codes)
        if abs(state.objective - value) > 1e-9 * max(1.0, abs(value)):
            raise EnergyMismatchError(state.objective, value, "the merge")
        return state, alone
    alone = np.array([
        curr.objective if one.point is None else problem.objective(one.point[:-1], float(one.point[-1]))
        for one in proposals
    ])  # fmt: skip
    point = proposals[int(np.argmin(alone))].point
    return curr if point is None else land(problem, point[:-1], float(point[-1]), deadline), alone


def combine(
    state: State, proposals: NDArray[np.int32]
) -> tuple[NDArray[np.int32], float, NDArray[np.float64]]:
    """The best combination of proposals on the grid by the true objective.

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
    changes = settings.astype(np.int32) @ (different[best] - state.codes)
    combined = np.clip(state.codes + changes, 0, state.problem.tops)
    values = state.evaluate(combined)
    values[(combined == state.codes).all(axis=1)] = np.inf
    first = int(np.argmin(values))
    return combined[first], float(values[first]), alone
