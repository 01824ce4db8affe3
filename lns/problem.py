"""The q-loss training problem of the paper as one exact object."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lns import kernels
from lns.errors import InvalidInput
from lns.grid import Grid, check_bits, real_array, target_grid
from lns.matrix import Matrix, as_matrix, over_rows

if TYPE_CHECKING:
    import dimod

    from lns.state import State

NEVER = 1e100  # a margin that is never reached: what is infinite would not stay finite in sums
Range = str | tuple[ArrayLike, ArrayLike]
# Attributes that are not about examples; the last three are there once asked for.
PARAMETERS = ("lam", "weight_bits", "bias_bits", "target_bits", "target_span")
_MODEL = (
    *PARAMETERS, "target_grid", "_weight_grid", "_bias_grid", "_warm_start", "grids", "steps", "tops",
)  # fmt: skip


class QLossProblem:
    """Training a linear classifier with q-loss on low-precision weights.

    The objective is

        F(w, b) = (1/S) Σ_s c_s L_{q_s}(y_s (w·x_s + b)) + λ Σ_i w_i²,
        L_q(m)  = min((1 - q)², max(0, 1 - m)²),

    over weights and bias on their grids. As a QUBO it has one target t_s per example besides; for given
    weights the best targets are known in closed form, so `objective` needs none of them.

    Parameters
    ----------
    X
        Examples by features: ndarray (float32/float64, used without a copy; column-major is fastest) or
        any scipy sparse matrix (kept sparse, in columns).
    y
        Labels, -1 or +1, both present.
    q
        Where the loss stops growing: a number, ``{-1: q_neg, 1: q_pos}``, or one value per example. All ≤ 0;
        ``-inf`` is the convex squared hinge.
    lam
        λ ≥ 0, weight of Σ w_i².
    sample_weight
        Importance c_s > 0 of each example (zero allowed), normalised to mean 1.
    weight_bits, weight_range
        Bit depth of the weights, and ``(lo, hi)`` for all, ``(array_lo, array_hi)`` with one interval each,
        or ``"auto"``: intervals around a continuous solution, zero among the levels, capped by 1/√λ.
    bias_bits, bias_range
        The same for the bias.
    target_bits, target_span
        Bit depth d_t of the targets and the length α_t of their interval [1 - α_t/2, 1 + α_t/2].

    Examples
    --------
    >>> import numpy as np, lns
    >>> X = np.array([[0.0], [1.0], [0.9], [0.1]])
    >>> y = np.array([-1, 1, 1, 1])
    >>> problem = lns.QLossProblem(X, y, q=-0.5, lam=0.0, weight_range=(-4, 4), bias_range=(-4, 4))
    >>> problem.num_variables
    28
    >>> float(problem.objective([2.0], -1.0))
    0.61
    """

    _cut_short = False  # whether a deadline ended the search for the warm start

    @property
    def rebuilt(self) -> int:
        """Shards of the data that were lost and read again: none here, see `lns.ShardedProblem`."""
        return 0

    @property
    def moved_bytes(self) -> int:
        """Bytes sent to shards of the data and back."""
        return 0

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        *,
        q: float | Mapping[int, float] | ArrayLike = -0.5,
        lam: float = 1e-6,
        sample_weight: ArrayLike | None = None,
        weight_bits: int = 4,
        weight_range: Range = "auto",
        bias_bits: int = 8,
        bias_range: Range = "auto",
        target_bits: int = 4,
        target_span: float = 8.0,
    ) -> None:
        matrix = as_matrix(X)
        labels = _check_labels(y, matrix.shape[0])
        self._set_examples(
            matrix, labels, check_q(q, labels), check_sample_weight(sample_weight, matrix.shape[0])
        )
        self._set_model(lam, weight_bits, bias_bits, target_bits, target_span)
        self._set_ranges(weight_range, bias_range)

    def _set_examples(self, matrix: Matrix, y: NDArray, q: NDArray, share: NDArray) -> None:
        self.matrix, self.y, self.q, self.share = matrix, y, q, share
        self.num_examples, self.num_features = matrix.shape
        self.cap = np.square(1.0 - q)  # the height of the loss of a flagged example
        self._known: dict[Any, Any] = {}  # worked out from the examples once, on whatever levels

    def _set_model(
        self, lam: float, weight_bits: int, bias_bits: int, target_bits: int, target_span: float
    ) -> None:
        """Check and keep what is not about examples."""
        self.lam = _check_number("lam", lam)
        if self.lam < 0:
            raise InvalidInput(f"lam must be at least 0. Got {lam}.")
        self.weight_bits = check_bits("weight_bits", weight_bits)
        self.bias_bits = check_bits("bias_bits", bias_bits)
        self.target_bits = check_bits("target_bits", target_bits)
        self.target_span = _check_number("target_span", target_span)
        if self.target_span <= 0:
            raise InvalidInput(f"target_span must be above 0. Got {target_span}.")
        self.target_grid = target_grid(self.target_bits, self.target_span)
        self._warm_start: tuple[NDArray[np.float64], float] | None = None

    def _set_ranges(self, weight_range: Range, bias_range: Range) -> None:
        """Check and keep the ranges; the number of features is known by now."""
        self._weight_grid = _check_range("weight_range", weight_range, self.weight_bits, self.num_features)
        self._bias_grid = _check_range("bias_range", bias_range, self.bias_bits, 1)

    # ---- grids -------------------------------------------------------------------------------------------

    @cached_property
    def grids(self) -> tuple[Grid, Grid]:
        """Grids of the weights and of the bias; ``"auto"`` ranges are found on first use."""
        if self._weight_grid is None or self._bias_grid is None:
            from lns.start import automatic_grids

            return automatic_grids(self)
        return self._weight_grid, self._bias_grid

    @property
    def warm_start(self) -> tuple[NDArray[np.float64], float]:
        """A minimum of the continuous problem within the given ranges, found once; see `lns.descent`."""
        return self._warm_start or self.find_warm_start()

    def find_warm_start(self, deadline: float = math.inf) -> tuple[NDArray[np.float64], float]:
        """`warm_start`, ended early past a deadline (of `time.perf_counter`) if it is not known yet.

        One that was ended early is found anew, and so are automatic ranges: a hurried run leaves no trace in
        those that come after it.
        """
        from lns.descent import continuous_path

        if self._warm_start is None or self._cut_short:
            self._forget_grids()
            self._warm_start = continuous_path(self, self.given_box(), deadline=deadline)
            self._cut_short = perf_counter() > deadline
        return self._warm_start

    @property
    def has_automatic_ranges(self) -> bool:
        """Whether some levels follow from the warm start."""
        return self._weight_grid is None or self._bias_grid is None

    @property
    def grid_follows(self) -> bool:
        """Whether the levels of the weights are laid around whatever solution is found."""
        return self._weight_grid is None

    @property
    def has_given_bias(self) -> bool:
        """Whether the range of the bias was given."""
        return self._bias_grid is not None

    @property
    def given_grids(self) -> tuple[Grid | None, Grid | None]:
        """Levels of the weights and of the bias where their ranges were given."""
        return self._weight_grid, self._bias_grid

    def given_box(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The lowest and the highest weights and, last, bias that the given ranges allow."""
        low, high = np.full(self.num_features + 1, -np.inf), np.full(self.num_features + 1, np.inf)
        if self._weight_grid is not None:
            low[:-1], high[:-1] = self._weight_grid.lo, self._weight_grid.hi
        if self._bias_grid is not None:
            low[-1], high[-1] = self._bias_grid.lo[0], self._bias_grid.hi[0]
        return low, high

    def on_levels(self, weights: Grid, bias: Grid) -> QLossProblem:
        """The same problem, sharing its data, on these levels; which ranges were given stays known."""
        other = copy(self)
        other._forget_grids()
        other.__dict__["grids"] = weights, bias
        return other

    def on_grids(self, weights: Grid, bias: Grid) -> QLossProblem:
        """The same problem, sharing its data, with these levels as given ranges."""
        other = copy(self)
        other._weight_grid, other._bias_grid = weights, bias
        other._forget_grids()
        return other

    def _forget_grids(self) -> None:
        """Drop what was derived from the ranges."""
        for name in ("grids", "steps", "tops"):
            self.__dict__.pop(name, None)

    @property
    def weight_grid(self) -> Grid:
        """Levels of the weights."""
        return self.grids[0]

    @property
    def bias_grid(self) -> Grid:
        """Levels of the bias."""
        return self.grids[1]

    @cached_property
    def steps(self) -> NDArray[np.float64]:
        """Distance between levels of every weight, then of the bias."""
        return np.append(self.weight_grid.step, self.bias_grid.step)

    @cached_property
    def tops(self) -> NDArray[np.int32]:
        """Largest code of every weight, then of the bias."""
        return np.append(np.full(self.num_features, self.weight_grid.top), self.bias_grid.top).astype(
            np.int32
        )

    def values(self, codes: NDArray[np.integer] | NDArray[np.float64]) -> tuple[NDArray[np.float64], Any]:
        """Weights and bias of codes (weights first, bias last; leading axes are kept)."""
        return self.weight_grid.values(codes[..., :-1]), self.bias_grid.values(codes[..., -1:])[..., 0]

    def point(self, codes: NDArray[np.integer]) -> NDArray[np.float64]:
        """Weights and, last, the bias of codes."""
        w, b = self.values(codes)
        return np.append(w, b)

    def codes(self, w: ArrayLike, b: float) -> NDArray[np.int32]:
        """Nearest codes of weights and bias, bias last."""
        return np.append(self.weight_grid.codes(w), self.bias_grid.codes([b]))

    # ---- the collapsed objective ---------------------------------------------------------------------------

    @property
    def num_variables(self) -> int:
        """Variables of the full QUBO: N d_w + d_b + S d_t."""
        return self.num_features * self.weight_bits + self.bias_bits + self.num_examples * self.target_bits

    def margins(self, w: ArrayLike, b: float) -> NDArray[np.float64]:
        """m_s = y_s (w·x_s + b)."""
        w, b = self.check_solution(w, b)
        return self.matrix.margins(w, b, self.y)

    def objective(self, w: ArrayLike, b: float) -> float:
        """Mean q-loss + λ Σ w_i², exact: every target is at its best value."""
        w, b = self.check_solution(w, b)
        return self.mean_loss_at(w, b) + self.lam * float(w @ w)

    def mean_loss_at(self, w: NDArray[np.float64], b: float) -> float:
        """Weighted mean of the q-loss at a point that was checked before."""
        return self.mean_loss(self.matrix.margins(w, b, self.y))

    def mean_loss(self, m: NDArray[np.float64]) -> float:
        """Weighted mean of the q-loss of margins m."""
        parts = over_rows(lambda a, z: kernels.loss_sum(m, self.cap, self.share, a, z), len(m))
        return float(sum(parts))

    def loss_and_gradient(
        self, w: NDArray[np.float64], b: float, shift: float = 0.0, width: float = 0.0
    ) -> tuple[float, NDArray[np.float64]]:
        """Mean loss and its gradient, bias last, with q lowered by `shift` and averaged over a `width`."""
        return self.matrix.loss_and_gradient(w, b, self.y, self.q, shift, width, self.share)

    def hessian(
        self,
        w: NDArray[np.float64],
        b: float,
        columns: NDArray[np.intp],
        shift: float = 0.0,
        width: float = 0.0,
    ) -> NDArray[np.float64]:
        """Second derivatives of the mean loss in some weights (N is the bias), as soft as above.

        Examples whose averaged loss bends down count as straight, so that no direction does.
        """
        from lns.subproblem import curvature

        model = curvature(self, self.matrix.margins(w, b, self.y), width, shift)
        return self.matrix.moments(columns, np.maximum(model.bend, 0.0), model.slope)[0]

    def losses_near(
        self,
        m: NDArray[np.float64],
        columns: NDArray[np.intp],
        changes: NDArray[np.float64],
        shifts: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Mean losses of candidates that differ from margins m by changes of some weights and of the bias.

        Works over blocks of rows, without a margin matrix of full length: `changes` is (K, columns).
        """
        part = self.matrix.candidate_losses(columns, changes, shifts, (self.y, m, self.cap, self.share))
        width = len(changes) * (len(columns) + 4)
        return np.sum(over_rows(part, self.num_examples, width), axis=0)

    def squared_means(self) -> NDArray[np.float64]:
        """Weighted mean of the squares of every feature."""
        if "squared means" not in self._known:
            self._known["squared means"] = self.matrix.squared_column_means(self.share)
        return self._known["squared means"]

    def effects(self) -> NDArray[np.float64]:
        """How far one level of each weight and, last, of the bias moves margins, root mean square."""
        return self.steps * np.sqrt(np.append(self.squared_means(), 1.0))

    def best_target_codes(
        self, m: NDArray[np.float64], rows: slice | NDArray[np.integer] = slice(None)
    ) -> NDArray[np.int32]:
        """Codes of the target levels best for margins m of these rows: nearest above 1 or nearest below."""
        grid, half = self.target_grid, 2 ** (self.target_bits - 1)
        exact = (m - grid.lo[0]) / grid.step[0]
        above = np.rint(np.clip(exact, half, grid.top)).astype(np.int32)
        below = np.rint(np.clip(exact, 0, half - 1)).astype(np.int32)
        unflagged = np.square(m - grid.values(above[:, None])[:, 0])
        flagged = np.square(m - grid.values(below[:, None])[:, 0]) + self.cap[rows]
        return np.where(unflagged <= flagged, above, below)

    def flagged(self, w: ArrayLike, b: float) -> NDArray[np.bool_]:
        """Training examples suspected of a wrong label: margin ≤ q."""
        return self.margins(w, b) <= self.q

    def state(self, codes: NDArray[np.integer] | None = None) -> State:
        """A search state at the given codes (default: those nearest to all-zero weights)."""
        from lns.state import State

        if codes is None:
            codes = self.codes(np.zeros(self.num_features), 0.0)
        return State(self, codes)

    # ---- examples ------------------------------------------------------------------------------------------

    @property
    def max_sample_rows(self) -> int:
        """Most examples that `subset` gives."""
        return self.num_examples

    @property
    def specimen(self) -> QLossProblem:
        """A problem in this process with data of the same kind; compiled loops are chosen by it."""
        return self

    def subset(self, rows: NDArray[np.integer] | None) -> QLossProblem:
        """The same problem on some of its examples, weighted as before, in this process.

        Grids are shared once known. None stands for all examples, without a copy.
        """
        if rows is None:
            return self
        share = self.share[rows]
        return QLossProblem.assemble(
            self.model(), self.matrix.take(rows), self.y[rows], self.q[rows], share / share.sum()
        )

    def sample(self, rows: int, keep: bool = True) -> QLossProblem:
        """At most so many of the examples, always the same ones; kept for the next time, or not."""
        rows = min(rows, self.max_sample_rows)
        if rows not in self._known:
            chosen = None
            if rows < self.num_examples:
                chosen = np.sort(np.random.default_rng(0).choice(self.num_examples, rows, replace=False))
            part = self.subset(chosen)
            if part is self or not keep:
                return part
            self._known[rows] = part
        return self._known[rows]

    def model(self) -> dict[str, Any]:
        """All but the examples: what has to be known wherever some of them are."""
        return {name: self.__dict__[name] for name in _MODEL if name in self.__dict__}

    @staticmethod
    def assemble(
        model: Mapping[str, Any], matrix: Matrix, y: NDArray, q: NDArray, share: NDArray
    ) -> QLossProblem:
        """A problem from a `model` and examples that were checked before; their shares need not sum to 1."""
        problem = object.__new__(QLossProblem)
        problem.__dict__.update(model)
        problem._set_examples(matrix, y, q, share)
        return problem

    # ---- the full QUBO -------------------------------------------------------------------------------------

    def to_bqm(self) -> dimod.BinaryQuadraticModel:
        """The full QUBO of the paper's appendix, offset included, for problems of moderate size.

        Labels are ``("w", i, k)``, ``("b", k)``, ``("t", s, k)`` with k = 0 the least significant bit.

        Raises
        ------
        InvalidInput
            If it would have more couplers than `lns.qubo.MAX_COUPLERS`.
        """
        from lns.qubo import full_bqm

        return full_bqm(self)

    def decode(self, sample: Any) -> tuple[NDArray[np.float64], float]:
        """Weights and bias of a sample (a mapping, or a dimod SampleSet: its best) of `to_bqm`."""
        from lns.qubo import decode

        return decode(self, sample)

    def encode(self, w: ArrayLike, b: float) -> dict[tuple, int]:
        """The sample of `to_bqm` nearest to these weights, with the best targets on the grid."""
        from lns.qubo import encode

        return encode(self, w, b)

    # ------------------------------------------------------------------------------------------------------

    def check_solution(self, w: ArrayLike, b: float) -> tuple[NDArray[np.float64], float]:
        """Weights and bias as finite numbers of the right shape, or an error that says what is wrong."""
        w_given, b_given = real_array(w), real_array(b)
        if w_given is None or b_given is None or b_given.ndim:
            raise InvalidInput("w and b must be real numbers.")
        w, b = np.ascontiguousarray(w_given, dtype=np.float64), float(b_given)
        if w.shape != (self.num_features,):
            raise InvalidInput(
                f"w must have length {self.num_features}, one per feature. Got shape {w.shape}."
            )
        if not (np.isfinite(w).all() and np.isfinite(b)):
            raise InvalidInput("w and b must be finite. Got NaN or infinity.")
        return w, b

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.num_examples:,} examples x {self.num_features:,} features, "
            f"{self.num_variables:,} QUBO variables, lam={self.lam:g})"
        )


def _check_number(name: str, value: object) -> float:
    array = real_array(value)  # type: ignore[arg-type]
    if array is None or array.ndim:
        raise InvalidInput(f"{name} must be a number. Got {value!r}.")
    if not np.isfinite(array):
        raise InvalidInput(f"{name} must be finite. Got {value}.")
    return float(array)


def _as_array(name: str, value: Any) -> NDArray:
    try:
        return np.asarray(value)
    except ValueError:
        raise InvalidInput(
            f"{name} must be a flat list of numbers. Got lists of different lengths."
        ) from None


def _check_labels(y: ArrayLike, rows: int) -> NDArray[np.float64]:
    labels = _as_array("y", y)
    if labels.ndim != 1:
        raise InvalidInput(f"y must have one dimension. Got shape {labels.shape}.")
    if len(labels) != rows:
        raise InvalidInput(f"X has {rows} rows but y has {len(labels)}.")
    if labels.dtype.kind not in "fiu":
        raise InvalidInput(f"y must hold the labels -1 and +1 as numbers. Got dtype {labels.dtype}.")
    wrong = (labels != 1) & (labels != -1)
    if wrong.any():
        raise InvalidInput(
            f"y must hold only -1 and +1. Got {labels[np.argmax(wrong)]} at row {int(np.argmax(wrong))}."
        )
    if (labels == labels[0]).all():
        raise InvalidInput(f"y must hold both classes. Got only {labels[0]:+.0f}.")
    return labels.astype(np.float64)


def check_q(q: Any, y: NDArray[np.float64]) -> NDArray[np.float64]:
    """One q per example, whatever form it was given in."""
    if isinstance(q, Mapping):
        if set(q) != {-1, 1}:
            raise InvalidInput(f"q as a mapping must have the keys -1 and 1. Got {sorted(q, key=str)}.")
        per_class = [_check_q_values(_as_array("q", q[label])) for label in (-1, 1)]
        if per_class[0].ndim or per_class[1].ndim:
            raise InvalidInput(f"q must be one number for each class. Got {dict(q)!r}.")
        return np.where(y < 0, per_class[0], per_class[1])
    values = _check_q_values(_as_array("q", q))
    if values.ndim == 0:
        return np.full(len(y), values)
    if values.shape != y.shape:
        raise InvalidInput(
            f"q must be a number, one per class, or one for each of the {len(y)} examples. "
            f"Got shape {values.shape}."
        )
    return values.copy()


def _check_q_values(values: NDArray) -> NDArray[np.float64]:
    if values.dtype.kind not in "fiu":
        raise InvalidInput(
            f"q must be a number, a mapping of the classes -1 and 1, or an array. Got {values!r}."
        )
    values = values.astype(np.float64)
    bad = np.isnan(values) | (values > 0)
    if bad.any():
        raise InvalidInput(f"q must be at most 0. Got {values[bad].flat[0] if values.ndim else values}.")
    return np.maximum(values, -NEVER)  # -inf means "never stop punishing"


def check_sample_weight(sample_weight: ArrayLike | None, rows: int) -> NDArray[np.float64]:
    """Shares of the examples in the mean: c_s / S with c of mean 1."""
    if sample_weight is None:
        return np.full(rows, 1.0 / rows)
    weight = _as_array("sample_weight", sample_weight)
    if weight.dtype.kind not in "fiub" or weight.shape != (rows,):
        raise InvalidInput(
            f"sample_weight must be {rows} numbers. Got shape {weight.shape}, dtype {weight.dtype}."
        )
    weight = weight.astype(np.float64)
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise InvalidInput("sample_weight must be finite and at least 0.")
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not 0 < total < np.inf:
        raise InvalidInput(f"sample_weight must have a positive finite sum. Got {total}.")
    return weight / total


def _check_range(name: str, given: Any, bits: int, size: int) -> Grid | None:
    """The grid of a given range; None for "auto"."""
    if isinstance(given, str):
        if given != "auto":
            raise InvalidInput(f'{name} must be "auto", (lo, hi) or two arrays. Got {given!r}.')
        return None
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise InvalidInput(f'{name} must be "auto", (lo, hi) or two arrays. Got {given!r}.')
    return Grid.make(given[0], given[1], bits, size, name)
