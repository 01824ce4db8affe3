"""What people use today against noisy labels, and a non-linear yardstick; none of them is in the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from lns.errors import InvalidInput
from lns.paper.rivals.fit import Fitted


@dataclass(frozen=True)
class FittedTrees:
    """Boosted trees behind the interface of a linear classifier."""

    model: Any

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of every row, -1 or +1."""
        return np.asarray(self.model.predict(dense(X)))


def clean_learning(lam: float, rows: int, seed: int, **finding: Any) -> Any:
    """cleanlab on logistic regression with mean loss + λ‖w‖²; `finding` says how labels are found wanting.

    Raises
    ------
    InvalidInput
        If cleanlab is not installed.
    """
    try:
        from cleanlab.classification import CleanLearning
    except ImportError:
        raise InvalidInput("The comparison with cleanlab needs it: pip install 'qlns[paper]'.") from None
    from sklearn.linear_model import LogisticRegression

    logistic = LogisticRegression(C=1.0 / (2.0 * lam * rows), max_iter=1000)
    return CleanLearning(logistic, seed=seed, find_label_issues_kwargs={"n_jobs": 1, **finding})


def cleanlab_path(X: Any, y: NDArray[Any], settings: list[dict[str, float]], seed: int) -> list[Fitted]:
    """Train, drop what looks mislabelled, train again."""
    fitted = []
    with threadpool_limits(1):
        for setting in settings:
            model = clean_learning(setting["lam"], len(y), seed).fit(X, (np.asarray(y) > 0).astype(int))
            fitted.append(_linear(model.clf))
    return fitted


def modified_huber_path(X: Any, y: NDArray[Any], settings: list[dict[str, float]], seed: int) -> list[Fitted]:
    """Stochastic gradient descent on a loss that is linear for badly wrong examples, averaged or not."""
    from sklearn.linear_model import SGDClassifier

    # Its penalty is ½·alpha·‖w‖².
    return [
        _linear(
            SGDClassifier(
                loss="modified_huber", alpha=2.0 * one["lam"], average=bool(one["average"]), random_state=seed
            ).fit(X, y)
        )
        for one in settings
    ]


def boosting_path(X: Any, y: NDArray[Any], settings: list[dict[str, float]], seed: int) -> list[FittedTrees]:
    """Histogram gradient boosting as it comes."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    with threadpool_limits(1):  # runs side by side would fight for the cores
        return [
            FittedTrees(HistGradientBoostingClassifier(random_state=seed, **one).fit(dense(X), y))
            for one in settings
        ]


def dense(X: Any) -> NDArray[Any]:
    """Rows with their zeros."""
    is_sparse: bool = sparse.issparse(X)
    return X.toarray() if is_sparse else np.asarray(X)


def _linear(model: Any) -> Fitted:
    return Fitted(np.asarray(model.coef_[0], dtype=np.float64), float(model.intercept_[0]))
