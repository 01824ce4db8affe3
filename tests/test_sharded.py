"""Tests of problems in shards against the same problem in one piece; no cluster is needed for that."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from search_cases import assert_same_run, random_codes
from shard_cases import ShardsHere, write_shards, write_svm

import lns
from lns import descent
from lns.datasets.scaling import scale_columns
from lns.engine import EngineParams
from lns.errors import DataError, InvalidInput
from lns.rounds import Part

RANGES = {"weight_range": (-1, 1), "bias_range": (-1, 1)}
Q = {-1: -1.0, 1: -0.25}


@pytest.fixture(scope="module")
def data():
    """210 x 6, a third of the entries zero, in numbers that single precision holds."""
    rng = np.random.default_rng(3)
    X = rng.integers(-8, 9, size=(210, 6)) / 4 * (rng.random((210, 6)) < 0.7)
    y = np.where(X @ rng.normal(size=6) + rng.normal(size=210) > 0, 1, -1)
    return X, y


@pytest.fixture(params=[".npz", ".csr.npz", ".svm", ".csv", ".parquet"])
def both(request, data, tmp_path):
    """The same problem in shards and in one piece, for every format, with one q per class and weights."""
    X, y = data
    options = {"q": Q, "lam": 0.01, "sample_weight": np.linspace(0.5, 2, len(y)), **RANGES}
    paths = write_shards(tmp_path, X, y, 4, request.param)
    sharded = lns.ShardedProblem(paths, scale=False, holder=ShardsHere, **options)
    return sharded, lns.QLossProblem(X, y, **options)


def here(sources, **options):
    """A problem whose shards are in this process."""
    return lns.ShardedProblem(sources, holder=ShardsHere, **options)


def arrays(X, y):
    """A source that returns arrays."""
    return functools.partial(lambda: (X, y))


def test_objectives(both):
    """Tests the objective at arbitrary weights, at codes and of many candidates."""
    sharded, whole = both
    w, b = np.linspace(-1, 1, 6), 0.3
    assert sharded.objective(w, b) == pytest.approx(whole.objective(w, b), abs=1e-12)
    codes = random_codes(whole)
    mine, reference = sharded.state(codes), whole.state(codes)
    assert mine.objective == pytest.approx(reference.objective, abs=1e-12)
    candidates = np.stack([random_codes(whole, seed) for seed in range(9)])
    np.testing.assert_allclose(mine.evaluate(candidates), reference.evaluate(candidates), atol=1e-12)


def test_a_descent_is_that_of_the_whole(both):
    """Tests the same steps to the same end."""
    ends = [np.append(*descent.descend(problem, np.zeros(6), 0.0)) for problem in both]
    np.testing.assert_allclose(*ends, atol=1e-9)


def test_what_the_warm_start_needs(both):
    """Tests value and gradient of the softened loss, and the mean squares."""
    sharded, whole = both
    w, b = np.linspace(-1, 1, 6), 0.3
    for soft in ((1e100, 0.0), (0.5, 0.0), (0.0, 0.0), (0.5, 0.7)):
        loss, gradient = sharded.loss_and_gradient(w, b, *soft)
        expected_loss, expected = whole.loss_and_gradient(w, b, *soft)
        assert loss == pytest.approx(expected_loss, abs=1e-12)
        np.testing.assert_allclose(gradient, expected, atol=1e-12)
    np.testing.assert_allclose(sharded.squared_means(), whole.squared_means(), atol=1e-12)


def test_margins_and_flags(both):
    """Tests what is reported per example, in the order of the shards."""
    sharded, whole = both
    w, b = np.linspace(-1, 1, 6), 0.3
    np.testing.assert_allclose(sharded.margins(w, b), whole.margins(w, b), atol=1e-12)
    np.testing.assert_array_equal(sharded.flagged(w, b), whole.flagged(w, b))


def test_samples_hold_the_rows_asked_for(both):
    """Tests that rows come back in the order asked for, with their labels, q and shares."""
    sharded, whole = both
    rows = np.random.default_rng(0).permutation(210)[:60]
    mine, reference = sharded.subset(rows), whole.subset(rows)
    w, b = np.linspace(-1, 1, 6), 0.3
    np.testing.assert_allclose(mine.margins(w, b), reference.margins(w, b), atol=1e-12)
    np.testing.assert_array_equal(mine.q, reference.q)
    np.testing.assert_allclose(mine.share, reference.share, rtol=1e-12)


def test_small_data_can_be_used_as_if_it_were_here(data, tmp_path):
    """Tests that the full QUBO of shards is that of the whole."""
    X, y = data[0][:20, :2], data[1][:20]
    sharded = here(write_shards(tmp_path, X, y, 3), scale=False, **RANGES)
    assert sharded.to_bqm().is_almost_equal(lns.QLossProblem(X, y, **RANGES).to_bqm(), places=12)


@pytest.mark.parametrize("suffix", [".npz", ".svm"])
def test_columns_are_scaled_by_the_bounds_of_all_shards(data, tmp_path, suffix):
    """Tests the scaling against that of the whole, dense and sparse."""
    X, y = data
    whole = scale_columns(X) if suffix == ".npz" else X / np.abs(X).max(axis=0)
    gathered = here(write_shards(tmp_path, X, y, 4, suffix)).subset(None).matrix.X
    gathered = gathered if suffix == ".npz" else gathered.toarray()
    np.testing.assert_allclose(gathered, whole, rtol=1e-6)


@pytest.mark.parametrize("form", ["number", "class", "example"])
def test_every_form_of_q(data, tmp_path, form):
    """Tests that q reaches the examples it is meant for."""
    X, y = data
    q = {"number": -0.7, "class": Q, "example": np.linspace(-2, 0, len(y))}[form]
    sharded = here(write_shards(tmp_path, X, y, 4), q=q, scale=False, **RANGES)
    whole = lns.QLossProblem(X, y, q=q, **RANGES)
    w, b = np.linspace(-1, 1, 6), 0.3
    assert sharded.objective(w, b) == pytest.approx(whole.objective(w, b), abs=1e-12)


PARAMS = EngineParams(walk_moves=50, sample_rows=48, most_rows=100)


@pytest.mark.parametrize("ranges", [RANGES, {}], ids=["given", "automatic"])
def test_the_search_is_that_of_the_whole(data, tmp_path, ranges):
    """Tests that shards and one piece go through the same rounds to the same end, and on the same levels."""
    X, y = data
    options = {"q": Q, "lam": 0.01, **ranges}
    sharded = here(write_shards(tmp_path, X, y, 4), scale=False, **options)
    results = [
        lns.solve(problem, max_rounds=16, time_limit=None, params=PARAMS)
        for problem in (sharded, lns.QLossProblem(X, y, **options))
    ]
    np.testing.assert_array_equal(results[0].codes, results[1].codes)
    np.testing.assert_array_equal(results[0].flagged, results[1].flagged)
    np.testing.assert_allclose(results[0].weights, results[1].weights, atol=1e-9)
    assert results[0].objective == pytest.approx(results[1].objective, abs=1e-12)
    tried = [
        [(record.rows, record.outcome, record.neighbourhoods[0].kind) for record in result.rounds]
        for result in results
    ]
    assert tried[0] == tried[1]
    assert {rows for rows, _, _ in tried[0]} == {48, 100}


def test_the_warm_start_ends_on_all_rows(data, tmp_path, monkeypatch):
    """Tests that a path on a sample is finished on all rows, as good as that of the whole."""
    monkeypatch.setattr(descent, "FEW_ROWS", 100)
    X, y = data
    sharded = here(write_shards(tmp_path, X, y, 4), scale=False, lam=0.01)
    whole = lns.QLossProblem(X, y, lam=0.01)
    assert sharded.objective(*sharded.warm_start) == pytest.approx(
        whole.objective(*whole.warm_start), abs=1e-5
    )
    np.testing.assert_allclose(sharded.weight_grid.hi, whole.weight_grid.hi, rtol=1e-2)


def test_samples_are_no_larger_than_the_limit(data, tmp_path):
    """Tests that rounds never gather more than max_sample_rows, whatever they ask for."""
    sharded = here(write_shards(tmp_path, *data, 4), max_sample_rows=100, **RANGES)
    assert [Part(sharded, rows, 0, np.zeros(6), 0.0).rows for rows in (60, 120)] == [60, 100]
    with pytest.raises(InvalidInput, match=r"At most 100 of these 210 examples.*max_sample_rows"):
        sharded.subset(None)
    with pytest.raises(InvalidInput, match="max_sample_rows"):
        sharded.matrix  # noqa: B018
    params = EngineParams(sample_rows=40, walk_moves=10)
    result = lns.solve(sharded, max_rounds=20, time_limit=None, params=params)
    assert {record.rows for record in result.rounds} == {40, 100}


def test_a_shard_may_hold_one_class(data):
    """Tests that labels are judged over all shards together."""
    X, y = data
    order = np.argsort(y)
    sources = [arrays(X[part], y[part]) for part in np.array_split(order, 3)]
    assert here(sources, scale=False).classes == (-1, 1)


def test_labels_can_be_text(data):
    """Tests that the smaller of two words is the negative class, also where it does not occur."""
    X, y = data
    words = np.where(y > 0, "spam", "ham")
    order = np.argsort(y)
    sources = [arrays(X[part], words[part]) for part in np.array_split(order, 3)]
    np.testing.assert_array_equal(here(sources).subset(None).y, y[order])


def test_numbered_columns_are_numbered_alike(tmp_path):
    """Tests that LIBSVM shards agree on the first column, and on columns that some do not mention."""
    X = np.array([[1.0, 2, 0, 0], [0, 3, 0, 0], [0, 1, 0, 5], [0, 0, 4, 1]])
    y = np.array([1, -1, 1, -1])
    write_svm(tmp_path / "a.svm", X[:2], y[:2], first_index=0)
    write_svm(tmp_path / "b.svm", X[2:], y[2:], first_index=0)  # does not mention column 0
    gathered = here([tmp_path / "a.svm", tmp_path / "b.svm"], scale=False).subset(None)
    np.testing.assert_array_equal(gathered.matrix.X.toarray(), X)
    write_svm(tmp_path / "c.svm", X[:2, :3], y[:2])
    write_svm(tmp_path / "d.svm", X[2:], y[2:])  # has one more column
    gathered = here([tmp_path / "c.svm", tmp_path / "d.svm"], scale=False).subset(None)
    np.testing.assert_array_equal(gathered.matrix.X.toarray(), X)


def test_the_fingerprint_is_that_of_the_content(data, tmp_path):
    """Tests that equal files have one fingerprint and a changed number gives another."""
    X, y = data
    same = [here(write_shards(tmp_path / name, X, y, 3)).fingerprint for name in ("a", "b")]
    changed = X.copy()
    changed[7, 2] += 1
    assert same[0] == same[1]
    assert here(write_shards(tmp_path / "c", changed, y, 3)).fingerprint != same[0]


def test_the_fingerprint_knows_the_parameters(data):
    """Tests that each parameter, vector and range gives a fingerprint of its own."""
    source = [arrays(*data)]
    weights = np.linspace(0.5, 2, len(data[1]))
    variants = [
        {}, {"lam": 0.1}, {"q": -0.4}, {"q": Q}, {"q": weights - 3}, {"sample_weight": weights},
        {"weight_bits": 3}, {"scale": False}, {"weight_range": (-1, 1)}, {"bias_range": (-1, 1)},
    ]  # fmt: skip
    assert len({here(source, **options).fingerprint for options in variants}) == len(variants)


def test_checkpoints_do_not_hold_the_data(data, tmp_path):
    """Tests that a search in shards goes on where it stopped, given its shards again, and only these."""
    paths = write_shards(tmp_path, *data, 3)
    options = {"max_sample_rows": 60, "q": Q}  # less than all rows: they are never gathered
    params = EngineParams(walk_moves=50, sample_rows=50)
    kept = tmp_path / "run.ckpt"
    whole = lns.solve(here(paths, **options), max_rounds=7, time_limit=None, params=params)
    lns.solve(here(paths, **options), max_rounds=4, time_limit=None, params=params, checkpoint=kept)
    assert [path.name for path in tmp_path.glob("run*")] == ["run.ckpt"]
    result = lns.resume(kept, problem=here(paths, **options), max_rounds=7, time_limit=None)
    assert_same_run(result, whole)
    with pytest.raises(InvalidInput, match=r"is of a problem in shards.*\(problem=\)"):
        lns.resume(kept)
    with pytest.raises(lns.WrongProblem):
        lns.resume(kept, problem=here(paths, max_sample_rows=60))


class TestErrors:
    """Each names the shard that is wrong."""

    def test_no_sources(self):
        """Tests that an empty list and a single path are refused."""
        for wrong in ([], "all.npz"):
            with pytest.raises(InvalidInput, match="sources must be a list"):
                here(wrong)

    def test_bad_parameters_are_found_before_anything_is_read(self, tmp_path):
        """Tests that numbers are checked before the (missing) file is."""
        for option, message in (
            ({"q": 1.0}, "q must be"),
            ({"lam": -1}, "lam must"),
            ({"max_sample_rows": 1}, "max"),
        ):
            with pytest.raises(InvalidInput, match=message):
                here([tmp_path / "missing.npz"], **option)

    def test_a_missing_file(self, data, tmp_path):
        """Tests that the missing one of several files is named."""
        paths = [*write_shards(tmp_path, *data, 2), tmp_path / "lost.npz"]
        with pytest.raises(DataError, match=r"lost\.npz"):
            here(paths)

    def test_another_number_of_features(self, data):
        """Tests that dense shards must have the same columns."""
        X, y = data
        with pytest.raises(DataError, match=r"has 5 features but .* has 6"):
            here([arrays(X, y), arrays(X[:, :5], y)])

    def test_dense_and_sparse(self, data, tmp_path):
        """Tests that kinds are not mixed."""
        X, y = data
        paths = [*write_shards(tmp_path / "a", X, y, 1), *write_shards(tmp_path / "b", X, y, 1, ".csr.npz")]
        with pytest.raises(DataError, match=r"part-0\.csr\.npz is sparse but .*part-0\.npz is dense"):
            here(paths)

    def test_a_third_label(self, data, tmp_path):
        """Tests that the first shard with a third label value is named."""
        X, y = data
        paths = [*write_shards(tmp_path / "a", X, y, 1), *write_shards(tmp_path / "b", X, y * 2, 1)]
        with pytest.raises(DataError, match=r"b/part-0\.npz has the label -?2 besides -1, 1"):
            here(paths)

    def test_one_label(self, data):
        """Tests that all shards together need two labels."""
        X, _ = data
        with pytest.raises(DataError, match="same label"):
            here([arrays(X, np.ones(len(X)))] * 2)

    def test_functions_that_return_nonsense(self, data):
        """Tests that arrays from functions are checked, too."""
        X, y = data
        with pytest.raises(DataError, match="210 rows but y has the shape"):
            here([arrays(X, y[:5])])
        with pytest.raises(DataError, match="finite"):
            here([arrays(np.full((2, 2), np.nan), [1, -1])])

    @pytest.mark.parametrize("option", ["q", "sample_weight"])
    def test_vectors_of_another_length(self, data, option):
        """Tests that one value per example means all examples of all shards."""
        with pytest.raises(InvalidInput, match=option):
            here([arrays(*data)] * 2, **{option: -np.ones(5) if option == "q" else np.ones(5)})
