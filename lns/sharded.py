"""A problem whose examples are in shards, none of them in this process.

The objective and its gradient are sums over examples: shards answer with their parts,
which are added in the order of the shards. Rounds look at a sample of the rows, gathered from the shards;
what they propose is judged on all of them.
"""

from __future__ import annotations

import hashlib
import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, reduce
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from lns.datasets.scaling import Scaling, scaling_between
from lns.errors import DataError, InvalidInput
from lns.matrix import as_matrix
from lns.problem import PARAMETERS, QLossProblem, Range, check_q, check_sample_weight
from lns.shard import Outline, Source
from lns.state import State

MAX_SAMPLE_ROWS = 262_144
GATHERED = ("matrix", "y", "q", "cap", "share")  # attributes of a problem that are as long as the data


class Shards(Protocol):
    """Those who hold the shards, wherever they are."""

    rebuilt: int  # shards that were lost and read again
    moved_bytes: int  # arrays sent to shards and back

    def setup(self, method: str, each: Sequence[tuple]) -> list[Any]:
        """Like `ask`, and remembered: a shard that is read again goes through it again."""

    def ask(self, method: str, *args: Any, each: Sequence[tuple] | None = None) -> list[Any]:
        """Call a method of every `lns.shard.Shard`; answers in the order of the shards.

        `each` holds further arguments, one tuple for each shard.
        """

    def close(self) -> None:
        """Let go of the shards."""


class ShardedProblem(QLossProblem):
    """`lns.QLossProblem` on data too large for one machine: each shard is read where it is kept.

    Shards are actors on a Ray cluster, spread over its nodes. This process never holds the data, only samples
    of its rows. A shard that is lost, with its worker or its node, is read again from its source, and the
    question it was asked is repeated: with a round limit the same seed gives the same search, whatever
    happens and wherever the shards are. Every sum is that of a `QLossProblem` of all rows, up to rounding.

    Parameters
    ----------
    sources
        Where each shard is read from, by the process that keeps it: a file (``.npz``, ``.parquet``,
        ``.svm``, ``.csv``) that every node can open, or a function without arguments that returns X and y.
        Rows are numbered through all shards in this order.
    q, sample_weight
        As for `QLossProblem`; with one value per example, these vectors are held here.
    lam, weight_bits, weight_range, bias_bits, bias_range, target_bits, target_span
        As for `QLossProblem`.
    scale
        Scale columns to [0, 1] by their bounds in all shards, as `lns.load_dataset` does for one file.
    max_sample_rows
        Most examples that are ever gathered in this process, for rounds to look at.
    address
        Of the Ray cluster; by default the one this process is connected to, or else one on this machine.
    holder
        A function from sources to `Shards`, instead of Ray.

    Raises
    ------
    DataError
        If a source cannot be read, or does not fit the others; it is named.
    """

    def __init__(
        self,
        sources: Sequence[Source],
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
        scale: bool = True,
        max_sample_rows: int = MAX_SAMPLE_ROWS,
        address: str | None = None,
        holder: Callable[[Sequence[Source]], Shards] | None = None,
    ) -> None:
        if isinstance(sources, (str, bytes)) or not len(sources):
            raise InvalidInput("sources must be a list of at least one file or function.")
        if max_sample_rows < 2:
            raise InvalidInput(f"max_sample_rows must be at least 2. Got {max_sample_rows}.")
        if holder is None:
            from lns.backends.shards import RayShards

            holder = lambda given: RayShards(given, address)  # noqa: E731
        self._set_model(lam, weight_bits, bias_bits, target_bits, target_span)
        if isinstance(q, Mapping) or not np.ndim(q):
            check_q(q, np.array([-1.0, 1.0]))  # what can be wrong is found before data is read
        self._limit, self._known = max_sample_rows, {}
        self._shards = holder(sources)
        try:
            self.outlines: list[Outline] = self._shards.setup("outline", [()] * len(sources))
            self.num_features, first_index = _common_columns(self.outlines)
            self.classes = _common_classes(self.outlines)
            rows = [one.rows for one in self.outlines]
            self.num_examples, self._ends = sum(rows), np.cumsum(rows)
            self._set_ranges(weight_range, bias_range)
            vectors = self._per_shard(q, sample_weight)
            bounds = self._shards.setup("align", [(self.num_features, first_index)] * len(rows))
            self.scaling = _common_scaling(bounds) if scale else None
            told = (self.classes, self.scaling, self.model())
            self.fingerprint = self._hash(q, sample_weight, scale)
            self._shards.setup("join", [(*told, *own) for own in vectors])
        except BaseException:
            self._shards.close()
            raise

    def _per_shard(self, q: Any, sample_weight: ArrayLike | None) -> list[tuple[Any, Any]]:
        """q and the shares of its examples for each shard."""
        cuts, count = self._ends[:-1], len(self._ends)
        q_each: list[Any] = [q] * count
        shares: list[Any] = [1.0 / self.num_examples] * count
        if not isinstance(q, Mapping) and np.ndim(q):
            q_each = np.split(check_q(q, np.zeros(self.num_examples)), cuts)
        if sample_weight is not None:
            shares = np.split(check_sample_weight(sample_weight, self.num_examples), cuts)
        return list(zip(q_each, shares, strict=True))

    def _hash(self, *given: Any) -> str:
        """A hash of all examples, in the order of the shards, and of all that was said about them."""
        digest = hashlib.blake2b("".join(one.digest for one in self.outlines).encode(), digest_size=16)
        ends = [(grid.lo, grid.hi) for grid in (self._weight_grid, self._bias_grid) if grid is not None]
        for one in (*(getattr(self, name) for name in PARAMETERS), *itertools.chain(*ends), *given):
            if one is None or isinstance(one, Mapping):
                digest.update(repr(one).encode())
            else:
                digest.update(np.ascontiguousarray(one, dtype=np.float64))
        return digest.hexdigest()

    # ---- sums ----------------------------------------------------------------------------------------------

    def add_up(self, method: str, *args: Any) -> Any:
        """The sum of what all shards answer, always in the same order; of a tuple, that of each member."""
        answers = self._shards.ask(method, *args)
        if isinstance(answers[0], tuple):
            return tuple(_sum(part) for part in zip(*answers, strict=True))
        return _sum(answers)

    def mean_loss_at(self, w: NDArray[np.float64], b: float) -> float:
        return float(self.add_up("loss_at", w, b))

    def loss_and_gradient(
        self, w: NDArray[np.float64], b: float, shift: float = 0.0, width: float = 0.0
    ) -> tuple[float, NDArray[np.float64]]:
        loss, gradient = self.add_up("loss_and_gradient", w, b, shift, width)
        return loss, gradient

    def squared_means(self) -> NDArray[np.float64]:
        if "squared means" not in self._known:
            self._known["squared means"] = np.asarray(self.add_up("squared_means"))
        return self._known["squared means"]

    def margins(self, w: ArrayLike, b: float) -> NDArray[np.float64]:
        return np.concatenate(self._shards.ask("margins", *self.check_solution(w, b)))

    def flagged(self, w: ArrayLike, b: float) -> NDArray[np.bool_]:
        return np.concatenate(self._shards.ask("flagged", *self.check_solution(w, b)))

    def state(self, codes: NDArray[np.integer] | None = None) -> ShardedState:
        """A search state whose margins stay in the shards."""
        if codes is None:
            codes = self.codes(np.zeros(self.num_features), 0.0)
        return ShardedState(self, codes)

    # ---- examples ------------------------------------------------------------------------------------------

    @property
    def max_sample_rows(self) -> int:
        return min(self._limit, self.num_examples)

    @cached_property
    def specimen(self) -> QLossProblem:
        return self.subset(np.arange(2))

    def subset(self, rows: NDArray[np.integer] | None) -> QLossProblem:
        """The same problem on some of its examples, gathered in this process."""
        wanted = np.arange(self.num_examples) if rows is None else np.asarray(rows)
        if len(wanted) > self._limit:
            raise InvalidInput(
                f"At most {self._limit:,} of these {self.num_examples:,} examples can be gathered in one "
                f"process. Got {len(wanted):,}: ask for fewer, or raise max_sample_rows."
            )
        home = np.searchsorted(self._ends, wanted, side="right")
        starts = np.append(0, self._ends)
        each = [(wanted[home == k] - starts[k],) for k in range(len(self._ends))]
        parts, *vectors = zip(*self._shards.ask("take", each=each), strict=True)
        order = np.argsort(home, kind="stable")  # where the rows come in, shard by shard
        y, q, share = (_in_order(np.concatenate(pieces), order) for pieces in vectors)
        if rows is not None:
            share /= share.sum()
        return QLossProblem.assemble(self.model(), as_matrix(_stack(parts, order)), y, q, share)

    def __getattr__(self, name: str) -> Any:
        if name in GATHERED:  # small data can be used as if it were here
            return getattr(self._whole, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @cached_property
    def _whole(self) -> QLossProblem:
        return self.subset(None)

    # ---- the shards ----------------------------------------------------------------------------------------

    @property
    def rebuilt(self) -> int:
        """Shards that were lost and read again, so far."""
        return self._shards.rebuilt

    @property
    def moved_bytes(self) -> int:
        """Bytes of the arrays sent to shards and back, so far."""
        return self._shards.moved_bytes

    def peak_memory_mb(self) -> list[float | None]:
        """The most memory that the process of each shard has had."""
        return self._shards.ask("peak_memory_mb")

    def close(self) -> None:
        """Give up the shards; the problem cannot be used any more."""
        self._shards.close()

    def __enter__(self) -> ShardedProblem:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class ShardedState(State):
    """Codes and their objective; the margins are where the examples are."""

    problem: ShardedProblem

    def refresh(self) -> None:
        w = self.weights
        self.loss = self.problem.mean_loss_at(w, self.bias)
        self.objective = self.loss + self.problem.lam * float(w @ w)

    @property
    def margins(self) -> NDArray[np.float64]:  # type: ignore[override]
        """Margins of all examples, gathered."""
        return self.problem.margins(self.weights, self.bias)

    def losses(self, candidates: NDArray[np.integer]) -> NDArray[np.float64]:
        changed, changes, shifts = self.changes(candidates)
        return np.asarray(
            self.problem.add_up("losses_near", self.weights, self.bias, changed, changes, shifts)
        )


def _common_columns(outlines: Sequence[Outline]) -> tuple[int, int | None]:
    """How many columns, and the number of the first; or an error that names a shard that differs."""
    first = outlines[0]
    for other in outlines[1:]:
        if other.sparse != first.sparse:
            kinds = {True: "sparse", False: "dense"}
            raise DataError(
                f"{other.name} is {kinds[other.sparse]} but {first.name} is {kinds[first.sparse]}: "
                "all shards must be of one kind."
            )
        numbered = other.first_index is not None and first.first_index is not None
        if other.features != first.features and not numbered:
            raise DataError(
                f"{other.name} has {other.features} features but {first.name} has {first.features}: "
                "all shards must have the same columns."
            )
    if any(one.first_index is None for one in outlines):
        return first.features, None
    # Files that number their columns need not mention the last ones, nor a column 0.
    lowest = min(one.first_index for one in outlines if one.first_index is not None)
    return max(one.features + (one.first_index or 0) - lowest for one in outlines), lowest


def _common_classes(outlines: Sequence[Outline]) -> tuple[object, object]:
    """The two label values of all shards together; one shard may have a single one."""
    found: dict[object, str] = {}
    for one in outlines:
        for value in one.labels:
            found.setdefault(value, one.name)
            if len(found) > 2:
                others = ", ".join(repr(known) for known in found if known != value)
                raise DataError(
                    f"{one.name} has the label {value!r} besides {others}: "
                    "there must be two label values in all shards together."
                )
    if len(found) < 2:
        raise DataError(
            f"All shards from {outlines[0].name} on have the same label: there must be two label values."
        )
    try:
        low, high = sorted(found)  # type: ignore[type-var]
    except TypeError:
        raise DataError(
            f"The labels {found!r} cannot be compared: write them in the same form in all shards."
        ) from None
    return low, high


def _common_scaling(bounds: Sequence[tuple[NDArray, NDArray]]) -> Scaling:
    """To [0, 1] by the bounds of each column in all shards."""
    lowest, highest = (np.stack(ends) for ends in zip(*bounds, strict=True))
    return scaling_between(lowest.min(axis=0), highest.max(axis=0))


def _sum(parts: Sequence[Any]) -> Any:
    """Their sum from left to right, as a float or as an array that may be changed."""
    total = reduce(operator.add, parts)
    return np.array(total) if np.ndim(total) else float(total)


def _in_order(values: NDArray, order: NDArray[np.intp]) -> NDArray:
    out = np.empty_like(values)
    out[order] = values
    return out


def _stack(parts: Sequence[Any], order: NDArray[np.intp]) -> Any:
    """Rows of several shards in one matrix by columns, each where it was asked for."""
    if sparse.issparse(parts[0]):
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return sparse.csc_array(sparse.vstack(parts, format="csr")[back])
    X = np.empty((len(order), parts[0].shape[1]), dtype=np.result_type(*parts), order="F")
    for i in range(X.shape[1]):
        X[order, i] = np.concatenate([part[:, i] for part in parts])
    return X
