"""The mutable state of a search: codes, their margins and their objective."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lns import kernels
from lns.errors import EnergyMismatchError, InvalidInput
from lns.matrix import over_rows

if TYPE_CHECKING:
    from lns.problem import QLossProblem


class State:
    """Codes of all weights and the bias, with the margins and the objective they imply.

    Changing k weights costs O(S k). The data itself stays in the problem; a state adds one vector of
    length S.

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

    def copy(self) -> State:
        """An independent copy (of the vectors, not of the data)."""
        other = object.__new__(State)
        other.problem, other.codes = self.problem, self.codes.copy()
        other.margins, other.loss, other.objective = self.margins.copy(), self.loss, self.objective
        return other

    def apply(self, codes: ArrayLike) -> None:
        """Go to new codes; costs one pass over the column of each changed weight."""
        new = check_codes(self.problem, codes)
        problem = self.problem
        (w_old, b_old), (w_new, b_new) = problem.values(self.codes), problem.values(new)
        changed = np.flatnonzero(new[:-1] != self.codes[:-1])
        vectors = (problem.y, self.margins, problem.cap, problem.share)
        change, shift = (w_new - w_old)[changed], float(b_new - b_old)
        self.loss = problem.matrix.move(changed, change, shift, self.loss, *vectors)
        self.objective = self.loss + problem.lam * float(w_new @ w_new)
        self.codes = new

    def gains(self) -> NDArray[np.float64]:
        """Exact change of the objective by one level down and up of every weight and the bias: (N + 1, 2).

        Moves that would leave the grid have a gain of +inf.
        """
        problem, steps = self.problem, self.problem.steps
        gains = self.loss_gains()
        for k, sign in enumerate((-1.0, 1.0)):
            gains[:-1, k] += problem.lam * sign * steps[:-1] * (2 * self.weights + sign * steps[:-1])
        gains[self.codes == 0, 0] = np.inf
        gains[self.codes == problem.tops, 1] = np.inf
        return gains

    def loss_gains(self) -> NDArray[np.float64]:
        """Change of the mean loss alone by these moves, as if the grid went on: (N + 1, 2)."""
        problem, steps = self.problem, self.problem.steps
        gains = np.empty((len(self.codes), 2))
        arrays = (problem.y, self.margins, problem.cap, problem.share)
        gains[:-1] = problem.matrix.step_gains(steps[:-1], *arrays)
        parts = over_rows(lambda a, z: kernels.bias_gains(steps[-1], *arrays, a, z), problem.num_examples)
        gains[-1] = np.sum(parts, axis=0)
        return gains

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
        w, _ = problem.values(candidates)
        return self.losses(candidates) + problem.lam * np.square(w).sum(axis=1)

    def losses(self, candidates: NDArray[np.integer]) -> NDArray[np.float64]:
        """Mean losses of many codes on the grid.

        Works on the weights in which some candidate differs from this state, over blocks of rows, without a
        margin matrix of full length.
        """
        problem = self.problem
        w, b = problem.values(candidates)
        changed = np.flatnonzero((candidates[:, :-1] != self.codes[:-1]).any(axis=0))
        vectors = (problem.y, self.margins, problem.cap, problem.share)
        change = (w - self.weights)[:, changed]
        part = problem.matrix.candidate_losses(changed, change, b - self.bias, vectors)
        width = len(candidates) * (len(changed) + 4)
        return np.sum(over_rows(part, problem.num_examples, width), axis=0)

    def check(self, tolerance: float = 1e-9) -> None:
        """Raise `EnergyMismatchError` if the objective differs from its recomputation."""
        expected = self.problem.objective(self.weights, self.bias)
        if abs(expected - self.objective) > tolerance * max(1.0, abs(expected)):
            raise EnergyMismatchError(expected, self.objective, "the search state")


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
