"""Tests of the collapsed objective and of what the problem refuses."""

from __future__ import annotations

import numpy as np
import pytest
import slow_reference as slow
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from lns.errors import InvalidInput, LNSError
from lns.problem import QLossProblem

X = np.array([[0.0, 1.0], [1.0, 0.5], [0.5, 0.0], [0.25, 1.0]])
Y = np.array([-1, 1, 1, -1])
RANGES = {"weight_range": (-1, 1), "bias_range": (-1, 1)}


# ---- the objective ---------------------------------------------------------------------------------------


@settings(deadline=None)
@given(slow.problems(), st.data())
def test_objective_equals_the_formula(problem, data):
    """Tests the mean q-loss plus λ Σ w² against a plain loop, for weights on and off the grid."""
    w = [data.draw(st.floats(-3, 3)) for _ in range(problem.num_features)]
    b = data.draw(st.floats(-3, 3))
    assert problem.objective(w, b) == pytest.approx(slow.objective(problem, w, b), rel=1e-9)


def test_margins_equal_the_formula(blob_problem):
    """Tests y (w·x + b) in every layout."""
    w, b = [0.5, -1.0, 0.25, 2.0, -0.75], 0.125
    np.testing.assert_allclose(blob_problem.margins(w, b), slow.margins(blob_problem, w, b), atol=1e-12)


def test_all_zero_weights_have_objective_one(blobs):
    """Tests the value that every bound in the paper compares with."""
    assert QLossProblem(*blobs, q=-0.7, **RANGES).objective(np.zeros(5), 0.0) == pytest.approx(1.0)


def test_the_loss_is_continuous_at_q():
    """Tests the three cases of the loss: zero, quadratic, constant, and both seams."""
    problem = QLossProblem(np.array([[1.0], [-1.0]]), [1, -1], q=-0.5, lam=0.0, **RANGES)
    for m, loss in [(2.0, 0.0), (1.0, 0.0), (0.0, 1.0), (-0.5, 2.25), (-0.5001, 2.25), (-9.0, 2.25)]:
        assert problem.objective([m], 0.0) == pytest.approx(loss)


@settings(deadline=None)
@given(slow.problems(), st.data())
def test_best_target_codes_are_the_best_levels(problem, data):
    """Tests the codes against a search through all levels of each target."""
    m = np.array([data.draw(st.floats(-8, 8)) for _ in range(problem.num_examples)])
    grid, half = problem.target_grid, 2 ** (problem.target_bits - 1)
    energy = lambda s, c: (m[s] - grid.values([c])[0]) ** 2 + problem.cap[s] * (c < half)  # noqa: E731
    for s, code in enumerate(problem.best_target_codes(m)):
        assert energy(s, code) == pytest.approx(min(energy(s, c) for c in range(grid.top + 1)))


def test_flagged_examples_have_margin_at_most_q():
    """Tests the flag on both sides of q."""
    problem = QLossProblem(np.array([[-0.5], [-0.4999], [1.0]]), [1, 1, -1], q=-0.5, **RANGES)
    np.testing.assert_array_equal(problem.flagged([1.0], 0.0), [True, False, True])


def test_flagged_examples_use_their_own_q():
    """Tests that one q per class flags each class by its own."""
    problem = QLossProblem(np.array([[-0.5], [0.5]]), [1, -1], q={-1: -1.0, 1: -0.2}, **RANGES)
    np.testing.assert_array_equal(problem.flagged([1.0], 0.0), [True, False])


def test_an_infinite_q_is_the_squared_hinge():
    """Tests that q = -inf never truncates."""
    problem = QLossProblem(np.array([[-9.0], [-9.0]]), [1, -1], q=-np.inf, lam=0.0, **RANGES)
    assert problem.objective([1.0], 0.0) == pytest.approx((10**2 + 0) / 2)


def test_sample_weights_are_normalised_to_mean_one():
    """Tests that only the ratios of the weights matter."""
    one = QLossProblem(X, Y, sample_weight=[1, 2, 3, 4], **RANGES)
    other = QLossProblem(X, Y, sample_weight=[10, 20, 30, 40], **RANGES)
    assert one.objective([0.3, 0.1], 0.2) == pytest.approx(other.objective([0.3, 0.1], 0.2), rel=1e-14)


def test_a_weight_of_two_is_an_example_given_twice():
    """Tests the meaning of sample weights."""
    weighted = QLossProblem(X, Y, sample_weight=[2, 1, 1, 1], **RANGES)
    doubled = QLossProblem(X[[0, 0, 1, 2, 3]], Y[[0, 0, 1, 2, 3]], **RANGES)
    assert weighted.objective([0.3, 0.1], 0.2) == pytest.approx(doubled.objective([0.3, 0.1], 0.2))


def test_num_variables_is_that_of_the_full_qubo():
    """Tests N d_w + d_b + S d_t."""
    problem = QLossProblem(X, Y, weight_bits=3, bias_bits=5, target_bits=2, **RANGES)
    assert problem.num_variables == 2 * 3 + 5 + 4 * 2 == len(problem.to_bqm().variables)


def test_the_default_state_has_the_smallest_weights(blob_problem):
    """Tests that a state without codes starts at the levels nearest to zero."""
    codes = blob_problem.state().codes
    np.testing.assert_array_equal(codes, blob_problem.codes(np.zeros(5), 0.0))


def test_a_subset_of_all_rows_is_the_problem_itself(blob_problem):
    """Tests that a subset keeps rows, q and weights together."""
    rows = np.arange(blob_problem.num_examples)[::-1]
    w, b = np.linspace(-1, 1, 5), 0.5
    assert blob_problem.subset(rows).objective(w, b) == pytest.approx(blob_problem.objective(w, b))


def test_a_subset_has_the_mean_over_its_rows(blob_problem):
    """Tests that shares are normalised anew."""
    rows = np.array([1, 5, 6, 40])
    part, w, b = blob_problem.subset(rows), np.linspace(-1, 1, 5), 0.5
    assert part.objective(w, b) == pytest.approx(slow.objective(part, w, b))
    assert part.share.sum() == pytest.approx(1.0)


def test_repr_says_how_large_the_problem_is(tiny):
    """Tests that examples, features and variables are shown."""
    assert repr(tiny) == "QLossProblem(3 examples x 1 features, 9 QUBO variables, lam=0.1)"


# ---- what is accepted ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.tolist(),
        lambda X: X.astype(np.float16),
        lambda X: (4 * X).astype(np.int64) / 4,
        lambda X: X.astype(">f8"),
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        lambda X: X[::-1][::-1],
        sparse.coo_array,
        sparse.lil_array,
        sparse.csr_matrix,
        lambda X: sparse.csr_array(X.astype(np.float32)),
    ],
)
def test_any_real_matrix_will_do(convert):
    """Tests that other dtypes, strides and sparse formats give the same objective."""
    expected = QLossProblem(X, Y, **RANGES).objective([0.3, -0.2], 0.1)
    assert QLossProblem(convert(X), Y, **RANGES).objective([0.3, -0.2], 0.1) == pytest.approx(expected)


def test_read_only_files_mapped_into_memory_are_used_in_place(tmp_path):
    """Tests that data larger than memory can be mapped."""
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    problem = QLossProblem(mapped, Y, **RANGES)
    assert np.shares_memory(problem.matrix.X, mapped)
    assert np.isfinite(problem.state().objective)


def test_duplicate_sparse_entries_are_summed():
    """Tests that a sparse matrix means the sum of its duplicates."""
    twice = sparse.coo_array(([1.0, 2.0, 1.0], ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    problem = QLossProblem(twice, [1, -1], **RANGES)
    np.testing.assert_allclose(problem.margins([1.0, 1.0], 0.0), [3.0, -1.0])


@pytest.mark.parametrize("kind", [sparse.csc_array, sparse.csc_matrix])
@pytest.mark.parametrize("rows", [[3, 1, 1], [1, 1, 1]], ids=["unsorted", "duplicates"])
def test_untidy_sparse_columns_of_the_caller_stay_untidy(kind, rows):
    """Tests that sorting and summing happen on a copy."""
    given_ = kind((np.array([1.0, 2.0, 3.0]), np.array(rows), np.array([0, 2, 3])), shape=(4, 2))
    before = [part.copy() for part in (given_.data, given_.indices, given_.indptr)]
    QLossProblem(given_, Y, **RANGES).loss_and_gradient(np.ones(2), 0.0)
    for part, old in zip((given_.data, given_.indices, given_.indptr), before, strict=True):
        np.testing.assert_array_equal(part, old)


def test_the_arrays_of_the_caller_are_never_changed(blobs, layout):
    """Tests that building, searching and the full QUBO leave every argument as it was."""
    data, y = layout(blobs[0]), blobs[1].copy()
    q, weight, lo = np.full(60, -0.5), np.linspace(1, 2, 60), np.full(5, -1.0)
    arrays = [data.data if sparse.issparse(data) else data, y, q, weight, lo]
    before = [array.copy() for array in arrays]
    problem = QLossProblem(data, y, q=q, sample_weight=weight, weight_range=(lo, -lo), bias_range=(-1, 1))
    state = problem.state()
    problem.loss_and_gradient(state.weights, state.bias)
    problem.to_bqm()
    for array, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_later_changes_of_the_labels_do_not_reach_the_problem():
    """Tests that small vectors are copied at the door."""
    y, q = Y.astype(float), np.full(4, -0.5)
    problem = QLossProblem(X, y, q=q, **RANGES)
    before = problem.objective([0.5, 0.5], 0.0)
    y[:], q[:] = 1.0, -9.0
    assert problem.objective([0.5, 0.5], 0.0) == before


# ---- what is refused -------------------------------------------------------------------------------------


def with_value(value, array=X):
    """X with one entry replaced."""
    changed = np.array(array, dtype=float)
    changed[2, 1] = value
    return changed


BAD = {
    "NaN": ({"X": with_value(np.nan)}, r"X must be finite\. Got NaN or infinity"),
    "infinity": ({"X": with_value(-np.inf)}, r"X must be finite"),
    "sparse NaN": ({"X": sparse.csr_array(with_value(np.nan))}, r"X must be finite"),
    "no examples": ({"X": X[:0], "y": Y[:0]}, r"X must have at least one example .* Got shape \(0, 2\)"),
    "no features": (
        {"X": X[:, :0]},
        r"X must have at least one example and one feature\. Got shape \(4, 0\)",
    ),
    "one dimension": ({"X": X[0]}, r"X must have two dimensions.* Got shape \(2,\)"),
    "three dimensions": ({"X": X[None]}, r"X must have two dimensions"),
    "ragged X": ({"X": [[1.0], [1.0, 2.0]]}, r"X must be a rectangular array"),
    "masked X": ({"X": np.ma.masked_array(X, X > 0.9)}, r"X must have no missing entries"),
    "complex X": ({"X": X * 1j}, r"X must hold real numbers.* Got dtype complex128"),
    "sparse complex X": ({"X": sparse.csr_array(X * 1j)}, r"X must hold real numbers"),
    "object X": ({"X": X.astype(object)}, r"X must hold real numbers.* Got dtype object"),
    "text X": ({"X": X.astype(str)}, r"X must hold real numbers"),
    "no X": ({"X": None}, r"X must hold real numbers"),
    "long double X": ({"X": X.astype(np.longdouble)}, r"X must hold real numbers"),
    "one class": ({"y": np.ones(4)}, r"y must hold both classes\. Got only \+1"),
    "other one class": ({"y": -np.ones(4)}, r"y must hold both classes\. Got only -1"),
    "labels 0 and 1": ({"y": [1, 0, 1, 0]}, r"y must hold only -1 and \+1\. Got 0 at row 1"),
    "NaN label": ({"y": [1, -1, np.nan, 1]}, r"y must hold only -1 and \+1\. Got nan at row 2"),
    "short y": ({"y": [1, -1, 1]}, r"X has 4 rows but y has 3"),
    "y as a column": ({"y": Y[:, None]}, r"y must have one dimension\. Got shape \(4, 1\)"),
    "text labels": ({"y": list("abab")}, r"y must hold the labels -1 and \+1 as numbers"),
    "boolean labels": ({"y": Y > 0}, r"y must hold the labels -1 and \+1 as numbers\. Got dtype bool"),
    "complex labels": ({"y": Y.astype(complex)}, r"y must hold the labels"),
    "object labels": ({"y": Y.astype(object)}, r"y must hold the labels"),
    "q above 0": ({"q": 1e-9}, r"q must be at most 0\. Got 1e-09"),
    "q NaN": ({"q": np.nan}, r"q must be at most 0\. Got nan"),
    "one q above 0": ({"q": [-1, -1, 0.5, -1]}, r"q must be at most 0\. Got 0\.5"),
    "class q above 0": ({"q": {-1: -1.0, 1: 0.5}}, r"q must be at most 0\. Got 0\.5"),
    "q of unknown class": ({"q": {0: -1.0, 1: 0.0}}, r"q as a mapping must have the keys -1 and 1"),
    "q of one class": ({"q": {1: 0.0}}, r"q as a mapping must have the keys -1 and 1\. Got \[1\]"),
    "too few q": ({"q": [-1.0, -1.0]}, r"q must be .* each of the 4 examples\. Got shape \(2,\)"),
    "complex q": ({"q": 1j}, r"q must be a number"),
    "text q": ({"q": "low"}, r"q must be a number"),
    "negative lam": ({"lam": -1e-9}, r"lam must be at least 0\. Got -1e-09"),
    "NaN lam": ({"lam": np.nan}, r"lam must be finite\. Got nan"),
    "infinite lam": ({"lam": np.inf}, r"lam must be finite\. Got inf"),
    "complex lam": ({"lam": 1j}, r"lam must be a number\. Got 1j"),
    "lam None": ({"lam": None}, r"lam must be a number\. Got None"),
    "negative weight": ({"sample_weight": [1, 1, 1, -1]}, r"sample_weight must be finite and at least 0"),
    "NaN weight": ({"sample_weight": [1, 1, 1, np.nan]}, r"sample_weight must be finite and at least 0"),
    "all weights zero": ({"sample_weight": np.zeros(4)}, r"sample_weight must have a positive finite sum"),
    "too few weights": ({"sample_weight": [1, 1]}, r"sample_weight must be 4 numbers\. Got shape \(2,\)"),
    "complex weights": ({"sample_weight": np.ones(4) * 1j}, r"sample_weight must be 4 numbers"),
    "weight_bits 0": ({"weight_bits": 0}, r"weight_bits must be an int in \[1, 24\]\. Got 0"),
    "weight_bits 25": ({"weight_bits": 25}, r"weight_bits must be an int in \[1, 24\]\. Got 25"),
    "bias_bits 2.0": ({"bias_bits": 2.0}, r"bias_bits must be an int in \[1, 24\]\. Got 2\.0"),
    "target_bits 0": ({"target_bits": 0}, r"target_bits must be an int"),
    "target_span 0": ({"target_span": 0}, r"target_span must be above 0\. Got 0"),
    "target_span inf": ({"target_span": np.inf}, r"target_span must be finite\. Got inf"),
    "reversed range": (
        {"weight_range": (1, -1)},
        r"weight_range must have lo < hi\. Got lo = 1\.0, hi = -1\.0",
    ),
    "empty range": ({"bias_range": (1, 1)}, r"bias_range must have lo < hi"),
    "infinite range": ({"weight_range": (-np.inf, 1)}, r"weight_range must be finite\. Got -inf"),
    "NaN range": ({"bias_range": (0, np.nan)}, r"bias_range must be finite\. Got nan"),
    "range of wrong length": ({"weight_range": ([0.0] * 3, 1)}, r"weight_range must .* arrays of length 2"),
    "unknown range": ({"weight_range": "wide"}, r'weight_range must be "auto", \(lo, hi\) or two arrays'),
    "range of one": ({"weight_range": (1,)}, r'weight_range must be "auto"'),
    "complex range": ({"bias_range": (1j, 2)}, r"bias_range must hold two numbers"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_in_one_sentence(arguments, message):
    """Tests that the message begins with the argument and says the rule and the value."""
    arguments = {"X": X, "y": Y, **RANGES, **arguments}
    with pytest.raises(InvalidInput, match="^" + message) as caught:
        QLossProblem(arguments.pop("X"), arguments.pop("y"), **arguments)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, LNSError)


DEFECTS = {
    "ragged y": ({"y": [[1], [1, -1]]}, r"y must"),
    "ragged q": ({"q": [[-1], [-1, -1]]}, r"q must"),
    "ragged weights": ({"sample_weight": [[1], [1, 1]]}, r"sample_weight must"),
    "array per class": ({"q": {-1: [-1, -1], 1: [0, 0]}}, r"q must be"),
    "complex range array": ({"weight_range": (np.array([1j, 1]), 2)}, r"weight_range must hold two numbers"),
    "text range": ({"weight_range": ("0", "1")}, r"weight_range must hold two numbers"),
    "text lam": ({"lam": "0.5"}, r"lam must be a number\. Got '0\.5'"),
    "boolean lam": ({"lam": True}, r"lam must be a number\. Got True"),
    "numpy complex lam": ({"lam": np.complex128(1j)}, r"lam must be a number"),
    "levels that coincide": ({"weight_range": (1.0, np.nextafter(1, 2))}, r"weight_range must"),
    "steps of zero": ({"weight_range": (0.0, 5e-324)}, r"weight_range must"),
    "range too long": ({"weight_range": (-1.7e308, 1.7e308)}, r"weight_range must have hi - lo"),
    "weights too large": ({"sample_weight": np.full(4, 1e308)}, r"sample_weight must"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("arguments", "message"), DEFECTS.values(), ids=DEFECTS)
def test_odd_input_is_refused_in_one_sentence(arguments, message):
    """Tests the same for input that numpy would convert or warn about."""
    arguments = {"X": X, "y": Y, **RANGES, **arguments}
    with pytest.raises(InvalidInput, match="^" + message):
        QLossProblem(arguments.pop("X"), arguments.pop("y"), **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"q": 0.0},
        {"q": {-1: 0, 1: 0}},
        {"q": np.zeros(4)},
        {"q": -np.inf},
        {"lam": 0},
        {"sample_weight": [1, 1, 0, 1]},
        {"weight_bits": 1},
        {"weight_bits": 24, "bias_bits": 24, "target_bits": 24},
        {"target_span": 1e-3},
        {"weight_range": ([0.0, -1.0], [1.0, 1.0])},
    ],
)
def test_input_on_the_edge_is_accepted(arguments):
    """Tests the values just inside each rule."""
    problem = QLossProblem(X, Y, **{**RANGES, **arguments})
    assert np.isfinite(problem.objective([0.5, 0.5], 0.0))


@pytest.mark.parametrize(
    ("w", "b", "message"),
    [
        ([1.0], 0.0, r"w must have length 2, one per feature\. Got shape \(1,\)"),
        ([1.0, np.nan], 0.0, r"w and b must be finite"),
        ([1.0, 1.0], np.inf, r"w and b must be finite"),
        (["one", "two"], 0.0, r"w and b must be real numbers"),
        ([1.0, 1.0], [0.0, 1.0], r"w and b must be real numbers"),
    ],
)
def test_bad_solutions_are_refused(w, b, message):
    """Tests what `objective` says about weights that cannot be."""
    with pytest.raises(InvalidInput, match="^" + message):
        QLossProblem(X, Y, **RANGES).objective(w, b)
