"""Where a search stands: codes, their margins and their objective."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lns.errors import InvalidInput
from lns.grid import Grid

if TYPE_CHECKING:
    from lns.problem import QLossProblem


class State:
    """Codes of all weights and the bias, with the margins and the objective they imply.

    The data itself stays in the problem; a state adds one vector of length S.

    Parameters
    ----------
    problem
        The problem searched.
    codes
        N codes of the weights and, last, the code of the bias.
    """

    def __init__(self, problem: QLossProblem, codes: ArrayLike) -> None:
        self.problem = problem
        self.codes = check_codes(problem, codes)
        self.refresh()

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights w."""
        return self.problem.weight_grid.values(self.codes[:-1])

    @property
    def bias(self) -> float:
        """Bias b."""
        return float(self.problem.bias_grid.values(self.codes[-1:])[0])

    def refresh(self) -> None:
        """Recompute margins and objective from the codes, without any rounding history."""
        w = self.weights
        self.margins = self.problem.matrix.margins(w, self.bias, self.problem.y)
        self.loss = self.problem.mean_loss(self.margins)
        self.objective = self.loss + self.problem.lam * float(w @ w)

    @property
    def point(self) -> NDArray[np.float64]:
        """Weights and, last, the bias."""
        return np.append(self.weights, self.bias)

    def evaluate(self, candidates: NDArray[np.integer]) -> NDArray[np.float64]:
        """Objectives of many codes at once, shape (K, N + 1) -> (K,)."""
        problem = self.problem
        candidates = np.asarray(candidates)
        if (
            candidates.ndim != 2
            or candidates.shape[1] != len(self.codes)
            or candidates.dtype.kind not in "iu"
        ):
            raise InvalidInput(
                f"candidates must be integer codes of shape (K, {len(self.codes)}). Got {candidates.shape}."
            )
        if (candidates < 0).any() or (candidates > problem.tops).any():
            raise InvalidInput("candidates must lie on the grid.")
        changed, change, _ = self.changes(candidates)
        w = self.weights
        penalty = float(w @ w) + (change * (2.0 * w[changed] + change)).sum(axis=1)
        return self.losses(candidates) + problem.lam * penalty

    def losses(self, candidates: NDArray[np.integer]) -> NDArray[np.float64]:
        """Mean losses of many codes on the grid."""
        return self.problem.losses_near(self.margins, *self.changes(candidates))

    def changes(
        self, candidates: NDArray[np.integer]
    ) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
        """Weights in which some candidate differs from this state, by how much each does, and the biases."""
        weights, bias = self.problem.grids
        changed = np.flatnonzero((candidates[:, :-1] != self.codes[:-1]).any(axis=0))
        some = Grid(weights.lo[changed], weights.hi[changed], weights.bits)
        change = some.values(candidates[:, changed]) - some.values(self.codes[changed])
        return changed, change, bias.values(candidates[:, -1:])[:, 0] - self.bias


def check_codes(problem: QLossProblem, codes: ArrayLike) -> NDArray[np.int32]:
    """Codes as int32 on the grids of the problem, bias last; or an error that names the first wrong one."""
    size = problem.num_features + 1
    try:
        array = np.asarray(codes)
    except ValueError:
        raise InvalidInput(f"codes must be {size} integers, bias last. Got a nested list.") from None
    if array.shape != (size,) or array.dtype.kind not in "iu":
        raise InvalidInput(
            f"codes must be {size} integers, bias last. Got shape {array.shape}, dtype {array.dtype}."
        )
    bad = (array < 0) | (array > problem.tops)
    if bad.any():
        at = int(np.argmax(bad))
        raise InvalidInput(f"codes[{at}] must lie in [0, {problem.tops[at]}]. Got {array[at]}.")
    return array.astype(np.int32)
