"""Which labels were flipped: cleanlab's answer, beside that of q-loss (its flagged examples)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lns.paper.folds import Part


def cleanlab_issues(part: Part, seed: int) -> NDArray[np.bool_]:
    """The training examples that `CleanLearning.find_label_issues` marks, on logistic regression.

    The regression is scikit-learn's with its default strength, C = 1.
    """
    from lns.paper.rivals import clean_learning

    rows = len(part.train)
    learner = clean_learning(1 / (2 * rows), rows, seed)
    issues = learner.find_label_issues(part.train.X, (part.y > 0).astype(int))
    return np.asarray(issues["is_label_issue"], dtype=bool)
