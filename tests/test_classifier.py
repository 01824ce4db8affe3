"""Tests of the scikit-learn classifier."""

from __future__ import annotations

import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import lns
from lns import QLossClassifier
from lns.errors import InvalidInput

QUICK = {"q": -0.5, "max_rounds": 2}


# A slow test runs the same checks with all defaults.
@parametrize_with_checks([QLossClassifier(**QUICK)])
def test_scikit_learn_compatible(estimator, check):
    """Tests every check of scikit-learn, none excepted."""
    check(estimator)


@pytest.fixture(scope="module")
def noisy():
    """Two features, a boundary across, a fifth of the labels of one class flipped: X, noisy y, flipped."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) * [1.0, 50.0] + [3.0, -200.0]
    signed = (X[:, 0] - 3.0) + (X[:, 1] + 200.0) / 50.0
    X, signed = X[np.abs(signed) > 0.3], signed[np.abs(signed) > 0.3]
    y, flipped = lns.flip_labels(np.where(signed > 0, 1, -1), 0.2, seed=1)
    return X, y, flipped


def test_flips_are_flagged_and_rank_lowest(noisy):
    """Tests with default parameters that flipped labels are found, flagged and ranked."""
    X, y, flipped = noisy
    model = QLossClassifier().fit(X, y)
    truth = np.where(flipped, -y, y)
    assert model.score(X, truth) > 0.98
    assert (model.flagged_ & flipped).sum() > 0.85 * flipped.sum()
    assert (model.flagged_ & ~flipped).sum() < 0.1 * flipped.sum()
    quality = model.label_quality()
    np.testing.assert_array_equal(quality <= 0.5, model.flagged_)
    lowest = np.argsort(quality)[: flipped.sum()]
    assert flipped[lowest].mean() > 0.9
    np.testing.assert_array_equal(model.result_.flagged, model.flagged_)
    assert model.flip_rates_[-1] == pytest.approx(0.2, abs=0.1)
    assert model.flip_rates_[1] < 0.1


def test_weights_are_in_the_units_of_the_features(noisy):
    """Tests coef_ and intercept_ against scores, margins and the search's own weights of scaled features."""
    X, y, _ = noisy
    model = QLossClassifier(**QUICK).fit(X, y)
    scores = X @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), scores)
    scaled = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    np.testing.assert_allclose(scaled @ model.result_.weights + model.result_.bias, scores, rtol=1e-6)
    problem = lns.QLossProblem(scaled, y, q=-0.5, lam=model.lam_, weight_range=(-1, 1), bias_range=(-1, 1))
    objective = problem.objective(model.result_.weights, model.result_.bias)
    assert model.objective_ == pytest.approx(objective, rel=1e-5)
    np.testing.assert_array_equal(model.flagged_, y * scores <= -0.5)


def test_quality_of_new_labels(noisy):
    """Tests that training labels given again get the same quality, and the formula of the docstring."""
    X, y, _ = noisy
    model = QLossClassifier(**QUICK).fit(X, y)
    np.testing.assert_allclose(model.label_quality(X, y), model.label_quality())
    margin = y * model.decision_function(X)
    np.testing.assert_allclose(model.label_quality(), 1 / (1 + np.exp(-4 * (margin + 0.5) / 1.5)))
    assert (model.label_quality(X, -y)[model.flagged_] > 0.5).all()


@pytest.mark.parametrize("labels", [("no", "yes"), (0, 1), (False, True), (2.0, 7.0)])
def test_any_two_labels(noisy, labels):
    """Tests that only the names of the predictions change with the labels."""
    X, y, _ = noisy
    named = np.array(labels)[(y + 1) // 2]
    model = QLossClassifier(**QUICK).fit(X, named)
    expected = QLossClassifier(**QUICK).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), np.array(labels)[(expected.predict(X) + 1) // 2])
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.classes_.tolist() == list(labels)


@pytest.mark.parametrize("convert", ["csr_matrix", "csc_matrix", "coo_array", "lil_matrix", "dok_matrix"])
def test_sparse_input(convert):
    """Tests that sparse data of every kind gives one model, and predicts like dense data."""
    rng = np.random.default_rng(0)
    X = rng.random((80, 6)) * (rng.random((80, 6)) < 0.4)
    y = np.where(X[:, 0] > X[:, 1], "b", "a")
    made = getattr(sparse, convert)(X)
    model = QLossClassifier(**QUICK).fit(made, y)
    np.testing.assert_array_equal(model.coef_, QLossClassifier(**QUICK).fit(sparse.csr_matrix(X), y).coef_)
    np.testing.assert_array_equal(model.predict(made), model.predict(X))


def test_single_precision(noisy):
    """Tests that float32 data is taken and gives nearly the same model."""
    X, y, _ = noisy
    single, double = (QLossClassifier(**QUICK).fit(X.astype(kind), y) for kind in (np.float32, np.float64))
    assert (single.predict(X) == double.predict(X)).mean() > 0.99


def test_order_and_repetition_do_not_matter(noisy):
    """Tests that shuffled rows, and weights instead of copies, give the very same model."""
    X, y, _ = noisy
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 3, len(y))
    model = QLossClassifier(**QUICK).fit(X, y, sample_weight=weight)
    copies = rng.permutation(np.repeat(np.arange(len(y)), weight))
    other = QLossClassifier(**QUICK).fit(X[copies], y[copies])
    np.testing.assert_array_equal(model.coef_, other.coef_)
    np.testing.assert_array_equal(model.flagged_[copies], other.flagged_)


def test_more_than_two_classes():
    """Tests one-against-rest: shapes, predictions, flags of labels changed to another class."""
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    wrong = names.copy()
    wrong[:4] = "virginica"
    model = QLossClassifier(q=-0.5, max_rounds=5).fit(X, wrong)
    scores = model.decision_function(X)
    assert scores.shape == (150, 3)
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == model.objective_.shape == (3,)
    assert len(model.result_) == 3
    np.testing.assert_array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])
    assert model.score(X, names) > 0.9
    assert model.flagged_[:4].all()
    assert not (model.flagged_ & (model.predict(X) == wrong)).any()
    np.testing.assert_array_equal(model.label_quality() <= 0.5, model.flagged_)


def test_chosen_and_given_q_are_reported():
    """Tests q_, lam_ and flip_rates_ for two and for three classes, chosen and given."""
    X, y = load_iris(return_X_y=True)
    given = {0: -1.0, 1: -0.5, 2: 0.0}
    three = QLossClassifier(q=given, lam=0.01, max_rounds=1).fit(X, y)
    assert three.q_ == given
    assert three.lam_ == 0.01
    assert three.flip_rates_ is None
    chosen = QLossClassifier(lam=0.001, max_rounds=1).fit(X, y)
    assert list(chosen.q_) == [0, 1, 2]
    assert chosen.q_[0] == chosen.q_[1] == chosen.q_[2] <= 0
    two = QLossClassifier(flip_rates={1: 0.25, 2: 0.0}, max_rounds=1).fit(X[50:], y[50:])
    assert set(two.q_) == {1, 2}
    assert two.flip_rates_ == {1: 0.25, 2: 0.0}


def test_q_of_a_class_reaches_its_examples(noisy):
    """Tests that q per label is the problem's q per sign."""
    X, y, _ = noisy
    named = np.where(y > 0, "up", "down")
    model = QLossClassifier(q={"up": 0.0, "down": -2.0}, max_rounds=1).fit(X, named)
    margin = y * model.decision_function(X)
    np.testing.assert_array_equal(model.flagged_, margin <= np.where(y > 0, 0.0, -2.0))


def test_copies_of_a_model(noisy, tmp_path):
    """Tests clone, pickle and joblib."""
    X, y, _ = noisy
    model = QLossClassifier(**QUICK).fit(X, y)
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    joblib.dump(model, tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model")):
        np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(copy.label_quality(), model.label_quality())


def test_pipeline_and_grid_search(noisy):
    """Tests a grid over q, as a number and by class, and λ, inside a pipeline."""
    X, y, flipped = noisy
    pipe = make_pipeline(StandardScaler(), QLossClassifier(max_rounds=1))
    grid = {"qlossclassifier__q": [-1000.0, {-1: -1.0, 1: 0.0}], "qlossclassifier__lam": [1e-4, 1e-2]}
    search = GridSearchCV(pipe, grid, cv=2, error_score="raise").fit(X, y)
    assert set(search.best_params_) == set(grid)
    assert search.score(X, np.where(flipped, -y, y)) > 0.9


def test_feature_names(noisy):
    """Tests that names of columns are kept and checked."""
    pandas = pytest.importorskip("pandas")
    X, y, _ = noisy
    frame = pandas.DataFrame(X, columns=["width", "height"])
    model = QLossClassifier(**QUICK).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["width", "height"]
    assert model.n_features_in_ == 2
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["height", "width"]])


def test_seeds(noisy):
    """Tests that the same seed repeats a fit, and that every kind of random_state is taken."""
    X, y, _ = noisy
    first, second = (QLossClassifier(**QUICK, random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    for state in (None, np.random.RandomState(1), np.int64(5)):
        assert QLossClassifier(**QUICK, random_state=state).fit(X, y).score(X, y) > 0.7


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"q": 0.5}, "q must be at most 0. Got 0.5"),
        ({"q": "automatic"}, 'q must be "auto", a number'),
        ({"q": float("nan")}, 'q must be "auto", a number'),
        ({"q": {-1: -0.5}}, r"q as a mapping must have the keys \[-1, 1\]. Got \[-1\]"),
        ({"q": {"a": -0.5, "b": 0}}, "q as a mapping must have the keys"),
        ({"q": {-1: "x", 1: 0}}, r"q\[-1\] must be a number"),
        ({"q": {-1: 0.1, 1: 0}}, "q must be at most 0. Got 0.1"),
        ({"lam": -1.0}, "lam must be at least 0"),
        ({"lam": "small"}, 'lam must be "auto" or a number'),
        ({"flip_rates": 0.3}, 'flip_rates must be "auto" or {label: rate}'),
        ({"flip_rates": {-1: 0.6, 1: 0.6}}, "add up to less than 1"),
        ({"weight_bits": 0}, "weight_bits must be an int"),
        ({"weight_range": (1, 0)}, "weight_range must have lo < hi"),
        ({"bias_bits": 2.5}, "bias_bits must be an int"),
        ({"solver": "oracle"}, "solver 'oracle'"),
        ({"solver_options": {"num_raeds": 3}}, "num_raeds"),
        ({"time_limit": 0}, "time_limit is out of range"),
        ({"time_limit": "10 s"}, "time_limit must be a number of seconds"),
        ({"max_rounds": 0}, "max_rounds must be a whole number"),
        ({"patience": 1.5}, "patience must be a whole number"),
        ({"backend": "cloud"}, "Unknown backend"),
        ({"workers": 0}, "workers must be at least 1"),
        ({"random_state": "x"}, "seed"),
    ],
)
def test_wrong_parameters_are_found_before_the_work(noisy, monkeypatch, parameters, message):
    """Tests that nothing is chosen or searched before every parameter is checked."""
    monkeypatch.setattr("lns.classifier.choose_q", lambda *args, **kwargs: pytest.fail("too late"))
    monkeypatch.setattr(QLossClassifier, "_fit_one", lambda *args, **kwargs: pytest.fail("too late"))
    X, y, _ = noisy
    with pytest.raises((ValueError, TypeError), match=message):
        QLossClassifier(**parameters).fit(X, y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, np.ones(len(y))), "at least two classes"),
        (lambda X, y: (X[:-1], y), "inconsistent numbers of samples"),
        (lambda X, y: (np.where(X > 4, np.nan, X), y), "NaN"),
        (lambda X, y: (X[:, 0], y), "Expected 2D array"),
        (lambda X, y: (X, np.c_[y, y]), "1d array"),
        (lambda X, y: (X, np.linspace(0, 1, len(y))), "Unknown label type"),
        (lambda X, y: (X, [None] * len(y)), "nput y contains NaN|nknown label type"),
        (lambda X, y: (X * 1j, y), "Complex data"),
    ],
)
def test_wrong_data(noisy, change, message):
    """Tests that unusable data is refused with a reason."""
    X, y, _ = noisy
    with pytest.raises(ValueError, match=message):
        QLossClassifier(**QUICK).fit(*change(X, y))


@pytest.mark.parametrize(
    ("weight", "message"),
    [(-1.0, "at least 0"), (0.0, "only zero weights"), (np.nan, "NaN")],
)
def test_wrong_weights(noisy, weight, message):
    """Tests that unusable weights are refused."""
    X, y, _ = noisy
    with pytest.raises(ValueError, match=message):
        QLossClassifier(**QUICK).fit(X, y, sample_weight=np.full(len(y), weight))
    with pytest.raises(InvalidInput, match="one per row"):
        QLossClassifier(**QUICK).fit(X, y, sample_weight=[1.0, 2.0])


def test_a_class_without_weight_does_not_exist(noisy):
    """Tests that labels nobody is trained on are neither predicted nor judged."""
    X, y, _ = noisy
    labels = y.copy()
    labels[:5] = 7
    model = QLossClassifier(**QUICK).fit(X, labels, sample_weight=(labels != 7).astype(float))
    assert model.classes_.tolist() == [-1, 1]
    assert np.isnan(model.label_quality()[:5]).all()
    assert not model.flagged_[:5].any()


def test_label_quality_says_what_it_needs(noisy):
    """Tests wrong calls of label_quality."""
    X, y, _ = noisy
    model = QLossClassifier(**QUICK).fit(X, y)
    with pytest.raises(InvalidInput, match="both X and y"):
        model.label_quality(X)
    with pytest.raises(InvalidInput, match=r"labels trained with: -1, 1\. Got -?2\."):
        model.label_quality(X, y * 2)


def test_three_classes_take_no_rates():
    """Tests that rates of three classes are refused, not ignored."""
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InvalidInput, match="two classes only"):
        QLossClassifier(flip_rates={0: 0.1, 1: 0.1, 2: 0.1}).fit(X, y)


def test_other_solvers(noisy):
    """Tests that solver and its options reach the search."""
    X, y, _ = noisy
    model = QLossClassifier(**QUICK, solver="sa", solver_options={"num_reads": 3}).fit(X, y)
    assert model.result_.solver == "sa"


def test_scikit_learn_is_imported_by_the_classifier_only():
    """Tests that importing the package, and solving a problem, needs no scikit-learn."""
    code = "import sys, lns; lns.solve; assert 'sklearn' not in sys.modules; lns.QLossClassifier"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_quick_on_small_data():
    """Tests that a default fit of a small data set ends by itself, not by the clock."""
    X, y = load_breast_cancer(return_X_y=True)
    model = QLossClassifier(time_limit=None).fit(X, y)
    assert model.result_.stop_reason in ("no_improvement", "max_rounds")
    assert model.n_iter_ <= 50
