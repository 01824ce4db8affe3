"""Tests of the training set of the classifier: distinct rows, scaled."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from lns.training_set import TrainingSet, distinct_rows


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_equal_rows_of_equal_class_are_one(convert):
    """Tests that weights are added up, and that another class is another row."""
    X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0], [1.0, 0.0]])
    made = TrainingSet.prepare(convert(X), np.array([0, 1, 0, 1]), np.array([1.0, 2.0, 4.0, 8.0]))
    assert sorted(zip(made.codes.tolist(), made.weight.tolist(), strict=True)) == [
        (0, 5.0),
        (1, 2.0),
        (1, 8.0),
    ]


def test_the_order_of_the_rows_does_not_matter():
    """Tests that a permutation, and zeros with a sign, give the very same training set."""
    rng = np.random.default_rng(0)
    X, codes = rng.integers(-1, 2, (50, 3)) * 1.0, rng.integers(0, 3, 50)
    order = rng.permutation(50)
    one = TrainingSet.prepare(X, codes, np.ones(50))
    other = TrainingSet.prepare(
        (X * -1.0 * -1.0)[order] * np.where(X[order] == 0, -1, 1), codes[order], np.ones(50)
    )
    np.testing.assert_array_equal(one.X, other.X)
    np.testing.assert_array_equal(one.codes, other.codes)
    np.testing.assert_array_equal(one.weight, other.weight)


def test_every_row_knows_its_representative():
    """Tests that the second answer leads from each row to an equal one."""
    X = np.random.default_rng(1).integers(0, 2, (40, 3)) * 1.0
    rows, group = distinct_rows(X, np.zeros(40, dtype=int))
    np.testing.assert_array_equal(X[rows[group]], X)
    assert len(rows) == len(np.unique(X, axis=0))


def test_the_caller_keeps_his_matrix():
    """Tests that repeated and zero entries of a sparse matrix are merged in a copy."""
    X = sparse.csr_matrix((np.array([1.0, 2.0, 0.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    made = TrainingSet.prepare(X, np.array([0, 1]), np.ones(2))
    assert X.nnz == 3
    assert made.X.nnz == 1
