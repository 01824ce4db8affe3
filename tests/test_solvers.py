"""Tests of the solvers of sub-QUBOs: protocol, determinism, exactness, registry."""

from __future__ import annotations

import dimod
import numpy as np
import pytest
import slow_reference as slow
from dwave.samplers import SimulatedAnnealingSampler, TreeDecompositionSolver
from hypothesis import given, settings
from hypothesis import strategies as st
from search_cases import ask, random_codes, random_problem

from lns.errors import InvalidInput
from lns.solvers import SOLVERS, DimodSolver, Exact, Solver, Tabu, make_solver, register
from lns.subproblem import SubQubo

NAMES = ("tabu", "sa", "descent", "exact")


def random_sub(seed, bits=6):
    """A dense sub-QUBO of weight bits only, its coefficients drawn from a normal distribution."""
    rng = np.random.default_rng(seed)
    half = np.triu(rng.normal(size=(bits, bits)), 1)
    return SubQubo(rng.normal(size=bits), half + half.T, 0.5, bits)


def real_sub(seed=0, weights=6, examples=3, kind="dense"):
    """A sub-QUBO with target bits as a round builds it, and the bits to begin from."""
    problem = random_problem(kind, features=weights, seed=seed, target_bits=2)
    asked = ask(problem, random_codes(problem, seed), weights=range(weights), examples=examples)
    assert len(asked.batch) == examples
    return asked.sub, asked.start


def lowest(sub):
    """The least energy, by trying everything."""
    return sub.energies(slow.all_bits(sub.num_variables)).min()


def zeros(sub):
    """A start."""
    return np.zeros(sub.num_variables, dtype=np.int8)


# ---- every solver ----


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_bits_of_the_right_shape(name):
    """Tests the protocol: rows of 0 and 1, one column for each variable, at least one row."""
    solver = make_solver(name)
    assert isinstance(solver, Solver)
    sub, start = real_sub()
    assert sub.num_variables > sub.num_weight_bits  # target bits are there
    samples = solver(sub, start, 1)
    assert samples.ndim == 2
    assert samples.shape[0] >= 1
    assert samples.shape[1] == sub.num_variables
    assert samples.dtype == np.int8
    assert np.isin(samples, (0, 1)).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_samples(name):
    """Tests that a second call, on a solver of its own, repeats the first one."""
    sub, start = real_sub(weights=10, examples=6)
    np.testing.assert_array_equal(make_solver(name)(sub, start, 7), make_solver(name)(sub, start, 7))


@pytest.mark.parametrize("name", ["tabu", "sa", "descent"])
def test_the_largest_seed_is_taken(name):
    """Tests the end of the range of seeds that rounds draw from."""
    sub, start = real_sub()
    make_solver(name)(sub, start, 2**31 - 1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(4))
def test_small_sub_qubos_are_solved_to_the_optimum(name, seed):
    """Tests the best sample on six dense bits against brute force."""
    sub = random_sub(seed)
    found = sub.energies(make_solver(name)(sub, zeros(sub), seed)).min()
    assert found == pytest.approx(lowest(sub), abs=1e-12)


@pytest.mark.parametrize("name", ["tabu", "sa", "exact"])
@pytest.mark.parametrize("seed", range(3))
def test_real_sub_qubos_are_solved_to_the_optimum(name, seed):
    """Tests twelve bits, half of them targets, against brute force."""
    sub, start = real_sub(seed)
    found = sub.energies(make_solver(name)(sub, start, seed)).min()
    assert found == pytest.approx(lowest(sub), rel=1e-9)


@pytest.mark.parametrize("name", ["tabu", "descent", "exact"])
def test_no_solver_that_knows_the_start_ends_above_it(name):
    """Tests that the best sample is at most the energy of the start."""
    for seed in range(5):
        sub, start = real_sub(seed, weights=12, examples=8)
        assert sub.energies(make_solver(name)(sub, start, seed)).min() <= sub.energies(start[None])[0] + 1e-12


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bits", [1, 2, 3])
def test_the_smallest_sub_qubos_are_solved(name, bits):
    """Tests one, two and three bits."""
    sub = random_sub(3, bits)
    found = sub.energies(make_solver(name)(sub, zeros(sub), 0)).min()
    assert found == pytest.approx(lowest(sub))


@pytest.mark.parametrize("name", NAMES)
def test_a_flat_sub_qubo_is_no_problem(name):
    """Tests coefficients that are all zero: nothing to divide by."""
    flat = SubQubo(np.zeros(5), np.zeros((5, 5)), 1.0, 5)
    assert make_solver(name)(flat, zeros(flat), 0).shape[1] == 5


@pytest.mark.parametrize("name", NAMES)
def test_scale_does_not_matter(name):
    """Tests coefficients of the size that a million examples give."""
    sub = random_sub(1)
    small = SubQubo(1e-9 * sub.linear, 1e-9 * sub.quadratic, 0.0, 6)
    found = small.energies(make_solver(name)(small, zeros(small), 0)).min()
    assert found == pytest.approx(lowest(small), rel=1e-9)


# ---- exact ----


@settings(deadline=None, max_examples=40)
@given(slow.problems_with_codes(max_target_bits=3), st.sampled_from(["curvature", "pinned"]), st.data())
def test_exact_equals_brute_force(case, background, data):
    """Tests the minimum over all bits, targets included, of random sub-QUBOs of real problems."""
    problem, codes = case
    examples = data.draw(st.integers(0, 2))
    sub = ask(problem, codes, weights=range(len(codes)), examples=examples, background=background).sub
    answer = Exact()(sub, zeros(sub), 0)
    assert answer.shape == (1, sub.num_variables)
    assert sub.energies(answer)[0] == pytest.approx(lowest(sub), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_exact_equals_tree_decomposition(seed):
    """Tests 34 bits, too many for brute force, against dwave's exact solver of low treewidth."""
    sub, start = real_sub(seed, weights=10, examples=12)
    assert sub.num_variables > 24
    other = TreeDecompositionSolver().sample(sub.to_bqm()).first.energy
    assert sub.energies(Exact()(sub, start, 0))[0] == pytest.approx(other, rel=1e-9)


def test_exact_gives_the_best_reads_in_order():
    """Tests several reads: the best settings of the weight bits, best first, no setting twice."""
    sub = random_sub(0)
    reads = Exact(num_reads=5)(sub, zeros(sub), 0)
    np.testing.assert_allclose(sub.energies(reads), np.sort(sub.energies(slow.all_bits(6)))[:5])
    assert len(np.unique(reads, axis=0)) == 5


def test_exact_with_more_reads_than_settings_gives_all_of_them():
    """Tests the end of the list."""
    sub = random_sub(0, bits=2)
    assert len(Exact(num_reads=100)(sub, zeros(sub), 0)) == 4


def test_exact_goes_through_many_settings_in_pieces():
    """Tests 14 bits, more settings than fit into one piece."""
    sub = random_sub(5, bits=14)
    answer = Exact(max_weight_bits=14)(sub, zeros(sub), 0)
    assert sub.energies(answer)[0] == pytest.approx(lowest(sub))


def test_exact_refuses_more_weight_bits_than_it_was_made_for():
    """Tests both sides of the limit, and that the message says what to use instead."""
    sub = random_sub(0, bits=5)
    Exact(max_weight_bits=5)(sub, zeros(sub), 0)
    with pytest.raises(
        InvalidInput, match=r"^The exact solver takes at most 4 weight bits\. Got 5: use .*tabu"
    ):
        Exact(max_weight_bits=4)(sub, zeros(sub), 0)


# ---- registry and options ----


def test_an_unknown_name_lists_the_known_ones():
    """Tests the message."""
    with pytest.raises(
        InvalidInput, match=r"^Unknown solver 'taboo'\. Choose one of .*descent.*exact.*sa.*tabu"
    ):
        make_solver("taboo")


@pytest.mark.parametrize(
    ("name", "option", "message"),
    [
        ("tabu", "num_read", r"'tabu' has no option 'num_read'\. Did you mean 'num_reads'\?"),
        ("sa", "sweeps", r"'sa' has no option 'sweeps'\. Did you mean 'num_sweeps'\?"),
        ("exact", "timeout", r"'exact' has no option 'timeout'\. It takes .*max_weight_bits"),
    ],
)
def test_an_unknown_option_names_the_closest_one(name, option, message):
    """Tests that a typo is an error and not ignored."""
    with pytest.raises(TypeError, match=message):
        make_solver(name, {option: 1})


@pytest.mark.parametrize(
    ("name", "options", "edge"),
    [
        ("tabu", {"num_reads": 0}, {"num_reads": 1}),
        ("tabu", {"num_restarts": 1.5}, {"num_restarts": 1}),
        ("sa", {"num_sweeps": 0}, {"num_sweeps": 1}),
        ("sa", {"num_reads": "many"}, {"num_reads": np.int64(2)}),
        ("descent", {"num_reads": -1}, {"num_reads": 1}),
        ("exact", {"max_weight_bits": 0}, {"max_weight_bits": 1}),
        ("exact", {"max_weight_bits": 25}, {"max_weight_bits": 24}),
        ("exact", {"num_reads": 0}, {"num_reads": 1}),
    ],
)
def test_options_out_of_range_are_refused(name, options, edge):
    """Tests just outside and on the edge, and that the message names option, solver and value."""
    (option, value), *_ = options.items()
    with pytest.raises(InvalidInput, match=rf"^The '{option}' option of {name} .*Got {value!r}\.$"):
        make_solver(name, options)
    make_solver(name, edge)


def test_options_reach_the_solver():
    """Tests that the number of reads is the number of samples."""
    sub, start = real_sub()
    assert make_solver("tabu", {"num_reads": 3}) == Tabu(num_reads=3)
    for name in ("tabu", "sa", "descent"):
        assert len(make_solver(name, {"num_reads": 3})(sub, start, 0)) == 3


def test_a_registered_solver_is_found_by_name(monkeypatch):
    """Tests a solver of one's own, options included, and that a taken name is an error."""
    monkeypatch.setattr("lns.solvers._registry.SOLVERS", dict(SOLVERS))

    def factory(depth=1):
        return lambda sub, start, seed: np.repeat(start[None, :], depth, axis=0)

    register("mine", factory)
    sub, start = real_sub()
    assert len(make_solver("mine", {"depth": 4})(sub, start, 0)) == 4
    with pytest.raises(InvalidInput, match=r"^A solver named 'mine' is registered already\.$"):
        register("mine", factory)
    with pytest.raises(TypeError):
        make_solver("mine", {"width": 4})


def test_built_in_names_are_taken():
    """Tests that nobody replaces Tabu by accident."""
    with pytest.raises(InvalidInput, match="'tabu' is registered already"):
        register("tabu", Tabu)


# ---- callables and dimod samplers ----


def test_a_callable_is_taken_as_it_is():
    """Tests that a function is its own solver."""

    def mine(sub, start, seed):
        return start[None, :]

    assert make_solver(mine) is mine
    assert make_solver(mine, {}) is mine


def test_options_with_a_callable_are_refused():
    """Tests that options which would go nowhere are an error."""
    with pytest.raises(
        InvalidInput, match=r"^solver_options go with a solver's name or a dimod sampler, not"
    ):
        make_solver(lambda sub, start, seed: start[None, :], {"num_reads": 3})


@pytest.mark.parametrize("thing", [None, 3, object()])
def test_things_that_cannot_solve_are_refused(thing):
    """Tests the message for anything else."""
    with pytest.raises(InvalidInput, match=r"^solver must be a name, .* or a hybrid runnable\. Got"):
        make_solver(thing)


def test_a_wrapper_needs_something_to_wrap():
    """Tests the constructor used directly."""
    with pytest.raises(
        InvalidInput, match=r"^A solver object must be callable or have a sample\(\) method\. Got 3"
    ):
        DimodSolver(3)


class Shuffled:
    """A dimod sampler that returns its variables in another order, and remembers what it was told."""

    parameters = {"seed": (), "num_reads": ()}  # noqa: RUF012 - as in dimod

    def sample(self, bqm, **options):
        """All states of the model, variables backwards."""
        self.options = options
        found = dimod.ExactSolver().sample(bqm)
        backwards = list(bqm.variables)[::-1]
        at = [list(found.variables).index(v) for v in backwards]
        return dimod.SampleSet.from_samples(
            (found.record.sample[:, at], backwards), "BINARY", found.record.energy
        )


def test_samples_of_a_dimod_sampler_come_in_the_order_of_the_sub_qubo():
    """Tests that energies of the wrapped samples are those that the sampler found."""
    sub = random_sub(2)
    samples = make_solver(Shuffled())(sub, zeros(sub), 0)
    assert samples.dtype == np.int8
    expected = dimod.ExactSolver().sample(sub.to_bqm()).record.energy
    np.testing.assert_allclose(sub.energies(samples), expected, atol=1e-12)


def test_a_dimod_sampler_gets_its_options_and_the_seed():
    """Tests what is passed to sample()."""
    sampler = Shuffled()
    sub = random_sub(2)
    make_solver(sampler, {"num_reads": 3})(sub, zeros(sub), 11)
    assert sampler.options == {"num_reads": 3, "seed": 11}


def test_a_dimod_sampler_without_a_seed_gets_none():
    """Tests a sampler that would refuse the option."""
    sub = random_sub(2)
    samples = make_solver(dimod.ExactSolver())(sub, zeros(sub), 11)
    assert sub.energies(samples).min() == pytest.approx(lowest(sub))


def test_a_real_dimod_sampler_is_deterministic_through_the_wrapper():
    """Tests dwave's annealer as an object."""
    sub, start = real_sub()
    solver = make_solver(SimulatedAnnealingSampler(), {"num_reads": 3})
    samples = solver(sub, start, 5)
    assert samples.shape == (3, sub.num_variables)
    np.testing.assert_array_equal(samples, solver(sub, start, 5))
