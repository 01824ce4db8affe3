"""Tests of the data set class, of its parts and of its key figures."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from lns.datasets.dataset import Dataset
from lns.datasets.split import describe, subsample, train_test_split
from lns.datasets.synthetic import mease_wyner
from lns.errors import InvalidInput


def _sparse_set() -> Dataset:
    X = sparse.csr_matrix(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0], [1, 1, 0]], dtype=np.float32))
    return Dataset("tiny", X, np.array([1, -1, -1, -1]))


def test_dense_is_column_major_float32() -> None:
    """Tests that a dense matrix is kept column-major in single precision, with int8 labels."""
    data = Dataset("a", np.arange(6.0).reshape(3, 2), np.array([1, -1, 1]))
    assert data.X.flags.f_contiguous
    assert data.X.dtype == np.float32
    assert data.y.dtype == np.int8


def test_sparse_stays_csr() -> None:
    """Tests that any sparse format becomes CSR in single precision."""
    data = Dataset("a", sparse.coo_matrix(np.eye(3)), np.array([1, -1, 1]))
    assert sparse.issparse(data.X)
    assert data.X.format == "csr"
    assert data.X.dtype == np.float32


def test_is_frozen() -> None:
    """Tests that fields cannot be replaced."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        _sparse_set().name = "other"  # type: ignore[misc]


def test_repr_is_short() -> None:
    """Tests that the representation names the size and not the values."""
    assert repr(_sparse_set()) == "Dataset('tiny', 4 rows x 3 features, sparse)"


def test_rows_must_match() -> None:
    """Tests that X and y of different lengths are refused."""
    with pytest.raises(InvalidInput, match="X has 3 rows but y has 2"):
        Dataset("a", np.zeros((3, 2)), np.array([1, -1]))


def test_features_must_be_a_table() -> None:
    """Tests that a one-dimensional X is refused."""
    with pytest.raises(InvalidInput, match="X must have two dimensions"):
        Dataset("a", np.zeros(3), np.array([1, -1, 1]))


@pytest.mark.parametrize("labels", [[0, 1, 1], [1.5, -1, 1], ["a", "b", "a"], [True, True, True]])
def test_labels_must_be_signs(labels: list[object]) -> None:
    """Tests that labels other than -1 and +1 are refused."""
    with pytest.raises(InvalidInput, match=r"labels y must be -1 or \+1"):
        Dataset("a", np.zeros((3, 2)), np.array(labels))


def test_take_keeps_order_and_storage() -> None:
    """Tests that taking rows follows the given order and stays column-major."""
    data = mease_wyner(n=10)
    part = data.take(np.array([7, 2]))
    assert part.X.flags.f_contiguous
    np.testing.assert_array_equal(part.X, data.X[[7, 2]])
    np.testing.assert_array_equal(part.y, data.y[[7, 2]])


def test_take_of_sparse() -> None:
    """Tests that taking rows of sparse data gives sparse data."""
    part = _sparse_set().take(np.array([3, 0]))
    assert part.X.toarray().tolist() == [[1, 1, 0], [0, 1, 0]]


def test_describe_sparse() -> None:
    """Tests the key figures of a set that can be counted by hand: 4 of 12 entries, 1 of 4 positives."""
    summary = describe(_sparse_set())
    assert (summary.rows, summary.features) == (4, 3)
    assert summary.density_percent == pytest.approx(100 / 3)
    assert summary.baseline_error_percent == 25.0


def test_describe_ignores_stored_zeros() -> None:
    """Tests that zeros stored in a sparse matrix do not count."""
    X = sparse.csr_matrix((np.array([0.0, 1.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2))
    assert describe(Dataset("a", X, np.array([1]))).density_percent == 50.0


@given(n=st.integers(2, 60), fraction=st.floats(0.05, 0.95), seed=st.integers(0, 100))
def test_split_is_a_partition(n: int, fraction: float, seed: int) -> None:
    """Tests that each row is on exactly one side, in the asked proportion."""
    data = mease_wyner(n=n)
    if not 0 < round(n * fraction) < n:
        return
    train, test = train_test_split(data, fraction, seed)
    assert len(test) == round(n * fraction)
    assert sorted([*train, *test]) == list(range(n))


def test_split_depends_on_the_seed() -> None:
    """Tests that equal seeds give equal splits and other seeds others."""
    data = mease_wyner(n=100)
    first, again, other = (train_test_split(data, seed=seed)[1].tolist() for seed in (3, 3, 4))
    assert first == again
    assert first != other


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, float("nan"), True, "0.3"])
def test_split_refuses_fraction(fraction: float) -> None:
    """Tests that a fraction outside (0, 1) is refused."""
    with pytest.raises(InvalidInput, match=r"'test_fraction' parameter must be a number in \(0, 1\)"):
        train_test_split(mease_wyner(n=10), fraction)


def test_split_refuses_an_empty_side() -> None:
    """Tests that a split without test rows is refused."""
    with pytest.raises(InvalidInput, match="leaves one side of the split empty"):
        train_test_split(mease_wyner(n=10), 0.01)


def test_subsample_draws_distinct_rows() -> None:
    """Tests that a part has the asked number of distinct rows of the set."""
    data = mease_wyner(n=50)
    part = subsample(data, 20, seed=1)
    rows = {row.tobytes() for row in np.ascontiguousarray(data.X)}
    drawn = {row.tobytes() for row in np.ascontiguousarray(part.X)}
    assert len(part) == len(drawn) == 20
    assert drawn < rows


def test_subsample_of_all_rows() -> None:
    """Tests that the largest part is the set itself."""
    data = mease_wyner(n=10)
    np.testing.assert_array_equal(subsample(data, 10).X, data.X)


@pytest.mark.parametrize("rows", [0, 11, 2.0, True])
def test_subsample_refuses_rows(rows: int) -> None:
    """Tests that no rows and more rows than there are, are refused."""
    with pytest.raises(InvalidInput, match=r"must be an int in \[1, 10\]"):
        subsample(mease_wyner(n=10), rows)
