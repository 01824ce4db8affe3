"""From a neighbourhood and a state to a sub-QUBO.

The batch's examples have their target bits, exactly as in the full QUBO. Every other example enters as a
quadratic function of its margin, the background:

``pinned``     its target stays where it is: p_s (m_s - t_s)². The literal restriction of the full QUBO. Each
               fixed target holds its margin in place, so little moves once S is large against the batch.
``curvature``  slope and curvature of its collapsed loss, averaged over some width of margins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import dimod
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lns.neighbourhood import Neighbourhood
    from lns.problem import QLossProblem


WIDTH = 0.5  # of the margins over which the curvature of a model is averaged, to either side


@dataclass(frozen=True)
class SubQubo:
    """Arrays of a sub-QUBO: weight bits first, then the target bits of each batch example.

    ``energy = linear·x + x·quadratic·x / 2 + offset`` with a symmetric `quadratic` of zero diagonal: the
    objective itself, as far as the background knows it.
    """

    linear: NDArray[np.float64]
    quadratic: NDArray[np.float64]
    offset: float
    num_weight_bits: int

    @classmethod
    def from_hessian(cls, linear: NDArray, hessian: NDArray, offset: float, num_weight_bits: int) -> SubQubo:
        """Fold the diagonal into the linear part: x² = x for bits. Sums may be symmetric but for rounding."""
        quadratic = 0.5 * (hessian + hessian.T)
        np.fill_diagonal(quadratic, 0.0)
        return cls(linear + 0.5 * np.diag(hessian), quadratic, float(offset), num_weight_bits)

    @property
    def num_variables(self) -> int:
        """Weight bits and target bits."""
        return len(self.linear)

    @property
    def num_couplers(self) -> int:
        """Non-zero couplers."""
        return int(np.count_nonzero(self.quadratic)) // 2

    def energies(self, samples: NDArray[np.integer]) -> NDArray[np.float64]:
        """Energies of samples, (K, n) -> (K,)."""
        x = np.asarray(samples, dtype=np.float64)
        return x @ self.linear + 0.5 * np.sum((x @ self.quadratic) * x, axis=1) + self.offset

    def to_bqm(self) -> dimod.BinaryQuadraticModel:
        """As a dimod model over variables 0 ... n - 1."""
        row, col = np.nonzero(np.triu(self.quadratic))
        couplers = (row, col, self.quadratic[row, col])
        return dimod.BinaryQuadraticModel.from_numpy_vectors(self.linear, couplers, self.offset, "BINARY")


@dataclass(frozen=True)
class Background:
    """Every example as value + slope δ + bend δ²/2 in the change δ of its margin, shares included."""

    value: NDArray[np.float64]
    slope: NDArray[np.float64]
    bend: NDArray[np.float64]


def pinned(problem: QLossProblem, m: NDArray, target_codes: NDArray[np.integer] | None = None) -> Background:
    """Targets fixed (by default at their best levels): p_s [(m_s - t_s)² + (1 - q_s)² (1 - msb_s)]."""
    if target_codes is None:
        target_codes = problem.best_target_codes(m)
    p, gap = problem.share, m - problem.target_grid.values(target_codes[:, None])[:, 0]
    below = target_codes < 2 ** (problem.target_bits - 1)
    return Background(p * (gap**2 + problem.cap * below), 2 * p * gap, 2 * p)


def curvature(problem: QLossProblem, m: NDArray, width: float = 0.0, shift: float = 0.0) -> Background:
    """The collapsed loss to second order, its derivatives averaged over margins up to `width` away.

    With u = 1 - m the loss is u² for 0 < u < 1 - q and constant outside; q may be lowered by a `shift`. The
    average of a derivative over an interval is the difference of what it is the derivative of, at its ends.
    Around m = q the averaged curvature is negative: the model then knows that giving an example up can pay.
    Width 0 is exact wherever no case changes.
    """
    p, u, top = problem.share, 1.0 - m, 1.0 - problem.q + shift
    inside = np.clip(u, 0.0, top)
    value = p * np.square(inside)
    if width == 0.0:
        between = (u > 0) & (u < top)
        return Background(value, np.where(between, -2.0 * p * u, 0.0), np.where(between, 2.0 * p, 0.0))
    ends = [u - width, u + width]
    low, high = (np.clip(end, 0.0, top) for end in ends)
    slope_low, slope_high = (np.where((end > 0) & (end < top), 2.0 * end, 0.0) for end in ends)
    share = 0.5 * p / width
    return Background(value, -share * (high + low) * (high - low), share * (slope_high - slope_low))


def build(
    problem: QLossProblem,
    levels: NDArray,
    margins: NDArray[np.float64],
    neighbourhood: Neighbourhood,
    batch: NDArray[np.integer],
    background: Background,
) -> SubQubo:
    """The sub-QUBO of a neighbourhood: target bits for the rows in `batch`, the background for all others.

    `levels` (codes that need not be whole) and the `margins` there are the point around which the background
    is known.
    """
    batch = np.asarray(batch, dtype=np.intp)
    outside = np.ones(problem.num_examples)
    outside[batch] = 0.0
    chosen, (w, _) = neighbourhood.weights, problem.values(levels)
    hessian, gradient = problem.matrix.moments(
        chosen, background.bend * outside, background.slope * outside * problem.y
    )
    penalty = np.where(chosen < problem.num_features, problem.lam, 0.0)  # the bias is free
    hessian[np.diag_indices_from(hessian)] += 2 * penalty
    gradient += 2 * penalty * np.append(w, 0.0)[chosen]
    steps = problem.steps[chosen]
    gradient, hessian = gradient * steps, hessian * np.outer(steps, steps)
    offset = background.value @ outside + problem.lam * (w @ w)

    # Weights are moved from `levels` to `low`, and from there by their bits.
    base, owner = neighbourhood.low - levels[chosen], neighbourhood.owner
    linear = (gradient + hessian @ base)[owner] * neighbourhood.size
    quadratic = hessian[np.ix_(owner, owner)] * np.outer(neighbourhood.size, neighbourhood.size)
    offset += gradient @ base + 0.5 * base @ hessian @ base
    if not len(batch):
        return SubQubo.from_hessian(linear, quadratic, float(offset), len(linear))

    p, cap = problem.share[batch], problem.cap[batch]
    per_level = problem.matrix.block(batch, chosen) * problem.y[batch, None] * steps
    per_bit = per_level[:, owner] * neighbourhood.size
    # p_s [(gap_s + per_bit_s·x - τ·z_s)² + (1 - q_s)² (1 - msb_s)], gap_s to the lowest target level.
    tau = problem.target_grid.bit_values[0]
    gap = margins[batch] + per_level @ base - problem.target_grid.lo[0]
    n, count, d = len(linear), len(batch), len(tau)
    target_linear = -2 * (p * gap)[:, None] * tau
    target_linear[:, -1] -= p * cap
    full = np.zeros((n + count * d,) * 2)
    full[:n, :n] = quadratic + 2 * per_bit.T @ (per_bit * p[:, None])
    full[:n, n:] = ((-2 * p[:, None] * per_bit).T[:, :, None] * tau).reshape(n, -1)
    full[n:, :n] = full[:n, n:].T
    own = full[n:, n:].reshape(count, d, count, d)
    own[np.arange(count), :, np.arange(count), :] = 2 * p[:, None, None] * np.outer(tau, tau)
    linear = np.concatenate([linear + 2 * (p * gap) @ per_bit, target_linear.ravel()])
    return SubQubo.from_hessian(linear, full, offset + p @ (gap**2 + cap), n)
