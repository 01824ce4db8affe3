"""Tests of the scaling of columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from lns.datasets.scaling import fit_scaling, scale_columns
from lns.errors import InvalidInput

tables = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 12), st.integers(1, 5)), elements=st.floats(-1e6, 1e6)
)


@given(tables)
def test_dense_is_in_the_unit_interval(X: np.ndarray) -> None:
    """Tests that dense columns fill [0, 1] or are zero."""
    scaled = scale_columns(X)
    assert scaled.flags.f_contiguous
    assert scaled.dtype == np.float32
    for before, after in zip(X.T, scaled.T, strict=True):
        expected = {0.0} if before.min() == before.max() else {0.0, 1.0}
        assert {float(after.min()), float(after.max())} == expected


@given(tables)
def test_dense_keeps_the_order(X: np.ndarray) -> None:
    """Tests that scaling never reverses the order within a column."""
    scaled = scale_columns(X)
    for before, after in zip(X.T, scaled.T, strict=True):
        assert (np.diff(after[np.argsort(before, kind="stable")]) >= 0).all()


@given(tables)
def test_sparse_keeps_zeros_and_signs(X: np.ndarray) -> None:
    """Tests that sparse columns keep their zeros and signs and lie in [-1, 1]."""
    X[np.abs(X) < 1] = 0
    scaled = scale_columns(sparse.csr_matrix(X))
    assert sparse.issparse(scaled)
    np.testing.assert_array_equal(np.sign(scaled.toarray()), np.sign(X))
    assert np.abs(scaled.data).max(initial=0) <= 1


def test_sparse_without_negatives() -> None:
    """Tests that sparse columns without negative entries are divided by their largest entry."""
    X = sparse.csr_matrix(np.array([[2.0, 0.0, 0.0], [8.0, 3.0, 0.0]]))
    assert scale_columns(X).toarray().tolist() == [[0.25, 0, 0], [1, 1, 0]]


def test_sparse_with_negatives() -> None:
    """Tests that a sparse column with negative entries is divided by its largest absolute value."""
    assert scale_columns(sparse.csr_matrix(np.array([[-4.0], [1.0]]))).toarray().tolist() == [[-1], [0.25]]


def test_large_numbers_keep_their_differences() -> None:
    """Tests that columns far from zero are scaled before they lose digits to single precision."""
    X = np.array([[1.7e9], [1.7e9 + 1], [1.7e9 + 2]])
    assert scale_columns(X).ravel().tolist() == [0.0, 0.5, 1.0]


def test_fitted_scaling_is_used_on_new_rows() -> None:
    """Tests that new rows are scaled like the fitted ones, even beyond [0, 1]."""
    scaling = fit_scaling(np.array([[0.0], [10.0]]))
    assert scaling.apply(np.array([[5.0], [20.0]])).ravel().tolist() == [0.5, 2.0]


def test_columns_must_match() -> None:
    """Tests that a scaling is not applied to another number of columns."""
    with pytest.raises(InvalidInput, match="X has 2 columns but the scaling has 1"):
        fit_scaling(np.zeros((2, 1))).apply(np.zeros((2, 2)))


def test_shift_would_fill_sparse_data() -> None:
    """Tests that sparse data is refused where it would have to be filled."""
    scaling = fit_scaling(np.array([[1.0], [2.0]]))
    with pytest.raises(InvalidInput, match="cannot be applied to sparse X"):
        scaling.apply(sparse.csr_matrix(np.ones((1, 1))))
