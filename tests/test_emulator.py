"""Tests of the annealer emulator: chains, strengths, scaling, votes, repair, sizes, threads."""

from __future__ import annotations

import logging
import pickle
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np
import pytest
import slow_reference as slow
from search_cases import ask, random_codes, random_problem

import lns
from lns.embedding import Chip, Shape, Store, embed, largest_embedding
from lns.embedding.fabric import Fabric
from lns.errors import InvalidInput
from lns.solvers import Emulator, Solver, make_solver
from lns.solvers.chains import Ising, Ranges, Wiring, chain_strengths, descend, part, to_spins
from lns.subproblem import SubQubo

CHIP = "chimera:4"


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory):
    """No test touches the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LNS_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def joined_sub(weights, examples, bits, seed=0):
    """Random coefficients on the graph of a round: all weight bits with everything, targets in blocks."""
    rng = np.random.default_rng(seed)
    shape = Shape(weights, examples, bits)
    quadratic = np.zeros((shape.size, shape.size))
    a, b = shape.edge_arrays()
    quadratic[a, b] = rng.normal(size=len(a))
    return SubQubo(rng.normal(size=shape.size), quadratic + quadratic.T, 0.25, weights)


def zeros(sub):
    """A start."""
    return np.zeros(sub.num_variables, dtype=np.int8)


def wiring(shape, chip=CHIP):
    """The wiring of a shape embedded for itself."""
    return Wiring(embed(Chip.from_name(chip), shape, timeout=0.0, store=Store(None)))


def physical(sub, shape, factor=1.5):
    """The wiring of a sub-QUBO and its physical problem."""
    wires = wiring(shape)
    h, j, offset = to_spins(sub.linear, sub.quadratic, sub.offset)
    return wires, wires.embed(h, j, offset, chain_strengths(h, j, factor))


# ---- chains ----


@pytest.mark.parametrize("shape", [Shape(4, 2, 2), Shape(6, 1, 3), Shape(3, 0, 4), Shape(1, 2, 1)])
def test_whole_chains_have_the_logical_energy(shape):
    """Tests that the physical energy of every setting without a broken chain is the sub-QUBO's."""
    sub = joined_sub(shape.weights, shape.examples, shape.target_bits)
    wires, problem = physical(sub, shape)
    bits = slow.all_bits(sub.num_variables)
    np.testing.assert_allclose(problem.energies(wires.spins(bits)), sub.energies(bits), atol=1e-9)
    voted, broken = wires.unembed(wires.spins(bits))
    np.testing.assert_array_equal(voted, bits)
    assert not broken.any()


def test_the_physical_minimum_is_the_logical_one():
    """Tests all 2^m spins of a small embedding: with strong chains the best one is the logical optimum."""
    shape = Shape(3, 1, 2)
    for seed in range(3):
        sub = joined_sub(3, 1, 2, seed)
        wires, problem = physical(sub, shape, factor=3.0)
        assert shape.size < wires.num_qubits <= 16
        spins = 2 * slow.all_bits(wires.num_qubits) - 1
        energies = problem.energies(spins)
        best = sub.energies(slow.all_bits(sub.num_variables)).min()
        assert energies.min() == pytest.approx(best)
        bits, broken = wires.unembed(spins[[energies.argmin()]].astype(np.int8))
        assert not broken.any()
        assert sub.energies(bits)[0] == pytest.approx(best)


def test_only_working_couplers_between_the_right_chains_are_used():
    """Tests every coupler of the physical problem against the chip's own list."""
    shape = Shape(6, 2, 3)
    wires = wiring(shape)
    known = {tuple(row) for row in wires.embedding.chip.couplers.tolist()}
    used = np.sort(np.column_stack([wires.qubits[wires.a], wires.qubits[wires.b]]), axis=1)
    assert {tuple(row) for row in used.tolist()} <= known
    edges = set(shape.edges())
    pairs = {tuple(sorted(row)) for row in wires.owner[wires.ends].tolist()}
    assert pairs == edges  # each coupling is there, and nothing else
    np.testing.assert_allclose(np.bincount(wires.pair, wires.share)[np.unique(wires.pair)], 1.0)


def test_weights_get_stronger_chains_than_targets():
    """Tests the torque rule on couplings of one size: the root of the degree."""
    shape = Shape(6, 4, 2)
    j = np.zeros((shape.size, shape.size))
    a, b = shape.edge_arrays()
    j[a, b] = j[b, a] = 2.0
    strength = chain_strengths(np.zeros(shape.size), j, 1.5)
    np.testing.assert_allclose(strength[:6], 1.5 * 2 * np.sqrt(13))
    np.testing.assert_allclose(strength[6:], 1.5 * 2 * np.sqrt(7))


def test_a_majority_decides_and_a_tie_counts_as_zero():
    """Tests the vote on one chain of each length."""
    wires = wiring(Shape(6, 2, 3))
    length = int(wires.lengths[0])
    spins = -np.ones((length + 1, wires.num_qubits), dtype=np.int8)
    for up in range(length + 1):
        spins[up, :up] = 1
    bits, broken = wires.unembed(spins)
    assert bits[:, 0].tolist() == [int(2 * up > length) for up in range(length + 1)]
    assert broken[:, 0].tolist() == [0 < up < length for up in range(length + 1)]
    assert not bits[:, 1:].any()
    assert not broken[:, 1:].any()


@pytest.mark.parametrize("chip", ["chimera:8", "pegasus:4", "zephyr:3"])
def test_a_part_of_an_embedding_is_valid_and_smaller(chip):
    """Tests that embeddings cut down for smaller rounds stay embeddings, with shorter chains."""
    whole = largest_embedding(Chip.from_name(chip), store=Store(None))
    fabric = Fabric(whole.chip)
    for weights in {1, 2, whole.shape.weights // 2, whole.shape.weights}:
        for examples in {0, 1, whole.shape.examples}:
            for bits in (1, 3, 4):
                shape = Shape(weights, examples, bits)
                some = part(whole, shape, fabric).verify()
                assert some.shape == shape
                assert some.num_qubits <= whole.restrict(shape).num_qubits
                assert some.max_chain <= whole.max_chain


# ---- descent ----


def test_descent_ends_where_no_single_flip_helps():
    """Tests local minima by trying every flip."""
    sub = joined_sub(6, 3, 3)
    rng = np.random.default_rng(1)
    before = rng.integers(0, 2, (20, sub.num_variables)).astype(np.int8)
    copy = before.copy()
    after = descend(sub, before)
    np.testing.assert_array_equal(before, copy)
    assert (sub.energies(after) <= sub.energies(before) + 1e-12).all()
    for i in range(sub.num_variables):
        flipped = after.copy()
        flipped[:, i] ^= 1
        assert (sub.energies(flipped) >= sub.energies(after) - 1e-9).all()


def test_repair_touches_broken_bits_only():
    """Tests that whole chains keep what the chip said."""
    sub = joined_sub(6, 3, 3)
    rng = np.random.default_rng(2)
    before = rng.integers(0, 2, (20, sub.num_variables)).astype(np.int8)
    torn = rng.random(before.shape) < 0.3
    after = descend(sub, before, torn)
    assert (after[~torn] == before[~torn]).all()
    assert (after != before).any()
    assert (sub.energies(after) <= sub.energies(before) + 1e-12).all()


# ---- ranges ----


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_coefficients_fill_the_ranges_of_the_chip(size):
    """Tests auto-scaling of tiny and of huge problems: within all ranges, at the edge of one."""
    sub = joined_sub(5, 2, 2)
    sub = SubQubo(sub.linear * size, sub.quadratic * size, 0.0, 5)
    _, problem = physical(sub, Shape(5, 2, 2))
    scaled = problem.scaled(Ranges().fit(problem))
    reach = (np.abs(scaled.h).max() / 4, scaled.j.max(), scaled.j.min() / -2)
    assert max(reach) == pytest.approx(1.0)


def test_a_problem_without_coefficients_is_not_scaled():
    """Tests the empty range."""
    none = np.empty(0, dtype=np.intp)
    assert Ranges().fit(Ising(np.zeros(3), none, none, np.empty(0), 0.0)) == 1.0


# ---- the solver ----


def test_it_is_a_solver_known_by_name():
    """Tests the protocol and the registry."""
    solver = make_solver("emulator", {"topology": CHIP})
    assert isinstance(solver, Solver)
    assert solver == Emulator(topology=CHIP)
    sub = joined_sub(5, 2, 2)
    samples = solver(sub, zeros(sub), 2**31 - 1)
    assert samples.shape == (solver.num_reads, sub.num_variables)
    assert samples.dtype == np.int8
    assert np.isin(samples, (0, 1)).all()


@pytest.mark.parametrize("descent", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_small_rounds_are_solved_to_the_optimum(seed, descent):
    """Tests the best read against brute force, with and without the final descent."""
    sub = joined_sub(5, 2, 3, seed)
    samples = Emulator(topology=CHIP, descent=descent)(sub, zeros(sub), seed)
    best = sub.energies(slow.all_bits(sub.num_variables)).min()
    assert sub.energies(samples).min() == pytest.approx(best)


def test_weak_chains_break_and_are_repaired():
    """Tests that broken chains are counted, and that what comes back is no worse than the bare vote."""
    sub = joined_sub(8, 3, 4)
    weak = Emulator(topology=CHIP, chain_strength=0.05, descent=False)
    strong = Emulator(topology=CHIP, chain_strength=3.0)
    samples, info = weak.run(sub, zeros(sub), 1)
    assert info.broken > 0.2
    assert strong.run(sub, zeros(sub), 1)[1].broken < 0.05
    best = sub.energies(Emulator(topology=CHIP)(sub, zeros(sub), 1)).min()
    assert sub.energies(samples).min() < 0.8 * best < 0
    again = descend(sub, samples)
    assert (sub.energies(again) <= sub.energies(samples) + 1e-9).all()


def test_the_same_seed_gives_the_same_samples_in_threads():
    """Tests eight calls at once, each of a shape of its own, against the same calls one after the other."""
    subs = [joined_sub(weights, examples, 4, 7) for weights in (3, 8) for examples in (0, 1, 2, 3)]
    alone = Emulator(topology=CHIP, noise=0.02)
    one_by_one = [alone(sub, zeros(sub), 10 + k) for k, sub in enumerate(subs)]
    together = Emulator(topology=CHIP, noise=0.02)
    with ThreadPoolExecutor(8) as pool:

        def solve(k):
            samples = together(subs[k], zeros(subs[k]), 10 + k)
            return samples, together.info.num_variables

        answers = list(pool.map(solve, range(len(subs))))
    for k, (samples, size) in enumerate(answers):
        np.testing.assert_array_equal(samples, one_by_one[k])
        assert size == subs[k].num_variables  # the information is this thread's own
    assert len(together.calls) == len(subs)
    assert together.info is None  # this thread made no call


def test_noise_disturbs_and_is_seeded():
    """Tests that analogue errors change the reads, and in the same way for the same seed."""
    sub = joined_sub(8, 3, 4)
    clean, noisy = (Emulator(topology=CHIP, noise=noise, descent=False) for noise in (0.0, 0.3))
    first, second = noisy(sub, zeros(sub), 3), noisy(sub, zeros(sub), 3)
    np.testing.assert_array_equal(first, second)
    assert sub.energies(first).mean() > sub.energies(clean(sub, zeros(sub), 3)).mean()


def test_information_about_a_call():
    """Tests logical and physical size, chains, strength, scale and times."""
    solver = Emulator(topology=CHIP, num_reads=5)
    sub = joined_sub(6, 2, 4)
    solver(sub, zeros(sub), 0)
    info = solver.info
    assert (info.weight_bits, info.examples, info.target_bits, info.num_variables) == (6, 2, 4, 14)
    assert (info.reads, info.held) == (5, 0)
    assert info.num_qubits == pytest.approx(info.mean_chain * 14)
    assert info.max_chain >= info.mean_chain > 1
    assert 0 <= info.broken <= 1
    assert info.strength > 0
    assert info.scale > 0
    assert min(info.embed_seconds, info.sample_seconds, info.unembed_seconds) > 0
    assert info.to_dict()["reads"] == 5


def test_a_copy_sent_elsewhere_gives_the_same_samples():
    """Tests pickling, after a call: options travel, memory does not."""
    solver = Emulator(topology=CHIP, num_reads=3)
    sub = joined_sub(5, 2, 2)
    samples = solver(sub, zeros(sub), 5)
    copy = pickle.loads(pickle.dumps(solver))
    assert copy == solver
    assert copy.calls == []
    np.testing.assert_array_equal(copy(sub, zeros(sub), 5), samples)


# ---- sizes ----


@pytest.mark.parametrize("chip", ["chimera:1", "chimera:2", "pegasus:2", "zephyr:1"])
@pytest.mark.parametrize("bits", [1, 2, 4, 6])
def test_small_chips_get_smaller_rounds(chip, bits):
    """Tests that a round sized as the engine sizes it is answered, whatever its target bits."""
    solver = Emulator(topology=chip, num_reads=2, num_sweeps=20)
    weights, most = solver.max_weight_bits, solver.max_variables
    assert 1 <= weights <= most <= solver.chip.num_qubits
    sub = joined_sub(weights, (most - weights) // bits, bits)
    assert solver(sub, zeros(sub), 0).shape == (2, sub.num_variables)


def test_rounds_as_large_as_the_chip_says_lie_on_it_whole():
    """Tests the largest round and one of its parts: nothing is left out."""
    solver = Emulator(topology=CHIP, num_reads=2, num_sweeps=20)
    whole = solver.largest(4).shape
    assert (whole.weights, whole.size) == (solver.max_weight_bits, solver.max_variables)
    for shape in (whole, Shape(whole.weights - 1, whole.examples - 1, 4), Shape(1, whole.examples, 4)):
        sub = joined_sub(shape.weights, shape.examples, 4)
        solver(sub, zeros(sub), 0)
        assert solver.info.held == 0
        assert solver.info.num_variables == shape.size


def test_what_has_no_room_is_held_and_said_once(caplog):
    """Tests a round twice as large as the chip: bits without room keep their start, then descend."""
    solver = Emulator(topology="chimera:2", num_reads=4, descent=False)
    sub = joined_sub(2 * solver.max_weight_bits, 4, 4)
    start = np.ones(sub.num_variables, dtype=np.int8)
    with caplog.at_level(logging.WARNING, "lns"):
        samples = [solver(sub, start, seed) for seed in (1, 2)]
    assert len(caplog.records) == 1
    assert "larger than chimera:2 has room for" in caplog.text
    assert solver.info.held == sub.num_variables - solver.info.num_variables > 0
    kept = solver.place(sub)[1]
    held = np.setdiff1d(np.arange(sub.num_variables), kept)
    assert (samples[0][:, held] == 1).all()
    # Given the bits that are held, the others are at their optimum.
    settings = np.repeat(start[None, :], 2 ** len(kept), axis=0)
    settings[:, kept] = slow.all_bits(len(kept))
    assert sub.energies(samples[0]).min() == pytest.approx(sub.energies(settings).min())


def test_uncoupled_target_bits_share_places():
    """Tests a round in which an example has weight zero: its bits are coupled to nothing."""
    sub = joined_sub(4, 2, 4)
    sub.linear[8:] = 0.0
    sub.quadratic[8:] = sub.quadratic[:, 8:] = 0.0
    shape, variables, places = Emulator(topology=CHIP).place(sub)
    assert shape == Shape(4, 2, 4)
    assert variables.tolist() == places.tolist() == list(range(12))


def test_a_round_of_the_engine_is_placed_whole():
    """Tests that target bits are found in a sub-QUBO as rounds build it."""
    problem = random_problem("dense", seed=3, target_bits=3)
    sub = ask(problem, random_codes(problem, 3), weights=range(6), examples=2, background="pinned").sub
    shape, variables, places = Emulator(topology=CHIP).place(sub)
    assert shape == Shape(sub.num_weight_bits, 2, 3)
    assert variables.tolist() == places.tolist() == list(range(sub.num_variables))


def test_damaged_chips_work():
    """Tests dead qubits: chains avoid them."""
    solver = Emulator(topology=CHIP, dead=0.1, dead_seed=2, num_reads=2)
    assert solver.chip.missing_qubits == 13
    sub = joined_sub(solver.max_weight_bits, 1, 4)
    solver(sub, zeros(sub), 0)
    shape = solver.place(sub)[0]
    assert np.isin(solver.wiring(shape).qubits, solver.chip.qubits).all()


def test_a_run_on_the_emulator_can_be_repeated():
    """Tests the whole engine on a small chip, twice."""
    problem = random_problem("dense", seed=1)
    options = {"topology": CHIP, "num_reads": 4, "num_sweeps": 50}
    first, second = (
        lns.solve(
            problem, max_rounds=3, time_limit=None, mode="rounds", solver="emulator", solver_options=options
        )
        for _ in range(2)
    )
    assert first.objective == second.objective
    assert first.solver == "emulator"
    np.testing.assert_array_equal(first.codes, second.codes)


def test_rounds_are_sized_to_the_target_bits_of_the_problem():
    """Tests that a run tells its solver, which is sized anew, and that copies know it too."""
    solver = Emulator(topology="chimera:8", num_reads=2, num_sweeps=20)
    before = solver.max_variables
    lns.solve(random_problem("dense", seed=1, target_bits=6), max_rounds=2, solver=solver)
    assert solver.max_variables == largest_embedding(solver.chip, target_bits=6).shape.size != before
    assert pickle.loads(pickle.dumps(solver)).max_variables == solver.max_variables


def test_a_solver_is_prepared_before_the_clock_starts():
    """Tests the hook: it is told the target bits, once, and its time is not the run's."""
    told = []

    class Slow:
        def prepare(self, target_bits):
            told.append((target_bits, perf_counter()))

        def __call__(self, sub, start, seed):
            return start[None, :]

    result = lns.solve(random_problem("dense", seed=1, target_bits=3), max_rounds=2, solver=Slow())
    ended = perf_counter()
    assert [bits for bits, _ in told] == [3]
    assert told[0][1] <= ended - result.wall_time


# ---- options ----


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topology": "hexagon:3"}, "There is no chip called 'hexagon:3'.*chimera:8.*pegasus:16"),
        ({"topology": "pegasus:1"}, r"must be in \[2, 32\]"),
        ({"num_reads": 0}, "'num_reads' option of emulator must be an int of at least 1. Got 0"),
        ({"num_sweeps": 1.5}, "'num_sweeps'"),
        ({"max_chain": 0}, "'max_chain'"),
        ({"chain_strength": 0.0}, "'chain_strength' option of emulator must be above 0"),
        ({"noise": -0.1}, r"'noise' option of emulator must lie in \[0, 1\)"),
        ({"dead": 1.0}, "'dead'"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    """Tests the checks at the door."""
    with pytest.raises(InvalidInput, match=message):
        Emulator(**options)


def test_memory_is_no_option():
    """Tests that an unknown option names the options and nothing else."""
    with pytest.raises(TypeError, match="no option '_memory'"):
        make_solver("emulator", {"_memory": 1})
    with pytest.raises(TypeError, match="Did you mean 'topology'"):
        make_solver("emulator", {"topologie": CHIP})


def test_a_bound_on_chains_makes_rounds_smaller():
    """Tests max_chain: kept by the largest round."""
    free, bound = Emulator(topology="chimera:8"), Emulator(topology="chimera:8", max_chain=10)
    assert bound.largest(4).max_chain <= 10 < free.largest(4).max_chain
    assert bound.max_variables < free.max_variables
