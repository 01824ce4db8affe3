"""The paper's strongest convex rival: the primal SVM with squared hinge of liblinear."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lns.paper.rivals.fit import Fitted


def fit_path(X: Any, y: NDArray[Any], settings: list[dict[str, float]], seed: int) -> list[Fitted]:
    """One classifier for every λ.

    liblinear minimises ½‖w‖² + C Σ_s max(0, 1 - m_s)², so that C = 1/(2λS) is mean loss + λ‖w‖²; it
    regularises the bias like a weight.
    """
    from sklearn.svm import LinearSVC

    fitted = []
    for setting in settings:
        model = LinearSVC(
            loss="squared_hinge", dual=False, C=1.0 / (2.0 * setting["lam"] * len(y)),
            tol=1e-4, max_iter=1000, random_state=seed,
        ).fit(X, y)  # fmt: skip
        fitted.append(Fitted(np.asarray(model.coef_[0], dtype=np.float64), float(model.intercept_[0])))
    return fitted
