"""Which labels were flipped: cleanlab's answers, beside that of q-loss (its flagged examples)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lns.paper.folds import Part

# Its defaults come first; the others are there to find the best that it can do.
FILTERS = ("prune_by_noise_rate", "prune_by_class", "both", "confident_learning", "predicted_neq_given")
STRENGTHS = (1.0, 100.0)


def cleanlab_issues(part: Part, seed: int) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """The training examples that `CleanLearning.find_label_issues` marks, on logistic regression.

    Once for every strength C of the regression and every way to filter, with its name.
    """
    from cleanlab.count import estimate_cv_predicted_probabilities

    from lns.paper.rivals import clean_learning

    rows = len(part.train)
    labels = (part.y > 0).astype(int)
    for strength in STRENGTHS:
        lam = 1 / (2 * rows * strength)
        logistic = clean_learning(lam, rows, seed).clf
        likely = estimate_cv_predicted_probabilities(part.train.X, labels, clf=logistic, seed=seed)
        for way in FILTERS:
            learner = clean_learning(lam, rows, seed, filter_by=way)
            issues = learner.find_label_issues(labels=labels, pred_probs=likely)
            yield f"C = {strength:g}, {way}", np.asarray(issues["is_label_issue"], dtype=bool)
