"""A trained classifier as a plain file: JSON that any program can read, nothing to unpickle."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lns.errors import DataError, InvalidInput
from lns.files import write_json

if TYPE_CHECKING:
    from lns.datasets.dataset import Dataset
    from lns.problem import QLossProblem

FORMAT = 1
FILENAME = "model.json"
_WHAT = "qlns model"


@dataclass(frozen=True, eq=False)
class LinearModel:
    """The classifier sign(w·x + b), with what is needed to use it and to know where it is from.

    Parameters
    ----------
    weights, bias
        On features scaled as the training data were.
    classes
        The label values that mean -1 and +1.
    offset, span
        How raw features become those: (x - offset) / span. None if they stay as they are.
    feature_names
        Names of the features, if known.
    training
        What it was trained with: q, lam, the grids of weights and bias, the objective reached.

    Examples
    --------
    >>> model = LinearModel(np.array([2.0, -1.0]), 0.5, ("ham", "spam"))
    >>> model.decision_function([[1.0, 0.0], [0.0, 1.0]])
    array([ 2.5, -0.5])
    >>> model.predict([[1.0, 0.0], [0.0, 1.0]])
    array(['spam', 'ham'], dtype='<U4')
    """

    weights: NDArray[np.float64]
    bias: float
    classes: tuple[Any, Any] = (-1, 1)
    offset: NDArray[np.float64] | None = None
    span: NDArray[np.float64] | None = None
    feature_names: tuple[str, ...] | None = None
    training: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, problem: QLossProblem, weights: ArrayLike, bias: float, data: Dataset | None = None
    ) -> LinearModel:
        """The model of a solution; `data` is where the training examples are from.

        Examples
        --------
        >>> import lns
        >>> data = lns.load_dataset("long-servedio")
        >>> problem = lns.QLossProblem(data.X, data.y)
        >>> result = lns.solve(problem, max_rounds=1, time_limit=None)
        >>> model = LinearModel.of(problem, result.weights, result.bias, data)
        >>> bool((model.predict(data.X) == data.y).mean() > 0.9)
        True
        """
        w, b = problem.check_solution(weights, bias)
        scaling = None if data is None else data.scaling
        return cls(
            w, b,
            (-1, 1) if data is None else data.classes,
            None if scaling is None else np.asarray(scaling.offset, dtype=np.float64),
            None if scaling is None else np.asarray(scaling.span, dtype=np.float64),
            None if data is None else data.feature_names,
            {
                "objective": problem.objective(w, b), "lam": problem.lam, "q": _q_of(problem),
                "examples": problem.num_examples,
                "weight_grid": _grid(problem.weight_grid), "bias_grid": _grid(problem.bias_grid),
            },
        )  # fmt: skip

    @property
    def num_features(self) -> int:
        """Number of features."""
        return len(self.weights)

    def decision_function(self, X: Any, *, scaled: bool = False) -> NDArray[np.float64]:
        """Scores w·x + b, positive for the second class.

        Parameters
        ----------
        X
            Rows by features, an array or a scipy sparse matrix, as they stand in the source of the training
            data.
        scaled
            The features are scaled as the training data were, like those of a set known by name.

        Raises
        ------
        InvalidInput
            If the number of features is not that of the training data.
        """
        from scipy import sparse

        if not sparse.issparse(X):
            X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.num_features:
            raise InvalidInput(
                f"X must have {self.num_features} columns, as the training data had. Got shape {X.shape}."
            )
        weights, bias = self.weights, self.bias
        if self.span is not None and self.offset is not None and not scaled:
            # The scaling goes into the weights, so that sparse rows stay sparse.
            weights = weights / self.span
            bias = bias - float(weights @ self.offset)
        return np.asarray(X @ weights, dtype=np.float64).ravel() + bias

    def predict(self, X: Any, *, scaled: bool = False) -> NDArray[Any]:
        """The class of every row; takes what `decision_function` takes."""
        return np.asarray(self.classes)[(self.decision_function(X, scaled=scaled) > 0).astype(int)]

    # ---- the file ----------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """As the file has it."""
        return {
            "what": _WHAT,
            "format": FORMAT,
            "classes": list(self.classes),
            "bias": self.bias,
            "weights": self.weights.tolist(),
            "scaling": None
            if self.offset is None or self.span is None
            else {"offset": self.offset.tolist(), "span": self.span.tolist()},
            "feature_names": None if self.feature_names is None else list(self.feature_names),
            "training": self.training,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON; an older file of this name is replaced at once, never half."""
        write_json(Path(path), self.to_dict())


def load_model(path: str | os.PathLike[str]) -> LinearModel:
    """Load a model.

    Parameters
    ----------
    path
        A model file, or the folder of a run (``lns train --out``).

    Raises
    ------
    DataError
        If there is none, or it is damaged, or of a later format.
    """
    path = Path(path)
    if path.is_dir():
        path = path / FILENAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        folder = path.parent if path.suffix else path
        raise DataError(f"There is no model {path}. 'lns train DATASET --out {folder}' makes one.") from None
    except OSError as error:
        raise DataError(f"The model {path} cannot be read: {error.strerror or error}.") from None
    except ValueError as error:
        raise DataError(f"{path} is not a model: it is not JSON ({error}).") from None
    if not isinstance(content, dict) or content.get("what") != _WHAT:
        raise DataError(f"{path} is not a model of lns train: it does not say it is a {_WHAT!r}.")
    if content.get("format") != FORMAT:
        raise DataError(
            f"The model {path} has the format {content.get('format')!r}; this version reads {FORMAT}: "
            "update qlns, or train again."
        )
    try:
        return _from_dict(content)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"The model {path} is damaged ({type(error).__name__}: {error}).") from None


def _from_dict(content: dict[str, Any]) -> LinearModel:
    weights = np.array(content["weights"], dtype=np.float64)
    scaling, names = content["scaling"], content["feature_names"]
    offset, span = (
        None if scaling is None else np.array(scaling[key], dtype=np.float64) for key in ("offset", "span")
    )
    for name, array in (("weights", weights), ("offset", offset), ("span", span)):
        if array is not None and (array.shape != (len(weights),) or not np.isfinite(array).all()):
            raise ValueError(f"{name} must be {len(weights)} finite numbers")
    if names is not None and len(names) != len(weights):
        raise ValueError(f"{len(weights)} weights but {len(names)} names")
    negative, positive = content["classes"]
    return LinearModel(
        weights, float(content["bias"]), (negative, positive), offset, span,
        None if names is None else tuple(names), content["training"],
    )  # fmt: skip


def _grid(grid: Any) -> dict[str, Any]:
    return {"bits": grid.bits, "lo": grid.lo.tolist(), "hi": grid.hi.tolist()}


def _q_of(problem: QLossProblem) -> Any:
    """One q, one for each class, or None if it differs from example to example."""
    values = [np.unique(problem.q[problem.y == label]) for label in (-1, 1)]
    if any(len(value) > 1 for value in values):
        return None
    negative, positive = (float(value[0]) for value in values)
    return negative if negative == positive else {"-1": negative, "1": positive}
