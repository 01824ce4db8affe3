"""Slow tests of what the classifier is for: right answers from wrong labels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import lns
from lns import QLossClassifier
from lns.bench.classifier import ahead_in_the_mean, load, main, run
from lns.datasets.split import train_test_split
from lns.errors import DataError

pytestmark = pytest.mark.slow


@parametrize_with_checks([QLossClassifier()])
def test_scikit_learn_compatible_with_all_defaults(estimator, check):
    """Tests every check of scikit-learn, none excepted, on the classifier that users get."""
    check(estimator)


@pytest.mark.parametrize("seed", range(3))
def test_tuned_alike_it_beats_the_linear_svm(seed):
    """Tests Mease-Wyner with 20 % noise, both tuned by the same grid search on the noisy labels."""
    data = lns.load_dataset("mease-wyner")
    train, test = (data.take(rows) for rows in train_test_split(data, seed=seed))
    y, _ = lns.flip_labels(train.y, 0.2, seed=seed)
    q = [-2.0, -1.0, -0.5, {-1: -1.0, 1: 0.0}, {-1: 0.0, 1: -1.0}]
    ours = GridSearchCV(QLossClassifier(max_rounds=10), {"q": q, "lam": [1e-5, 1e-4, 1e-3]}, cv=5)
    theirs = GridSearchCV(LinearSVC(), {"C": np.logspace(-3, 3, 15)}, cv=5)
    errors = [100 * (1 - search.fit(train.X, y).score(test.X, test.y)) for search in (ours, theirs)]
    print(f"seed {seed}: q-loss {errors[0]:.2f} % {ours.best_params_}, LinearSVC {errors[1]:.2f} %")
    assert errors[0] <= errors[1] - 5


@pytest.mark.parametrize("name", ["breast-cancer", "digits", "adult9"])
def test_by_default_it_is_no_worse_than_others_on_noisy_labels(name):
    """Tests 30 % flips of either class, in every run."""
    try:
        load(name)
    except DataError:
        pytest.skip("needs the data")
    found = [one for one in run([name], 0.3, 2) if one.flipped != "none"]
    for one in found:
        print(one)
    assert all(one.ahead for one in found)
    assert ahead_in_the_mean(found)


@pytest.mark.parametrize("loader", [load_iris, load_wine, load_breast_cancer, load_digits])
def test_clean_labels_cost_little(loader):
    """Tests five folds of clean data, with up to ten classes, against logistic regression."""
    X, y = loader(return_X_y=True)
    errors = [
        100 * (1 - cross_val_score(make_pipeline(MinMaxScaler(), model), X, y, cv=5).mean())
        for model in (QLossClassifier(max_rounds=10), LogisticRegression(max_iter=1000))
    ]
    print(f"{loader.__name__}: q-loss {errors[0]:.2f} %, logistic {errors[1]:.2f} %")
    assert errors[0] <= errors[1] + 2


def test_the_benchmark_prints_json(capsys):
    """Tests `lns bench classifier` on the smallest set."""
    assert main(["--sets", "breast-cancer", "--seeds", "1", "--json"]) == 0
    assert '"dataset": "breast-cancer"' in capsys.readouterr().out
