"""From a model that `QLossProblem.to_bqm` made back to a problem with the same energies.

The labels give the sizes, the coefficients the rest. With steps τ of the targets and σ_i of the weights,
shares p_s of the examples and z_si = y_s x_si σ_i, the margin that one step of weight i adds, the model holds

    target with itself      2 τ² 2^(k+l) p_s
    bias with target       -2 σ_b τ 2^(k+l) p_s y_s
    weight with target     -2 τ 2^(k+l) p_s z_si
    weight with itself      2 · 2^(k+l) (Σ_s p_s z_si² + λ σ_i²)

and in the linear terms the margins at the lowest codes, the heights (1 - q_s)², and λ σ_i lo_i. The shares
add up to 1, so τ is known, and then all others. Only the scale of each feature is free: σ_i x_si and λ σ_i²
matter, σ_i alone does not. The problem found has the energies of the model, perhaps not its units.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import dimod
import numpy as np
from numpy.typing import NDArray

from lns.errors import InvalidInput
from lns.full_energy import FullEnergy
from lns.grid import pack_bits, target_grid
from lns.problem import QLossProblem
from lns.qubo import labels

PROBES = 16  # random samples on which model and problem have to agree
TOLERANCE = 1e-8  # relative to the size of the energies
NOISE = 1e-11  # what is smaller than this, relative to what it was subtracted from, is zero


class NotRecognised(InvalidInput):
    """A model that `QLossProblem.to_bqm` cannot have made, or that does not tell its problem."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"LNSSampler takes models made by QLossProblem.to_bqm(). In this one {reason}. For other models "
            "use a general sampler, such as dwave.samplers.TabuSampler."
        )


@dataclass(frozen=True)
class Shape:
    """Sizes of a problem, as its labels tell them."""

    num_features: int
    weight_bits: int
    bias_bits: int
    num_examples: int
    target_bits: int

    @classmethod
    def of(cls, variables: Iterable[Hashable]) -> Shape:
        """The sizes, or an error if these are not all the labels of a problem."""
        largest: dict[Any, tuple[int, ...]] = {}
        given = set(variables)
        for label in given:
            if not (
                isinstance(label, tuple) and len(label) > 1 and all(isinstance(n, int) for n in label[1:])
            ):
                raise NotRecognised(f"the variable {label!r} is no weight, bias or target bit")
            kind, sizes = label[0], largest.get(label[0], (0,) * (len(label) - 1))
            if len(sizes) != len(label) - 1:
                raise NotRecognised(f"the variable {label!r} is no weight, bias or target bit")
            largest[kind] = tuple(max(a, b + 1) for a, b in zip(sizes, label[1:], strict=True))
        if {kind: len(sizes) for kind, sizes in largest.items()} != {"w": 2, "b": 1, "t": 2}:
            raise NotRecognised("there are no weight, bias and target bits")
        shape = cls(*largest["w"], *largest["b"], *largest["t"])
        if set(labels(shape)) != given:
            raise NotRecognised("bits of some weight, bias or target are missing")
        return shape


def recognise(bqm: dimod.BinaryQuadraticModel) -> QLossProblem:
    """The problem of a binary model; raises `NotRecognised` for a model of anything else."""
    shape = Shape.of(bqm.variables)
    if shape.weight_bits < 2 or shape.target_bits < 2:
        raise NotRecognised(
            "weights or targets have one bit, which does not tell the problem (call lns.solve(problem))"
        )
    linear, (row, col, value), _ = bqm.to_numpy_vectors(variable_order=labels(shape))
    with np.errstate(all="ignore"):
        try:
            problem = _rebuild(shape, linear, np.minimum(row, col), np.maximum(row, col), value)
        except InvalidInput as wrong:
            raise NotRecognised("the coefficients are not those of a q-loss problem") from wrong
    _compare(problem, bqm)
    return problem


def _rebuild(shape: Shape, linear: NDArray, row: NDArray, col: NDArray, value: NDArray) -> QLossProblem:
    n, d_w, d_b, count, d_t = (
        shape.num_features, shape.weight_bits, shape.bias_bits, shape.num_examples, shape.target_bits
    )  # fmt: skip
    bias_at, target_at = n * d_w, n * d_w + d_b

    def couplers(first: NDArray, second: NDArray) -> NDArray:
        """Couplers between the variables of `first` and `second`, shape (len(first), len(second))."""
        where = np.full((2, len(linear)), -1)
        where[0, first], where[1, second] = np.arange(len(first)), np.arange(len(second))
        i, j = where[0, row], where[1, col]
        found = np.zeros((len(first), len(second)))
        kept = (i >= 0) & (j >= 0)
        found[i[kept], j[kept]] = value[kept]
        return found

    # Bits 0 and 1 of every weight and target, bit 0 of the bias: the others are the same but for powers of 2.
    weights, targets = np.arange(0, bias_at, d_w), target_at + np.arange(0, count * d_t, d_t)
    own = np.zeros(len(linear))
    beside = col == row + 1
    own[row[beside]] = value[beside]
    square = own[targets] / 4  # τ² p_s
    tau = np.sqrt(square.sum())
    share = square / square.sum()
    known = share > 0  # an example of weight zero leaves no trace, and matters to no energy
    scale = np.where(known, tau * share, 1.0)
    bias_steps = couplers(np.array([bias_at]), targets)[0] / -2 / scale
    y = np.where(bias_steps < 0, -1.0, 1.0)
    bias_step = np.abs(bias_steps).max()
    z = couplers(weights, targets).T / -2 / scale[:, None]

    lowest = target_grid(d_t, tau * (2**d_t - 1)).lo[0]
    first, last = linear[targets], linear[targets + d_t - 1]
    margins = np.where(known, lowest - (first / scale - tau) / 2, 0.0)  # with all codes at zero
    top = 2.0 ** (d_t - 1)
    height = (2 * tau * top * (lowest - margins) + (tau * top) ** 2) - last / np.where(known, share, 1.0)
    q = np.minimum(1 - np.sqrt(np.where(known, height, 1.0)), 0.0)

    bend = own[weights] / 4  # Σ p z² + λ σ_i²
    penalty = bend - np.square(z).T @ share
    penalty = np.where(penalty > NOISE * np.abs(bend), penalty, 0.0)  # λ σ_i²
    pull = (linear[weights] - bend) / 2 - z.T @ (share * (margins - lowest))  # λ σ_i lo_i
    # Lowest levels in steps, lo_i / σ_i, and lo of the bias: those that explain both margins and pull.
    root = np.sqrt(penalty)
    left = np.vstack([np.sqrt(share)[:, None] * np.column_stack([z, y]), np.eye(n, n + 1) * root[:, None]])
    right = np.append(np.sqrt(share) * margins, np.divide(pull, root, out=np.zeros(n), where=root > 0))
    if not (np.isfinite(left).all() and np.isfinite(right).all() and np.isfinite(q).all()):
        raise NotRecognised("the coefficients are not those of a q-loss problem")
    lows = np.linalg.lstsq(left, right)[0]
    lam = penalty.max()
    step = np.maximum(np.sqrt(penalty / lam), 1e-6) if lam > 0 else np.ones(n)
    return QLossProblem(
        y[:, None] * z / step,
        y,
        q=q,
        lam=lam,
        sample_weight=share,
        weight_bits=d_w,
        weight_range=(lows[:-1] * step, (lows[:-1] + 2**d_w - 1) * step),
        bias_bits=d_b,
        bias_range=(lows[-1], lows[-1] + bias_step * (2**d_b - 1)),
        target_bits=d_t,
        target_span=tau * (2**d_t - 1),
    )


def _compare(problem: QLossProblem, bqm: dimod.BinaryQuadraticModel) -> None:
    """Refuse a problem whose energies are not those of the model."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, size=(PROBES, len(bqm.variables)), dtype=np.int8)
    expected, got = bqm.energies((bits, labels(problem))), energies(problem, bits)
    if not np.allclose(got, expected, rtol=0, atol=TOLERANCE * max(1.0, np.abs(expected).max())):
        raise NotRecognised("the energies are not those of a q-loss problem")


def energies(problem: QLossProblem, bits: NDArray[np.int8]) -> NDArray[np.float64]:
    """Energies of samples of `to_bqm` in the order of its labels, from the definition of the problem."""
    ends = np.cumsum([problem.num_features * problem.weight_bits, problem.bias_bits])
    depths = (problem.weight_bits, problem.bias_bits, problem.target_bits)
    parts = zip(np.split(bits, ends, axis=1), depths, strict=True)
    weights, bias, targets = (pack_bits(part.reshape(len(bits), -1, depth)) for part, depth in parts)
    energy = FullEnergy(problem)
    return np.array([energy(*row) for row in zip(np.hstack([weights, bias]), targets, strict=True)])
