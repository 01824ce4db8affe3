"""Tests of model files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse

import lns
from lns.datasets.dataset import Dataset
from lns.datasets.scaling import fit_scaling
from lns.errors import DataError, InvalidInput
from lns.model import LinearModel, load_model

RAW = np.array([[0.0, 10.0], [5.0, 30.0], [10.0, 20.0], [2.0, 11.0]])


@pytest.fixture
def model():
    """A model on columns that were scaled, one of them shifted."""
    scaling = fit_scaling(RAW)
    data = Dataset("raw", scaling.apply(RAW), [1, -1, 1, -1], scaling, ("ham", "spam"), ("words", "links"))
    problem = lns.QLossProblem(data.X, data.y, q={-1: -1.0, 1: 0.0}, weight_range=(-3, 3), bias_range=(-1, 1))
    return LinearModel.of(problem, [0.6, -1.8], 0.25, data)


def test_scores_of_raw_rows_are_those_of_scaled_ones(model):
    """Tests that the scaling in the file is that of the training data, dense or sparse."""
    expected = fit_scaling(RAW).apply(RAW).astype(float) @ [0.6, -1.8] + 0.25
    assert model.decision_function(RAW) == pytest.approx(expected, rel=1e-6)
    assert model.decision_function(sparse.csr_matrix(RAW)) == pytest.approx(expected, rel=1e-6)
    assert model.decision_function(fit_scaling(RAW).apply(RAW), scaled=True) == pytest.approx(expected)
    assert model.predict(RAW).tolist() == ["spam" if score > 0 else "ham" for score in expected]


def test_a_saved_model_is_the_same(model, tmp_path):
    """Tests the round trip, by file and by folder, and that the file is plain JSON."""
    model.save(tmp_path / "model.json")
    for path in (tmp_path, tmp_path / "model.json", str(tmp_path)):
        again = lns.load_model(path)
        assert (again.decision_function(RAW) == model.decision_function(RAW)).all()
        assert again.classes == ("ham", "spam")
        assert again.feature_names == ("words", "links")
        assert again.training == model.training
    content = json.loads((tmp_path / "model.json").read_text())
    assert content["what"] == "qlns model"
    assert content["format"] == 1
    assert content["training"]["q"] == {"-1": -1.0, "1": 0.0}
    assert content["training"]["weight_grid"] == {"bits": 4, "lo": [-3.0, -3.0], "hi": [3.0, 3.0]}
    assert list(tmp_path.iterdir()) == [tmp_path / "model.json"]


def test_a_model_without_a_data_set_takes_rows_as_they_are(tmp_path):
    """Tests the model of a problem made from arrays: no scaling, no names, labels -1 and +1, one q."""
    problem = lns.QLossProblem(RAW, [1, -1, 1, -1], q=-0.5, weight_range=(-1, 1), bias_range=(-1, 1))
    LinearModel.of(problem, [1.0, -0.5], 0.0).save(tmp_path / "m.json")
    model = load_model(tmp_path / "m.json")
    assert model.predict(RAW).tolist() == np.where(RAW @ [1.0, -0.5] > 0, 1, -1).tolist()
    assert model.training["q"] == -0.5
    assert model.training["objective"] == problem.objective([1.0, -0.5], 0.0)


def test_one_q_per_example_is_not_written_as_one(tmp_path):
    """Tests that a file does not claim a q that was not used."""
    q = [-1.0, -0.5, -0.2, -0.5]
    problem = lns.QLossProblem(RAW, [1, -1, 1, -1], q=q, weight_range=(-1, 1), bias_range=(-1, 1))
    assert LinearModel.of(problem, [1.0, -0.5], 0.0).training["q"] is None


@pytest.mark.parametrize("X", [np.zeros((3, 1)), np.zeros((3, 3)), np.zeros(2)])
def test_rows_with_other_columns_are_refused(model, X):
    """Tests the message about the number of features."""
    with pytest.raises(InvalidInput, match="X must have 2 columns"):
        model.predict(X)


def spoil(content, **changes):
    """A model file with some entries changed."""
    return json.dumps({**content, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"what": "something"}, "is not a model of lns train"),
        ({"format": 2}, "has the format 2; this version reads 1: update qlns"),
        ({"weights": ["a", "b"]}, "is damaged"),
        ({"weights": [1.0]}, "is damaged"),
        ({"weights": [1.0, float("nan")]}, "is damaged"),
        ({"scaling": {"offset": [0.0, 0.0]}}, "is damaged"),
        ({"feature_names": ["one"]}, "2 weights but 1 names"),
        ({"classes": [1]}, "is damaged"),
        ({"bias": None}, "is damaged"),
    ],
)
def test_damaged_files_are_errors_in_one_sentence(model, tmp_path, changes, message):
    """Tests that no damage ends in a traceback of something else."""
    path = tmp_path / "model.json"
    path.write_text(spoil(model.to_dict(), **changes))
    with pytest.raises(DataError, match=message):
        load_model(path)


@pytest.mark.parametrize(("text", "message"), [("{", "is not JSON"), ("[]", "is not a model")])
def test_other_files_are_no_models(tmp_path, text, message):
    """Tests files that are something else."""
    (tmp_path / "model.json").write_text(text)
    with pytest.raises(DataError, match=message):
        load_model(tmp_path)


def test_a_missing_model_says_how_to_make_one(tmp_path):
    """Tests the remedy, for a folder and for a file."""
    with pytest.raises(DataError, match=r"lns train DATASET --out .*nowhere' makes one"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"There is no model .*model.json"):
        load_model(tmp_path)
