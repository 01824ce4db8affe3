"""Tests of the data matrix and of the passes over its rows."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading

import numpy as np
import pytest
from scipy import sparse

from lns import matrix
from lns.matrix import CHUNK, DenseMatrix, SparseMatrix, as_matrix, over_rows
from lns.problem import QLossProblem

ROWS = 3 * CHUNK + 1000


@pytest.fixture(scope="module")
def long_data():
    """More rows than the threads share in one chunk, with a last chunk of odd size."""
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, size=(ROWS, 33)).astype(np.float32)
    return X, np.where(rng.random(ROWS) < 0.4, 1.0, -1.0)


LONG_LAYOUTS = {"rows": np.ascontiguousarray, "columns": np.asfortranarray, "sparse": sparse.csc_array}


@pytest.fixture(params=LONG_LAYOUTS)
def long_problem(request, long_data):
    """A problem that runs on all cores, in each layout."""
    X, y = long_data
    return QLossProblem(LONG_LAYOUTS[request.param](X), y, weight_range=(-1, 1), bias_range=(-1, 1))


def test_chunks_cover_all_rows_in_order():
    """Tests that every row is visited once and results come back in the order of the rows."""
    pieces = over_rows(lambda a, z: np.arange(a, z), ROWS, width=1000)
    np.testing.assert_array_equal(np.concatenate(pieces), np.arange(ROWS))


def test_chunks_do_not_depend_on_the_number_of_cores(monkeypatch):
    """Tests that sums are made of the same parts on one core and on several."""
    several = over_rows(lambda a, z: (a, z), ROWS, width=1000)
    monkeypatch.setattr(matrix, "_CORES", 1)
    assert over_rows(lambda a, z: (a, z), ROWS, width=1000) == several


def test_short_passes_stay_on_the_calling_thread():
    """Tests that a small problem starts no threads."""
    assert set(over_rows(lambda a, z: threading.get_ident(), ROWS, width=1)) == {threading.get_ident()}


def test_an_error_in_a_thread_reaches_the_caller():
    """Tests that nothing is swallowed on the way."""
    with pytest.raises(ZeroDivisionError):
        over_rows(lambda a, z: 1 / 0, ROWS, width=1000)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    """Tests that a process forked after a threaded pass does not wait for threads that it has not got."""
    over_rows(lambda a, z: 0, ROWS, width=1000)
    child = multiprocessing.get_context("fork").Process(
        target=lambda: sys.exit(len(over_rows(lambda a, z: 0, ROWS, width=1000)))
    )
    child.start()
    child.join(timeout=20)
    if child.exitcode is None:
        child.kill()
    assert child.exitcode == 4


def test_threaded_objective_equals_numpy(long_problem, long_data):
    """Tests the objective on several chunks of rows."""
    X, y = long_data
    w, b = np.linspace(-0.5, 0.5, 33), 0.25
    m = y * (X.astype(float) @ w + b)
    loss = np.minimum(np.maximum(1 - m, 0) ** 2, 2.25).mean()
    assert long_problem.objective(w, b) == pytest.approx(loss + 1e-6 * w @ w, rel=1e-12)


def test_the_same_call_gives_the_same_bits(long_problem):
    """Tests that threads do not change the order of sums."""
    w = np.linspace(-0.5, 0.5, 33)
    assert len({long_problem.objective(w, 0.1) for _ in range(5)}) == 1
    first, second = (long_problem.loss_and_gradient(w, 0.1)[1] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_dense_data_is_used_where_it_lies():
    """Tests that neither memory order is copied."""
    for order in "CF":
        X = np.ones((4, 3), order=order)
        assert np.shares_memory(as_matrix(X).X, X)


def test_sparse_data_stays_sparse():
    """Tests the kinds behind the two forms of data."""
    assert isinstance(as_matrix(np.ones((2, 2))), DenseMatrix)
    assert isinstance(as_matrix(sparse.eye_array(3, format="csr")), SparseMatrix)


def test_sparse_data_is_never_made_dense(monkeypatch):
    """Tests that no step of building and searching calls toarray on a matrix with all examples."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((5000, 400), density=0.01, format="csr", rng=rng)
    original = sparse.csr_array.toarray

    def guarded(self, *args, **kwargs):
        assert 5000 not in self.shape, "made dense"
        return original(self, *args, **kwargs)

    for kind in (sparse.csr_array, sparse.csc_array, sparse.coo_array):
        monkeypatch.setattr(kind, "toarray", guarded)
        monkeypatch.setattr(kind, "todense", guarded)
    problem = QLossProblem(X, np.where(np.arange(5000) % 2, 1, -1))
    state = problem.state()
    problem.loss_and_gradient(state.weights, state.bias)
    state.evaluate(state.codes[None, :] - 1)
    problem.subset(np.arange(0, 5000, 7)).objective(state.weights, state.bias)
    problem.matrix.moments(np.array([1, 5, 400]), problem.share, problem.share)


def test_blocks_have_a_column_of_ones_for_the_bias(layout, blobs):
    """Tests chosen rows and columns, where the column after the last is the constant 1."""
    X = blobs[0]
    block = as_matrix(layout(X)).block(np.array([7, 3]), np.array([1, 4, 5]))
    np.testing.assert_array_equal(block, np.column_stack([X[[7, 3]][:, [1, 4]], [1.0, 1.0]]))


@pytest.mark.parametrize("counting", [range(60), range(0, 60, 7), [11], []])
@pytest.mark.parametrize("columns", [[0, 2], [1, 3, 5], [5], range(6)])
def test_moments_equal_a_plain_sum(layout, blobs, columns, counting):
    """Tests the weighted Gram matrix and sums, with and without the bias, if all or few examples count."""
    X = blobs[0]
    count = np.isin(np.arange(60), counting)
    h, g = np.where(count, np.linspace(-1, 2, 60), 0.0), np.where(count, np.linspace(3, -1, 60), 0.0)
    second, first = as_matrix(layout(X)).moments(np.array(columns), h, g)
    chosen = np.column_stack([X, np.ones(60)])[:, list(columns)]
    np.testing.assert_allclose(
        second, sum(h[s] * np.outer(chosen[s], chosen[s]) for s in range(60)), atol=1e-12
    )
    np.testing.assert_allclose(first, sum(g[s] * chosen[s] for s in range(60)), atol=1e-12)


def test_products_and_column_means(layout, blobs):
    """Tests X w, Xᵀ r and Σ p x² in every layout."""
    X, data = blobs[0], as_matrix(layout(blobs[0]))
    w, r, p = np.arange(5.0), np.arange(60.0), np.full(60, 1 / 60)
    np.testing.assert_allclose(data.dot(w), X @ w, rtol=1e-6)
    np.testing.assert_allclose(data.transposed_dot(r), X.T @ r, rtol=1e-5)
    np.testing.assert_allclose(data.squared_column_means(p), (X**2).mean(axis=0), rtol=1e-6)


def test_take_keeps_the_order_of_the_rows(layout, blobs):
    """Tests a subset of rows, repeated ones included."""
    rows = np.array([9, 2, 2, 50])
    taken = as_matrix(layout(blobs[0])).take(rows).X
    np.testing.assert_array_equal(taken.toarray() if sparse.issparse(taken) else taken, blobs[0][rows])
