"""The full QUBO of the paper's appendix, term by term.

For problems of moderate size only: it has a variable for every target bit of every example and a coupler
between each of them and every weight bit. The engine never builds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dimod
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lns.errors import InvalidInput
from lns.grid import pack_bits, unpack_bits

if TYPE_CHECKING:
    from lns.problem import QLossProblem

MAX_COUPLERS = 20_000_000
BYTES_PER_COUPLER = 33  # measured for dimod's float64 models


@dataclass(frozen=True)
class Groups:
    """Coefficients of the continuous expansion, named as in the appendix.

    F = Σ A_ij w_i w_j + B b² + b Σ C_i w_i + Σ D_is w_i t_s + b Σ E_s t_s + Σ F_s t_s² + Σ G_s t_{s,msb}
        + Σ H_i w_i² + constant

    With sample weights c_s and one q per example only the sums change: 1/S becomes p_s = c_s/S, and
    G_s = -p_s (1 - q_s)².
    """

    A: NDArray[np.float64]
    B: float
    C: NDArray[np.float64]
    D: NDArray[np.float64]
    E: NDArray[np.float64]
    F: NDArray[np.float64]
    G: NDArray[np.float64]
    H: NDArray[np.float64]
    constant: float


def groups(problem: QLossProblem) -> Groups:
    """The appendix's groups A to H for this problem."""
    p, y, n = problem.share, problem.y, problem.num_features
    weights = np.arange(n)
    second, first = problem.matrix.moments(weights, p, p)
    rows = problem.matrix.block(np.arange(problem.num_examples), weights)
    return Groups(
        A=second,
        B=float(p.sum()),
        C=2 * first,
        D=-2 * (rows * (p * y)[:, None]).T,
        E=-2 * p * y,
        F=p,
        G=-p * problem.cap,
        H=np.full(n, problem.lam),
        constant=float(p @ problem.cap),
    )


def num_couplers(problem: QLossProblem) -> int:
    """Couplers of the full QUBO if no feature value is zero."""
    weight_bits = problem.num_features * problem.weight_bits + problem.bias_bits
    d = problem.target_bits
    return weight_bits * (weight_bits - 1) // 2 + problem.num_examples * (weight_bits * d + d * (d - 1) // 2)


def labels(problem: Any) -> list[tuple]:
    """Variable labels in their order, of anything with the sizes of a problem: weights, bias, targets."""
    t = [("t", s, k) for s in range(problem.num_examples) for k in range(problem.target_bits)]
    return weight_labels(problem) + t


def weight_labels(problem: Any) -> list[tuple]:
    """Labels of the weight bits, then of the bias bits."""
    w = [("w", i, k) for i in range(problem.num_features) for k in range(problem.weight_bits)]
    return w + [("b", k) for k in range(problem.bias_bits)]


def full_bqm(problem: QLossProblem) -> dimod.BinaryQuadraticModel:
    """The whole training problem as a dimod model; see `QLossProblem.to_bqm`."""
    count = num_couplers(problem)
    if count > MAX_COUPLERS:
        raise InvalidInput(
            f"The full QUBO would have {count:,} couplers ({count * BYTES_PER_COUPLER / 1e9:,.1f} GB); "
            f"to_bqm() stops at {MAX_COUPLERS:,}. Call lns.solve(problem), which never builds it."
        )
    if (problem.cap > 1e12).any():
        raise InvalidInput(
            "to_bqm() needs a finite q above -1e6. With q = -inf the loss never flags an example."
        )
    group = groups(problem)
    n = problem.num_features
    target_at = n * problem.weight_bits + problem.bias_bits  # where the target bits begin
    d_t = problem.target_bits
    wb_values = np.append(problem.weight_grid.bit_values.ravel(), problem.bias_grid.bit_values.ravel())
    wb_owner = np.append(np.repeat(np.arange(n), problem.weight_bits), np.full(problem.bias_bits, n))
    offsets = np.append(problem.weight_grid.lo, problem.bias_grid.lo)
    t_values, t_lo = problem.target_grid.bit_values[0], problem.target_grid.lo[0]

    # Weights and bias: one symmetric matrix from A, B, C, H.
    square = np.zeros((n + 1, n + 1))
    square[:n, :n] = group.A + np.diag(group.H)
    square[:n, n] = square[n, :n] = group.C / 2
    square[n, n] = group.B
    # Weights and bias against targets: D and E in one matrix.
    cross = np.vstack([group.D, group.E])

    linear = np.zeros(problem.num_variables)
    linear[:target_at] = wb_values * (2 * square @ offsets + cross.sum(axis=1) * t_lo)[wb_owner]
    linear[:target_at] += wb_values**2 * square[wb_owner, wb_owner]
    per_example = offsets @ cross + 2 * t_lo * group.F
    t_linear = t_values * per_example[:, None] + t_values**2 * group.F[:, None]
    t_linear[:, -1] += group.G
    linear[target_at:] = t_linear.ravel()

    i, j = np.triu_indices(target_at, 1)
    weight_part = (i, j, 2 * wb_values[i] * wb_values[j] * square[wb_owner[i], wb_owner[j]])
    mixed = (wb_values[:, None] * cross[wb_owner])[:, :, None] * t_values
    mixed_part = _coordinates(mixed.reshape(target_at, -1), target_at)
    low, high = np.triu_indices(d_t, 1)
    base = target_at + d_t * np.arange(problem.num_examples)[:, None]
    inside = 2 * (t_values[low] * t_values[high]) * group.F[:, None]
    target_part = ((base + low).ravel(), (base + high).ravel(), inside.ravel())
    row, col, value = (
        np.concatenate(parts) for parts in zip(weight_part, mixed_part, target_part, strict=True)
    )
    present = value != 0

    constant = (
        group.constant + offsets @ square @ offsets + t_lo * (offsets @ cross).sum() + t_lo**2 * group.F.sum()
    )
    return dimod.BinaryQuadraticModel.from_numpy_vectors(
        linear,
        (row[present], col[present], value[present]),
        constant,
        "BINARY",
        variable_order=labels(problem),
    )


def _coordinates(values: NDArray, first_column: int) -> tuple[NDArray, NDArray, NDArray]:
    rows, columns = np.indices(values.shape, sparse=False)
    return rows.ravel(), columns.ravel() + first_column, values.ravel()


def decode(problem: QLossProblem, sample: Any) -> tuple[NDArray[np.float64], float]:
    """Weights and bias of a sample; see `QLossProblem.decode`."""
    if isinstance(sample, dimod.SampleSet):
        sample = sample.first.sample
    if not isinstance(sample, Mapping):
        raise InvalidInput(f"sample must be a mapping or a dimod SampleSet. Got {type(sample).__name__}.")
    try:
        w_bits = [
            [sample["w", i, k] for k in range(problem.weight_bits)] for i in range(problem.num_features)
        ]
        b_bits = [sample["b", k] for k in range(problem.bias_bits)]
    except KeyError as missing:
        raise InvalidInput(
            f"sample must have all weight and bias bits of to_bqm(). It lacks {missing.args[0]}."
        ) from None
    # Spin samples (±1) count -1 as 0.
    w_codes, b_code = pack_bits(np.array(w_bits) > 0), pack_bits(np.array(b_bits) > 0)
    return problem.weight_grid.values(w_codes), float(problem.bias_grid.values(b_code)[0])


def encode(problem: QLossProblem, w: ArrayLike, b: float) -> dict[tuple, int]:
    """The sample nearest to (w, b) with its best targets; see `QLossProblem.encode`."""
    state = problem.state(problem.codes(*problem.check_solution(w, b)))
    bits = np.concatenate(
        [
            unpack_bits(state.codes[:-1], problem.weight_bits).ravel(),
            unpack_bits(state.codes[-1:], problem.bias_bits).ravel(),
            unpack_bits(problem.best_target_codes(state.margins), problem.target_bits).ravel(),
        ]
    )
    return dict(zip(labels(problem), bits.tolist(), strict=True))
