"""The paper's strongest convex rival: the primal SVM with squared hinge of liblinear."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lns.paper.rivals.fit import Fitted


def fit_path(X: Any, y: NDArray[Any], settings: list[dict[str, float]], seed: int) -> list[Fitted]:
    """One classifier for every λ, with C = 1/λ as in the paper.

    liblinear minimises ½‖w‖² + C Σ_s max(0, 1 - m_s)², and regularises the bias like a weight. C multiplies
    the sum of the losses, not their mean as the λ of the other rivals does: the same ten values regularise
    far less.
    """
    from sklearn.svm import LinearSVC

    fitted = []
    for setting in settings:
        model = LinearSVC(
            loss="squared_hinge", dual=False, C=1.0 / setting["lam"],
            tol=1e-4, max_iter=1000, random_state=seed,
        ).fit(X, y)  # fmt: skip
        fitted.append(Fitted(np.asarray(model.coef_[0], dtype=np.float64), float(model.intercept_[0])))
    return fitted
