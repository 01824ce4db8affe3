"""Tests of the runnables for dwave-hybrid: what they build, how they merge, which flows they work in."""

from __future__ import annotations

import copy
import subprocess
import sys
from time import perf_counter

import dimod
import hybrid
import numpy as np
import pytest
from dwave.samplers import SteepestDescentSampler, TabuSampler
from dwave.system.testing import MockDWaveSampler
from search_cases import (
    every_code,
    instances,
    long_servedio_noise20,
    random_codes,
    random_problem,
    recomputed,
)
from threadpoolctl import threadpool_info

import lns
from lns.accept import Outcome
from lns.collapsed import CollapsedModel
from lns.errors import InvalidInput
from lns.hybrid import OneBlasThread, QLossStart


@pytest.fixture
def problem():
    """120 x 6, values in [-1, 1], 4 bits a weight."""
    return random_problem(seed=3)


@pytest.fixture
def state(problem):
    """At a random start."""
    return lns.hybrid_state(problem, initial="random", seed=1)


def run(runnable, state):
    """Run to the end, in this thread as far as hybrid allows it."""
    return runnable.run(state, executor=hybrid.immediate_executor).result()


def descent(**options):
    """A subproblem sampler with a seed."""
    return hybrid.HybridSubproblemRunnable(SteepestDescentSampler(), num_reads=4, seed=5, **options)


def quick_tabu():
    """Hybrid's tabu search, 2 ms a call."""
    return hybrid.TabuSubproblemSampler(timeout=2)


def is_true(state, problem):
    """Whether all energies of a state are the objectives of its samples."""
    codes = state.problem.codes(state.samples)
    return np.allclose(state.samples.record.energy, [recomputed(problem, row) for row in codes], atol=1e-10)


def reads(state, rows):
    """A state whose sampler answered with these bits, and called all of them equally good."""
    subsamples = dimod.SampleSet.from_samples(np.asarray(rows), vartype="BINARY", energy=0.0)
    return state.updated(subsamples=subsamples)


# ---- the state ----


@pytest.mark.parametrize("initial", [None, "zero", "random", (np.full(6, 0.3), 0.5)])
def test_a_state_begins_at_the_true_objective(problem, initial):
    """Tests that the energy of the start is the objective of the weights it decodes to."""
    state = lns.hybrid_state(problem, initial=initial)
    assert state.samples.first.energy == problem.objective(*problem.decode(state.samples))
    assert is_true(state, problem)


def test_copies_of_a_state_share_the_data(problem, state):
    """Tests that neither hybrid's `updated` nor a deep copy copies the problem, but the samples."""
    for other in (state.updated(), copy.deepcopy(state), state.copy()):
        assert other.problem is state.problem
        assert other.problem.problem is problem
        assert not np.shares_memory(other.samples.record.sample, state.samples.record.sample)


def test_a_model_needs_no_full_qubo(monkeypatch):
    """Tests a problem whose full QUBO is refused for its size."""
    monkeypatch.setattr("lns.qubo.MAX_COUPLERS", 100)
    problem = random_problem(rows=300)
    with pytest.raises(InvalidInput, match="would have"):
        problem.to_bqm()
    final = run(lns.hybrid_workflow(problem, quick_tabu(), max_iter=3), hybrid.State())
    assert is_true(final, problem)


def test_energies_of_the_model_are_objectives(problem, state):
    """Tests samples in every form: dicts, columns in another order, spins."""
    model = state.problem
    codes = np.stack([random_codes(problem, seed) for seed in range(5)])
    expected = [recomputed(problem, row) for row in codes]
    samples = model.samples(codes, np.zeros(5))
    assert np.allclose(model.energies(samples), expected, atol=1e-12)
    assert np.allclose(model.energies(list(samples.samples(sorted_by=None))), expected, atol=1e-12)
    shuffled = dimod.SampleSet.from_samples(
        (samples.record.sample[:, ::-1], list(samples.variables)[::-1]), vartype="BINARY", energy=0.0
    )
    assert np.allclose(model.energies(shuffled), expected, atol=1e-12)
    assert np.allclose(model.energies(samples.change_vartype("SPIN", inplace=False)), expected, atol=1e-12)
    assert model.energy(samples.first.sample) == pytest.approx(expected[0])
    assert len(model) == model.num_variables == 6 * 4 + 8


def test_the_model_says_what_it_is_not(state):
    """Tests the remedy for samplers that want couplers, and for samples of something else."""
    with pytest.raises(AttributeError, match=r"not quadratic and has no 'quadratic'\. Put a QLossDecomposer"):
        _ = state.problem.quadratic
    with pytest.raises(InvalidInput, match="samples must be over the weight and bias bits"):
        state.problem.energies({"a": 1})


# ---- the decomposer ----


def start_of(found):
    """The codes that the bits of a subproblem stand for before a sampler has changed them."""
    move = found.move
    return move.neighbourhood.codes(move.codes, move.bits(found.subsamples))[0]


def test_stored_bits_begin_at_the_objective(problem, state):
    """Tests that the bits as they stand have the current objective, if no targets are on the grid."""
    for seed in range(5):
        found = run(lns.QLossDecomposer(kind="stored", examples=0, seed=seed), state)
        assert found.subsamples.first.energy == pytest.approx(state.samples.first.energy, abs=1e-9)
        np.testing.assert_array_equal(start_of(found), problem.codes(*problem.decode(state.samples)))


@pytest.mark.parametrize("kind", ["window", "hop", "stored"])
def test_subsamples_are_bits_of_the_subproblem(state, kind):
    """Tests names and energies of the bits as they stand, target bits included."""
    found = run(lns.QLossDecomposer(kind=kind, examples=2), state)
    assert list(found.subproblem.variables) == list(range(found.subproblem.num_variables))
    assert set(found.subsamples.variables) == set(found.subproblem.variables)
    first = found.subsamples.first
    assert first.energy == pytest.approx(found.subproblem.energy(first.sample), abs=1e-12)


def test_only_a_hop_leaves_the_current_solution_before_it_asks(problem, state):
    """Tests the codes that a move sets out from."""
    here = problem.codes(*problem.decode(state.samples))
    for kind, leaves in (("window", False), ("stored", False), ("hop", True)):
        moves = [run(lns.QLossDecomposer(kind=kind, seed=seed), state).move for seed in range(5)]
        assert any((move.codes != here).any() for move in moves) == leaves


@pytest.mark.parametrize("kind", ["window", "hop", "stored", None])
@pytest.mark.parametrize("bits", [1, 2, 6])
def test_sizes_are_kept(state, kind, bits):
    """Tests that there are no more weight bits than asked for, and at most 2 examples of 4 bits."""
    sizes = set()
    for seed in range(5):
        found = run(lns.QLossDecomposer(kind=kind, max_bits=bits, examples=2, seed=seed), state)
        count = found.move.neighbourhood.num_bits
        assert 1 <= count <= bits
        sizes.add(found.subproblem.num_variables - count)
    assert sizes <= {0, 4, 8}
    assert max(sizes) > 0


def test_pinned_targets_give_another_subproblem(state):
    """Tests that the background reaches the coefficients."""
    one, other = (
        run(lns.QLossDecomposer(kind="window", background=name, max_bits=6, examples=0), state).subproblem
        for name in ("pinned", "curvature")
    )
    assert not np.allclose(list(one.linear.values()), list(other.linear.values()))


def test_fusion_has_a_bit_for_each_difference(problem):
    """Tests that a state with two samples can be fused: all bits at one give the other sample."""
    here, there = random_codes(problem, 1), random_codes(problem, 2)
    model = lns.hybrid_state(problem).problem
    codes = np.stack([here, there])
    state = hybrid.State(problem=model, samples=model.samples(codes, model.energies(model.samples(codes, 0))))
    found = run(lns.QLossDecomposer(kind="fusion", examples=0), state)
    bits = found.subproblem.num_variables
    assert bits == np.count_nonzero(here != there)
    ones = found.move.neighbourhood.codes(here, np.ones((1, bits), dtype=np.int8))
    assert np.array_equal(ones[0], there)
    composed = run(lns.QLossComposer(polish=0, accept="greedy"), reads(found, [[1] * bits, [0] * bits]))
    assert composed.samples.first.energy == pytest.approx(min(recomputed(problem, c) for c in codes))


def test_neighbourhoods_are_chosen_by_the_seed(state):
    """Tests that a decomposer goes on to other weights, and that its seed repeats them."""

    def weights(seed):
        decomposer = lns.QLossDecomposer(kind="window", max_bits=6, seed=seed)
        return [tuple(run(decomposer, state).move.neighbourhood.weights) for _ in range(6)]

    assert weights(0) == weights(0) != weights(1)
    assert len(set(weights(0))) > 1


def test_a_decomposer_learns_from_every_outcome(state):
    """Tests that a gain is heard of, also when the branch's state was thrown away."""
    decomposer = lns.QLossDecomposer()
    found = run(decomposer, state)
    kind = f"rate {found.move.kind}"
    assert kind not in decomposer._select[1].state()
    copy.deepcopy(found).move.gain = 0.25
    run(decomposer, state)
    assert decomposer._select[1].state()[kind] > 0


def test_a_new_problem_begins_anew(state):
    """Tests that one decomposer can serve problems of different sizes."""
    decomposer = lns.QLossDecomposer()
    run(decomposer, state)
    other = lns.hybrid_state(random_problem(features=3), initial="zero")
    assert run(decomposer, other).move.codes.shape == (4,)


# ---- the composer ----


def test_all_reads_are_ranked_by_the_objective(problem, state):
    """Tests that the best of many reads is taken, whatever energies they came with."""
    found = run(lns.QLossDecomposer(kind="window", max_bits=8, examples=0), state)
    rows = np.random.default_rng(0).integers(0, 2, size=(40, found.subproblem.num_variables))
    codes = found.move.neighbourhood.codes(found.move.codes, rows)
    best = min(recomputed(problem, row) for row in codes)
    assert best < state.samples.first.energy
    final = run(lns.QLossComposer(polish=0), reads(found, rows))
    assert final.samples.first.energy == pytest.approx(best, abs=1e-12)
    assert is_true(final, problem)


def test_reads_may_be_spins_in_any_order(problem, state):
    """Tests that a sampler's vartype and order of variables change nothing."""
    found = run(lns.QLossDecomposer(kind="window", max_bits=8, examples=0), state)
    rows = np.random.default_rng(0).integers(0, 2, size=(10, found.subproblem.num_variables))
    plain = run(lns.QLossComposer(polish=0), reads(found, rows))
    order = np.random.default_rng(1).permutation(rows.shape[1])
    spins = dimod.SampleSet.from_samples(
        (2 * rows[:, order] - 1, order.tolist()), vartype="SPIN", energy=0.0, sort_labels=False
    )
    other = run(lns.QLossComposer(polish=0), found.updated(subsamples=spins))
    assert np.array_equal(plain.samples.record.sample, other.samples.record.sample)


@pytest.mark.parametrize("accept", ["greedy", lambda *_: Outcome.ACCEPT])
def test_the_best_is_never_lost(problem, accept):
    """Tests bad reads: from the optimum, random answers are refused or at least do not replace the best."""
    small = random_problem(features=2, bias_bits=2, weight_bits=2)
    codes, objectives = every_code(small)
    start = lns.hybrid_state(small, initial=small.values(codes[0]))
    flow = (
        lns.QLossDecomposer() | hybrid.RandomSubproblemSampler() | lns.QLossComposer(polish=0, accept=accept)
    )
    final = run(hybrid.Loop(flow, max_iter=20), start)
    assert final.samples.first.energy == pytest.approx(objectives[0], abs=1e-12)


def test_a_polish_helps(problem, state):
    """Tests that a walk from bits left as they are finds something better."""
    found = run(lns.QLossDecomposer(kind="stored"), state)
    plain, polished = (run(lns.QLossComposer(polish=n), found) for n in (0, 100))
    assert plain.samples.first.energy == state.samples.first.energy
    assert polished.samples.first.energy < state.samples.first.energy
    assert is_true(polished, problem)
    assert found.move.gain > 0  # what the decomposer will hear of


def test_samples_are_few_distinct_and_led_by_the_current_one(problem, state):
    """Tests the pool: at most `keep`, none twice, the accepted solution first."""
    flow = (
        lns.QLossDecomposer()
        | descent()
        | lns.QLossComposer(polish=0, keep=3, accept=lambda *_: Outcome.ACCEPT)
    )
    for _ in range(12):
        state = run(flow, state)
        codes = state.problem.codes(state.samples)
        assert len(codes) <= 3
        assert len(np.unique(codes, axis=0)) == len(codes)
        assert is_true(state, problem)
    assert len(codes) == 3


def test_stale_subsamples_are_refused(state):
    """Tests that reads of another subproblem are an error, not an answer."""
    small, large = (
        run(lns.QLossDecomposer(kind="stored", max_bits=bits, examples=0), state) for bits in (4, 8)
    )
    with pytest.raises(InvalidInput, match=r"must have the 8 variables of the subproblem\. Got 4 others"):
        run(lns.QLossComposer(), large.updated(subsamples=small.subsamples))


def test_subsamples_of_an_earlier_round_do_not_reach_the_sampler(state):
    """Tests the trap of hybrid's own decomposers: changing sizes with a sampler that starts warm."""
    flow = lns.QLossDecomposer() | hybrid.TabuSubproblemSampler(num_reads=2, timeout=1) | lns.QLossComposer()
    run(hybrid.Loop(flow, max_iter=10), state)


# ---- flows ----


def mock_qpu():
    """Hybrid's QPU sampler on a small mock chip."""
    chip = MockDWaveSampler(topology_type="pegasus", topology_shape=[3])
    return hybrid.QPUSubproblemAutoEmbeddingSampler(num_reads=5, qpu_sampler=chip)


SAMPLERS = {
    "tabu": quick_tabu,
    "annealing": lambda: hybrid.SimulatedAnnealingSubproblemSampler(num_reads=3, num_sweeps=20),
    "descent": hybrid.SteepestDescentSubproblemSampler,
    "random": hybrid.RandomSubproblemSampler,
    "qpu": mock_qpu,
    "wrapped": descent,
    "identity": hybrid.Identity,
    "race": lambda: (
        hybrid.Race(quick_tabu(), hybrid.RandomSubproblemSampler())
        | hybrid.ArgMin(key="subsamples.first.energy")
    ),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_subproblem_sampler_fits(problem, name):
    """Tests the ready workflow: energies are true and never above the start."""
    workflow = lns.hybrid_workflow(
        problem,
        SAMPLERS[name](),
        decomposer=lns.QLossDecomposer(max_bits=8, examples=1),
        initial="zero",
        max_iter=4,
    )
    final = run(workflow, hybrid.State())
    assert is_true(final, problem)
    assert final.samples.first.energy <= recomputed(problem, problem.state().codes)


def branch(seed, sampler=quick_tabu):
    """A round."""
    return lns.QLossDecomposer(seed=seed) | sampler() | lns.QLossComposer()


FLOWS = {
    "race": lambda: hybrid.Loop(hybrid.Race(branch(0), branch(1)) | hybrid.ArgMin(), max_iter=4),
    "parallel": lambda: hybrid.Loop(hybrid.Parallel(branch(0), branch(1)) | hybrid.ArgMin(), max_iter=4),
    "branches": lambda: hybrid.Dup(2) | (branch(0) & branch(1)) | hybrid.ArgMin(),
    "map": lambda: hybrid.Dup(3) | hybrid.Map(branch(0)) | hybrid.ArgMin(),
    "merge": lambda: (
        hybrid.Parallel(branch(0), branch(1))
        | hybrid.MergeSamples(aggregate=True)
        | lns.QLossDecomposer(kind="fusion")
        | quick_tabu()
        | lns.QLossComposer()
    ),
    "until": lambda: hybrid.LoopUntilNoImprovement(branch(0), convergence=3, max_iter=20),
    "while": lambda: hybrid.LoopWhileNoImprovement(branch(0), max_tries=3, max_iter=20),
    "track": lambda: hybrid.Loop(branch(0) | hybrid.TrackMin(output=True), max_iter=4),
    "slice": lambda: hybrid.Loop(branch(0) | hybrid.SliceSamples(1), max_iter=4),
    "lambda": lambda: hybrid.Loop(branch(0) | hybrid.Lambda(lambda _, s: s.updated(seen=1)), max_iter=4),
    "nested": lambda: (
        hybrid.Race(hybrid.Loop(branch(0)), hybrid.Loop(branch(1), max_iter=3)) | hybrid.ArgMin()
    ),
}


@pytest.mark.parametrize("name", FLOWS)
def test_every_flow_works(problem, state, name):
    """Tests hybrid's flow control around our rounds: the state gets better, its energies stay true."""
    final = run(FLOWS[name](), state)
    assert is_true(final, problem)
    assert final.samples.first.energy < state.samples.first.energy


def test_a_seed_repeats_a_run():
    """Tests the same rounds for the same seed, with a sampler that has one; and others for another seed."""
    problem = random_problem(features=20, rows=200)

    def history(seed):
        records = []
        log = hybrid.Log(
            key=lambda s: {"best": s.samples.first.energy, "size": len(s.subproblem)}, memo=records
        )
        flow = lns.QLossDecomposer(seed=seed) | descent() | lns.QLossComposer(polish=10) | log
        final = run(hybrid.Loop(flow, max_iter=15), lns.hybrid_state(problem, initial="zero"))
        return [record["data"] for record in records], final.samples.record.sample.tolist()

    assert history(0) == history(0)
    assert history(0)[0] != history(1)[0]


def test_parallel_branches_repeat_too():
    """Tests that threads do not disturb a seeded flow: every branch has its own decomposer."""
    problem = random_problem(features=20, rows=200)

    def history():
        flow = hybrid.Parallel(branch(0, descent), branch(1, descent)) | hybrid.ArgMin()
        return run(hybrid.Loop(flow, max_iter=8), lns.hybrid_state(problem, initial="zero"))

    assert history().samples.record.sample.tolist() == history().samples.record.sample.tolist()


def test_a_small_problem_is_solved(tiny):
    """Tests the ready workflow against all solutions of a tiny problem, sub-QUBOs alone."""
    _, objectives = every_code(tiny)
    workflow = lns.hybrid_workflow(
        tiny, descent(), composer=lns.QLossComposer(polish=0), initial="random", max_iter=30
    )
    assert run(workflow, hybrid.State()).samples.first.energy == pytest.approx(objectives[0], abs=1e-12)


def test_a_workflow_goes_on_where_it_was(problem):
    """Tests that a second run begins with what the first returned."""
    workflow = lns.hybrid_workflow(problem, quick_tabu(), initial="random", max_iter=2)
    first = run(workflow, hybrid.State())
    second = run(workflow, first)
    assert second.samples.first.energy <= first.samples.first.energy
    assert second.problem is first.problem
    with pytest.raises(InvalidInput, match="belongs to another problem"):
        run(lns.hybrid_workflow(random_problem(), quick_tabu(), max_iter=1), first)


def test_stop_rules(problem):
    """Tests the rounds of a target that the start has, of no improvement, of a time that is over at once."""
    start = lns.hybrid_state(problem).samples.first.energy
    rules = [({"target": start}, 1), ({"convergence": 3, "max_time": None}, 3), ({"max_time": 0}, 1)]
    for rule, rounds in rules:
        seen = []
        stay = hybrid.Lambda(lambda _, s, seen=seen: seen.append(1) or s)  # the bits as they are
        parts = {"decomposer": lns.QLossDecomposer(kind="stored"), "composer": lns.QLossComposer(polish=0)}
        run(lns.hybrid_workflow(problem, stay, **parts, **rule), hybrid.State())
        assert len(seen) == rounds


def test_the_data_may_be_sampled():
    """Tests that sub-QUBOs of a part of the rows are judged on all of them."""
    problem = random_problem(rows=500)
    state = lns.hybrid_state(problem, initial="zero", sample_rows=50)
    assert state.problem.part.rows == 50
    final = run(hybrid.Loop(branch(0), max_iter=5), state)
    assert is_true(final, problem)
    assert final.samples.first.energy < state.samples.first.energy


def test_blas_gets_its_threads_back():
    """Tests that overlapping users see one thread, and that the last to go restores the others."""

    def threads():
        return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]

    one_thread, before = OneBlasThread(), threads()  # knows the libraries that are loaded by now
    one_thread.__enter__()
    one_thread.__enter__()
    one_thread.__exit__()
    assert set(threads()) <= {1}
    one_thread.__exit__()
    assert threads() == before


# ---- errors ----


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "walk"}, r"Unknown kind 'walk'\. Choose one of window, hop, fusion, stored"),
        ({"background": "none"}, r"Unknown background 'none'\. Choose one of curvature, pinned"),
        ({"max_bits": 0}, r"max_bits must be an int of at least 1\. Got 0"),
        ({"examples": -1}, r"examples must be an int of at least 0\. Got -1"),
        ({"seed": 0.5}, r"seed must be an int"),
    ],
)
def test_a_decomposer_refuses_nonsense(options, message):
    """Tests every rule of its options."""
    with pytest.raises(InvalidInput, match=message):
        lns.QLossDecomposer(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"polish": -1}, r"polish must be an int of at least 0"),
        ({"keep": 1}, r"keep must be an int of at least 2"),
        ({"accept": "all"}, r"Unknown acceptance 'all'"),
    ],
)
def test_a_composer_refuses_nonsense(options, message):
    """Tests every rule of its options."""
    with pytest.raises(InvalidInput, match=message):
        lns.QLossComposer(**options)


def test_a_workflow_refuses_nonsense(problem):
    """Tests a dimod sampler, a missing stop rule, and a wrong start."""
    with pytest.raises(
        InvalidInput, match=r"Wrap a dimod sampler like this: hybrid\.HybridSubproblemRunnable"
    ):
        lns.hybrid_workflow(problem, TabuSampler())
    with pytest.raises(InvalidInput, match="Give at least one of max_time"):
        lns.hybrid_workflow(problem, max_time=None)
    with pytest.raises(InvalidInput, match=r"initial must be"):
        lns.hybrid_state(problem, initial="best")
    with pytest.raises(InvalidInput, match=r"sample_rows must be an int of at least 1"):
        QLossStart(problem, sample_rows=0)


def test_a_state_of_another_kind_is_refused(problem):
    """Tests a plain model in the state, and a composer without a decomposer."""
    bqm = problem.to_bqm()
    with pytest.raises(InvalidInput, match=r"Make it with lns\.hybrid_state"):
        run(lns.QLossDecomposer(), hybrid.State.from_problem(bqm))
    state = lns.hybrid_state(problem)
    state.subsamples = state.samples
    with pytest.raises(hybrid.exceptions.StateTraitMissingError, match="move"):
        run(lns.QLossComposer(), state)


def test_a_local_run_does_not_import_hybrid():
    """Tests that only who asks for hybrid pays for it."""
    code = (
        "import sys, numpy as np, lns; "
        "p = lns.QLossProblem(np.eye(4), [1, -1, 1, -1], weight_range=(-1, 1), bias_range=(-1, 1)); "
        "lns.solve(p, max_rounds=2); print('hybrid' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_model_names_its_problem(state):
    """Tests what a printed state shows."""
    assert isinstance(state.problem, CollapsedModel)
    assert "120 examples x 6 features" in repr(state.problem)


# ---- the fixed instance ----

needs_instances = pytest.mark.skipif(instances() is None, reason="the fixed instances are not here")


@needs_instances
@pytest.mark.parametrize("initial", [None, "zero"])
def test_the_best_known_objective_is_reached(initial):
    """Tests F = 0.28641 of the 5,650-variable QUBO with a seeded tabu search."""
    problem, best_known = long_servedio_noise20()
    tabu = hybrid.HybridSubproblemRunnable(
        TabuSampler(), num_reads=2, timeout=None, num_restarts=2, lower_bound_z=1000, seed=1
    )
    workflow = lns.hybrid_workflow(problem, tabu, initial=initial, max_iter=150, target=best_known + 1e-6)
    assert run(workflow, hybrid.State()).samples.first.energy <= best_known + 1e-6


@needs_instances
@pytest.mark.slow
@pytest.mark.parametrize("initial", [None, "zero"])
def test_the_best_known_objective_is_reached_within_ten_seconds(initial):
    """Tests the same with hybrid's own tabu search, on the clock."""
    problem, best_known = long_servedio_noise20()
    lns.hybrid_state(problem)  # compiled loops are loaded
    workflow = lns.hybrid_workflow(
        problem,
        hybrid.TabuSubproblemSampler(timeout=10),
        initial=initial,
        target=best_known + 1e-6,
        max_time=10,
    )
    began = perf_counter()
    final = workflow.run(hybrid.State()).result()
    assert final.samples.first.energy <= best_known + 1e-6
    assert perf_counter() - began < 10


def test_the_energy_of_a_given_start_is_that_of_its_bits():
    """Tests automatic ranges: bits mean levels of the problem, wherever the start would have its own."""
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.tile([-1, 1], 30)
    problem = lns.QLossProblem(X, y)
    state = lns.hybrid_state(problem, initial=(np.full(3, 0.7), 0.2))
    w, b = problem.decode(state.samples)
    assert state.samples.first.energy == pytest.approx(problem.objective(w, b))
