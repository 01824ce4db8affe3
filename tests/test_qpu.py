"""Tests of rounds on a quantum annealer, with a fake one: packing, faults, time, secrets."""

from __future__ import annotations

import logging
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import slow_reference as slow
from dwave.samplers import SimulatedAnnealingSampler
from dwave.system.testing import MockDWaveSampler
from fake_qpu import SECRET, TIME, FakeQPU
from search_cases import random_problem
from test_emulator import joined_sub, zeros

import lns
from lns import cli
from lns.embedding import Chip
from lns.errors import AnnealerError, InvalidInput
from lns.solvers import QPU, Emulator, Solver, Tabu, make_solver
from lns.solvers import annealer as annealer_module
from lns.solvers import qpu as qpu_module
from lns.solvers.annealer import FIRST_PAUSE, FIRST_REST, Budget, scrub


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory):
    """No test touches the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LNS_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def _no_configuration(monkeypatch, tmp_path):
    """No test sees the user's D-Wave configuration."""
    monkeypatch.setenv("DWAVE_CONFIG_FILE", str(tmp_path / "dwave.conf"))
    (tmp_path / "dwave.conf").write_text("")
    for name in ("DWAVE_API_TOKEN", "DWAVE_PROFILE", "DWAVE_API_SOLVER", "DWAVE_API_REGION"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def configured(monkeypatch):
    """A token in the environment."""
    monkeypatch.setenv("DWAVE_API_TOKEN", SECRET)


def solver_on(fake, **options):
    """A solver on a fake, and the pauses that it makes."""
    solver = QPU(**{"sampler": lambda: fake, "num_reads": 6, **options})
    pauses = []
    solver.annealer.sleep, solver.annealer.clock = pauses.append, lambda: 0.0
    return solver, pauses


def some_subs(count, weights=6, examples=2, bits=3):
    """Different sub-QUBOs, their starts and their seeds."""
    subs = [joined_sub(weights - k % 2, examples, bits, k) for k in range(count)]
    return subs, [zeros(sub) for sub in subs], [100 + k for k in range(count)]


# ---- the configuration ----


def test_without_a_configuration_it_says_how_to_make_one():
    """Tests the sentence, and that nothing has been looked at before."""
    for make in (lambda: make_solver("qpu"), lambda: lns.solve(None, solver="qpu")):
        with pytest.raises(InvalidInput, match=r"'dwave config create'.*'emulator' and 'tabu' need none"):
            make()


def test_the_command_says_so_before_it_looks_for_data(capsys):
    """Tests the command line with a file that is not there."""
    assert cli.main(["train", "no-such-file.csv", "--solver", "qpu"]) == 2
    error = capsys.readouterr().err
    assert "dwave config create" in error
    assert error.count("\n") == 1


def test_a_profile_that_is_not_there_is_named():
    """Tests the other way not to be configured."""
    with pytest.raises(InvalidInput, match=r"has no profile 'lab'.*dwave config create"):
        QPU(profile="lab")


def test_a_configuration_that_cannot_be_read_is_not_quoted(tmp_path):
    """Tests a file that is no configuration."""
    (tmp_path / "dwave.conf").write_text(f"token of mine: {SECRET}\n[")
    with pytest.raises(InvalidInput, match=r"cannot be read.*dwave config create") as caught:
        QPU()
    assert "0123456789" not in str(caught.value)


def test_nothing_is_connected_before_it_is_needed(configured, monkeypatch):
    """Tests that options reach D-Wave's sampler, once, and only those that were given."""
    made = []

    def sampler(**options):
        made.append(options)
        return FakeQPU()

    monkeypatch.setattr("dwave.system.DWaveSampler", sampler)
    solver = make_solver("qpu", {"solver": "Advantage_system4.1", "region": "eu-central-1"})
    assert made == []
    assert solver.chip.num_qubits == 512
    assert solver.max_variables > 0
    assert made == [{"solver": "Advantage_system4.1", "region": "eu-central-1"}]


def test_copies_carry_options_and_no_secret(configured):
    """Tests pickling, before and after a connection, and the text of the object."""
    solver = QPU(sampler=FakeQPU, num_reads=4, qpu_time_limit=1.0)
    solver.prepare(3)
    sent = pickle.dumps(solver)
    assert SECRET.encode() not in sent
    assert SECRET not in repr(solver)
    copy = pickle.loads(sent)
    assert copy == solver
    assert copy.max_variables == solver.max_variables
    sub = joined_sub(6, 2, 3)
    np.testing.assert_array_equal(copy(sub, zeros(sub), 1), solver(sub, zeros(sub), 1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_reads": 0}, "'num_reads' option of qpu must be an int of at least 1"),
        ({"retries": -1}, "'retries' option of qpu must be an int of at least 0. Got -1"),
        ({"pack": 0}, "'pack'"),
        ({"timeout": 0}, "'timeout' option of qpu must be a number above 0. Got 0"),
        ({"qpu_time_limit": float("inf")}, "'qpu_time_limit'"),
        ({"annealing_time": -20.0}, "'annealing_time'"),
        ({"num_spin_reversal_transforms": 101}, r"at most num_reads \(100\). Got 101"),
        ({"sampler": "mock"}, "'sampler' option of qpu must be a function"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    """Tests the checks at the door."""
    with pytest.raises(InvalidInput, match=message):
        QPU(**{"sampler": FakeQPU, **options})


def test_options_that_the_machine_does_not_take_are_refused_before_the_run():
    """Tests the machine's own limits."""
    for option, value in (("num_reads", 20_000), ("annealing_time", 0.1)):
        with pytest.raises(InvalidInput, match=rf"{option!r} option of qpu must lie in \[.*on this annealer"):
            QPU(sampler=FakeQPU, **{option: value}).prepare(4)


# ---- answers ----


def test_it_is_a_solver_known_by_name():
    """Tests the protocol and the registry."""
    solver = make_solver("qpu", {"sampler": FakeQPU})
    assert isinstance(solver, Solver)
    assert make_solver(solver) is solver  # not taken for a dimod sampler
    with pytest.raises(TypeError, match="Did you mean 'qpu_time_limit'"):
        make_solver("qpu", {"qpu_time_limt": 1.0})


@pytest.mark.parametrize(
    ("topology", "shape"), [("chimera", [6, 6, 4]), ("pegasus", [4]), ("zephyr", [3, 4])]
)
def test_the_optimum_is_found_through_the_mock(topology, shape):
    """Tests dwave-system's mock with a good sampler inside, on each topology and with dead qubits."""
    ideal = MockDWaveSampler(topology_type=topology, topology_shape=shape)
    mock = MockDWaveSampler(
        topology_type=topology,
        topology_shape=shape,
        broken_nodes=ideal.nodelist[5::40],
        substitute_sampler=SimulatedAnnealingSampler(),
        substitute_kwargs={"num_sweeps": 500, "seed": 1},
        parameter_warnings=False,
    )
    solver = QPU(sampler=lambda: mock, num_reads=20)
    assert solver.chip == Chip.from_sampler(mock)
    sub = joined_sub(4, 1, 3)
    samples = solver(sub, zeros(sub), 0)
    assert samples.shape == (20, sub.num_variables)
    assert sub.energies(samples).min() == pytest.approx(sub.energies(slow.all_bits(7)).min())


def test_what_the_machine_is_told():
    """Tests the parameters: our own scale, every read, and the given anneal."""
    fake = FakeQPU()
    solver, _ = solver_on(fake, annealing_time=50.0)
    sub = joined_sub(6, 2, 3)
    solver(sub, zeros(sub), 0)
    assert fake.asked[0][1] == {
        "num_reads": 6, "annealing_time": 50.0, "answer_mode": "raw", "auto_scale": False, "label": "qlns",
    }  # fmt: skip


def test_the_sum_of_couplings_of_a_qubit_is_bounded():
    """Tests a machine whose bound is tight: the fake refuses what exceeds it."""
    fake = FakeQPU()
    fake.properties["per_qubit_coupling_range"] = [-2.5, 2.0]
    solver, _ = solver_on(fake)
    sub = joined_sub(8, 2, 4)
    solver(sub, zeros(sub), 0)
    assert solver.info.fallbacks == 0
    loose, _ = solver_on(FakeQPU())
    loose(sub, zeros(sub), 0)
    assert solver.info.scale < loose.info.scale


def test_information_about_a_call():
    """Tests the record of a round: sizes, reads, QPU time."""
    solver, _ = solver_on(FakeQPU())
    sub = joined_sub(6, 2, 3)
    solver(sub, zeros(sub), 0)
    info = solver.info
    assert (info.weight_bits, info.examples, info.target_bits, info.num_variables) == (6, 2, 3, 12)
    assert (info.reads, info.packed, info.retries, info.fallbacks) == (6, 1, 0, 0)
    assert info.qpu_time == solver.qpu_time == pytest.approx(TIME)
    assert info.num_qubits == pytest.approx(info.mean_chain * 12)


def test_spin_reversals_change_the_machine_not_the_answer():
    """Tests that transforms divide the reads, are seeded, turn the problem round and are undone."""
    subs, starts, seeds = some_subs(1)
    plain_fake, fake, again = (FakeQPU("signs") for _ in range(3))
    plain = solver_on(plain_fake, descent=False)[0].run_many(subs, starts, seeds)[0][0]
    options = {"descent": False, "num_spin_reversal_transforms": 3}
    turned, info = solver_on(fake, **options)[0].run_many(subs, starts, seeds)[0]
    solver_on(again, **options)[0].run_many(subs, starts, seeds)
    assert [parameters["num_reads"] for _, parameters in fake.asked] == [2, 2, 2]
    assert info.qpu_time == pytest.approx(3 * TIME)
    problems = [bqm for bqm, _ in fake.asked]
    assert all(bqm != plain_fake.asked[0][0] for bqm in problems)
    assert problems == [bqm for bqm, _ in again.asked]
    # Each copy makes the first two reads of the plain call, seen from its own side.
    np.testing.assert_array_equal(turned, np.tile(plain[:2], (3, 1)))


# ---- packing ----


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("transforms", [0, 2])
def test_packed_problems_give_what_their_own_calls_would(count, transforms):
    """Tests k sub-QUBOs in calls of at most three against one call each."""
    subs, starts, seeds = some_subs(count)
    options = {"pack": 3, "num_spin_reversal_transforms": transforms}
    together, apart = FakeQPU(), FakeQPU()
    packed = solver_on(together, **options)[0].run_many(subs, starts, seeds)
    alone = solver_on(apart, **options)[0]
    for k, (samples, info) in enumerate(packed):
        expected, own = alone.run(subs[k], starts[k], seeds[k])
        np.testing.assert_array_equal(samples, expected)
        assert (info.num_qubits, info.broken, info.scale) == (own.num_qubits, own.broken, own.scale)
    copies = max(1, transforms)
    assert (together.calls, apart.calls) == (copies * -(-count // 3), copies * count)
    assert [info.packed for _, info in packed] == [min(3, count - k // 3 * 3) for k in range(count)]
    assert sum(info.qpu_time for _, info in packed) == pytest.approx(TIME * together.calls)


@pytest.mark.parametrize("chip", ["chimera:8", "pegasus:6", "zephyr:5"])
def test_the_emulator_packs_the_same_way(chip):
    """Tests that a sub-QUBO's answer does not depend on its companions, seeds and noise included."""
    subs, starts, seeds = some_subs(4)
    solver = Emulator(topology=chip, pack=4, num_reads=3, num_sweeps=30, noise=0.01, dead=0.02)
    for k, (samples, info) in enumerate(solver.run_many(subs, starts, seeds)):
        expected, own = solver.run(subs[k], starts[k], seeds[k])
        np.testing.assert_array_equal(samples, expected)
        assert (info.packed, own.packed) == (4, 1)


def test_packed_problems_lie_apart():
    """Tests that a call of four has four times the qubits, and no coupler between any two of the four."""
    fake = FakeQPU()
    solver, _ = solver_on(fake, pack=4)
    subs, starts, seeds = some_subs(4)
    results = solver.run_many(subs, starts, seeds)
    bqm, _ = fake.asked[0]
    assert fake.calls == 1
    assert bqm.num_variables == sum(info.num_qubits for _, info in results)
    tiles = solver.tiles
    part = {int(q): k for k in range(4) for q in tiles.place(tiles.tile.qubits, k)}
    assert len(part) == 4 * tiles.tile.num_qubits
    assert all(part[u] == part[v] for u, v in bqm.quadratic)
    assert {part[q] for q in bqm.variables} == {0, 1, 2, 3}


def test_threads_share_calls(monkeypatch):
    """Tests four threads and calls of two: two calls, each thread its own answer and information."""
    monkeypatch.setattr(qpu_module, "WINDOW", 30.0)  # calls go when they are full
    subs, starts, seeds = some_subs(4)
    fake = FakeQPU()
    solver, _ = solver_on(fake, pack=2)
    expected = [solver_on(FakeQPU(), pack=2)[0].run(*one)[0] for one in zip(subs, starts, seeds, strict=True)]
    with ThreadPoolExecutor(4) as pool:

        def solve(k):
            return solver(subs[k], starts[k], seeds[k]), solver.info

        answers = list(pool.map(solve, range(4)))
    for k, (samples, info) in enumerate(answers):
        np.testing.assert_array_equal(samples, expected[k])
        assert (info.num_variables, info.packed) == (subs[k].num_variables, 2)
    assert fake.calls == 2
    assert solver.qpu_time == pytest.approx(2 * TIME)


def test_who_comes_alone_does_not_wait_long():
    """Tests that a call goes when nobody joins it."""
    fake = FakeQPU()
    solver, _ = solver_on(fake, pack=4)
    sub = joined_sub(5, 1, 3)
    solver(sub, zeros(sub), 0)
    assert (fake.calls, solver.info.packed) == (1, 1)


def test_calls_are_on_their_way_together(monkeypatch):
    """Tests that the second call is submitted while the first has no answer yet."""
    fake, both = FakeQPU(), threading.Barrier(2, timeout=20)
    answer = fake.answer
    monkeypatch.setattr(fake, "answer", lambda *words: both.wait() >= 0 and answer(*words))
    solver, _ = solver_on(fake, pack=2)
    results = solver.run_many(*some_subs(4))
    assert [info.fallbacks for _, info in results] == [0] * 4


def test_a_chip_too_small_for_its_parts_says_so():
    """Tests more parts than cells."""
    with pytest.raises(InvalidInput, match="cannot be split into 30 equal parts: pack fewer"):
        Emulator(topology="chimera:2", pack=30)


# ---- faults ----

FAULTS = ["offline", "fail", "short", "values", "qubits", "empty"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_passes_is_retried(fault, caplog):
    """Tests two faults and an answer: no warning, two retries, growing pauses, nothing lost."""
    fake = FakeQPU(fault, fault, "ok")
    solver, pauses = solver_on(fake)
    sub = joined_sub(6, 2, 3)
    with caplog.at_level(logging.WARNING, "lns"):
        samples = solver(sub, zeros(sub), 7)
    assert (solver.info.retries, solver.info.fallbacks, fake.calls) == (2, 0, 3)
    assert caplog.text == ""
    np.testing.assert_array_equal(samples, solver_on(FakeQPU())[0](sub, zeros(sub), 7))
    assert len(pauses) == 2
    assert 0.5 * FIRST_PAUSE <= pauses[0] <= 1.5 * FIRST_PAUSE
    assert 1.0 * FIRST_PAUSE <= pauses[1] <= 3.0 * FIRST_PAUSE
    other, same_pauses = solver_on(FakeQPU(fault, fault, "ok"))
    other(sub, zeros(sub), 7)
    assert same_pauses == pauses


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_stays_is_left_to_tabu(fault, caplog):
    """Tests the answer, the counts and the one warning, which has no secret in it."""
    fake = FakeQPU(fault)
    solver, _ = solver_on(fake, retries=3)
    sub = joined_sub(6, 2, 3)
    with caplog.at_level(logging.WARNING, "lns"):
        samples = [solver(sub, zeros(sub), seed) for seed in (1, 2, 3)]
    for seed, found in zip((1, 2, 3), samples, strict=True):
        np.testing.assert_array_equal(found, Tabu()(sub, zeros(sub), seed))
    assert [call.fallbacks for call in solver.calls] == [1, 1, 1]
    assert [call.retries for call in solver.calls] == [3, 0, 0]  # afterwards the machine has a rest
    assert fake.calls == 4
    assert len(caplog.records) == 1
    assert "The annealer gave no answer" in caplog.text
    assert SECRET not in caplog.text
    assert "cloud.example" not in caplog.text


def test_what_a_spoilt_answer_cost_is_counted():
    """Tests that the time of answers that could not be used is in the record and in the total."""
    solver, _ = solver_on(FakeQPU("short", "values", "ok"))
    sub = joined_sub(6, 2, 3)
    solver(sub, zeros(sub), 7)
    assert solver.info.qpu_time == solver.qpu_time == pytest.approx(3 * TIME)


def test_a_machine_that_hangs_is_not_waited_for():
    """Tests attempts that never end: each is given up at its deadline."""
    fake = FakeQPU("hang", "ok")
    solver, _ = solver_on(fake, timeout=2.0)
    sub = joined_sub(6, 2, 3)
    try:
        solver(sub, zeros(sub), 0)
        assert (solver.info.retries, solver.info.fallbacks) == (1, 0)
        stuck, _ = solver_on(FakeQPU("hang"), timeout=0.1, retries=1)
        stuck(sub, zeros(sub), 0)
        assert (stuck.info.retries, stuck.info.fallbacks) == (1, 1)
    finally:
        fake.release.set()


def test_nothing_is_waited_for_when_the_run_is_over():
    """Tests the time limit of a run against a machine that hangs, and that nothing is asked afterwards."""
    fake = FakeQPU("hang")
    solver, _ = solver_on(fake, timeout=15.0)
    sub = joined_sub(6, 2, 3)
    solver(sub, zeros(sub), 0, expired=lambda: True)
    assert solver.info.fallbacks == 1
    calls = [thread for thread in threading.enumerate() if thread.name == "lns-chip-call"]
    assert calls  # the answer came before the machine's
    fake.release.set()
    for thread in calls:
        thread.join(20)
    assert fake.calls == 1


def test_a_resting_machine_is_asked_again_later():
    """Tests the rest after a failure: longer after every further one, over once it has answered."""
    fake = FakeQPU("offline", "offline", "ok", "offline", "ok")
    solver, _ = solver_on(fake, retries=0)
    now = [100.0]
    solver.annealer.clock = lambda: now[0]
    sub = joined_sub(6, 2, 3)

    def falls_back(after):
        now[0] += after
        solver(sub, zeros(sub), 0)
        return solver.info.fallbacks == 1

    assert falls_back(0)  # the first failure
    assert falls_back(0.9 * FIRST_REST)  # still at rest
    assert fake.calls == 1
    assert falls_back(0.2 * FIRST_REST)  # the second failure
    assert falls_back(1.9 * FIRST_REST)  # rests twice as long
    assert fake.calls == 2
    assert not falls_back(0.2 * FIRST_REST)
    assert falls_back(0)  # the third, but the first in a row
    assert not falls_back(1.1 * FIRST_REST)
    assert fake.calls == 5


def run(solver, rounds=8, **options):
    """A short search, and how many sub-QUBOs it had."""
    problem = random_problem("dense", rows=60, features=5, seed=1, target_bits=3)
    result = lns.solve(problem, max_rounds=rounds, time_limit=None, mode="rounds", solver=solver, **options)
    return result, sum(len(one.chip) for record in result.rounds for one in record.neighbourhoods)


@pytest.mark.parametrize("fault", ["offline", "hang", "short", "values"])
def test_a_run_survives_a_machine_that_fails_on_the_way(fault, caplog):
    """Tests a machine that answers three calls and no more: the run ends, the count is right."""
    fake = FakeQPU("ok", "ok", "ok", fault)
    solver, _ = solver_on(fake, pack=1, timeout=2.0 if fault == "hang" else 20.0, retries=1)
    with caplog.at_level(logging.WARNING, "lns"):
        result, subs = run(solver, workers=1)
    fake.release.set()
    assert len(result.rounds) == 8
    assert result.stop_reason == "max_rounds"
    chip = result.chip()
    assert subs > 5
    assert (chip["calls"], chip["fallbacks"]) == (3, subs - 3)
    paid = 3 + (2 if fault in ("short", "values") else 0)
    assert chip["qpu_time"] == solver.qpu_time == pytest.approx(paid * TIME)
    assert len(caplog.records) == 1
    assert f"{subs - 3} by tabu search instead" in result.summary()
    assert result.objective <= result.start_objective


def test_a_run_can_be_repeated_with_any_number_of_workers():
    """Tests that sharing calls changes no answer: one thread or four, two calls a round or one."""
    params = lns.engine.EngineParams(neighbourhoods=4)
    results = [
        run(solver_on(FakeQPU(), pack=2)[0], rounds=5, workers=workers, params=params)[0]
        for workers in (1, 4)
    ]
    np.testing.assert_array_equal(results[0].codes, results[1].codes)
    assert [r.objective for r in results[0].rounds] == [r.objective for r in results[1].rounds]
    assert results[0].chip()["fallbacks"] == 0


def test_one_that_cannot_be_reached_ends_the_run_before_it_begins(configured, monkeypatch):
    """Tests the first connection: retried, then one error with a remedy and without the secret."""
    tried = []

    def refuse(**options):
        tried.append(options)
        raise ConnectionError(f"https://{SECRET}@cloud.example refused {SECRET} twice")

    monkeypatch.setattr("dwave.system.DWaveSampler", refuse)
    solver = QPU(retries=2)
    solver.annealer.sleep = lambda seconds: None
    with pytest.raises(AnnealerError, match=r"cannot be reached.*ConnectionError.*'dwave ping'") as caught:
        run(solver)
    assert len(tried) == 3
    error = caught.value
    while error is not None:
        assert SECRET not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_a_worker_that_cannot_connect_falls_back(caplog):
    """Tests a copy in another process whose connection fails: its rounds are answered all the same."""

    def refuse():
        raise ConnectionError("no route")

    solver = QPU(sampler=refuse, retries=1)
    solver.annealer.sleep = lambda seconds: None
    sub = joined_sub(6, 2, 3)
    with caplog.at_level(logging.WARNING, "lns"):
        for seed in (1, 2):
            np.testing.assert_array_equal(solver(sub, zeros(sub), seed), Tabu()(sub, zeros(sub), seed))
    assert [(call.retries, call.fallbacks) for call in solver.calls] == [(1, 1), (0, 1)]
    assert len(caplog.records) == 1


# ---- QPU time ----


def test_qpu_time_is_capped(caplog):
    """Tests that rounds go on without the machine once its time is spent, with one warning."""
    fake = FakeQPU()
    solver, _ = solver_on(fake, pack=1, qpu_time_limit=3.5 * TIME)
    with caplog.at_level(logging.WARNING, "lns"):
        result, subs = run(solver, workers=1)
    assert fake.calls == 3
    assert solver.qpu_time == pytest.approx(3 * TIME)
    assert result.chip()["fallbacks"] == subs - 3 > 0
    assert len(caplog.records) == 1
    assert "0.07 s of QPU time are used up: rounds go on with tabu search" in caplog.text
    assert f"{3 * TIME:.2f} s of QPU time" in result.summary()


def test_the_machines_own_estimate_is_used():
    """Tests that a call that is known to be too long is not made."""

    class Estimates:
        def estimate_qpu_access_time(self, num_qubits, num_reads=1, annealing_time=None):
            return 1e6 * num_reads

    fake = FakeQPU()
    fake.solver = Estimates()
    sub = joined_sub(5, 1, 3)
    for limit, calls in ((5.9, 0), (6.1, 1)):
        solver, _ = solver_on(fake, qpu_time_limit=limit)
        solver(sub, zeros(sub), 0)
        assert fake.calls == calls


def test_an_answer_without_timing_counts_as_estimated():
    """Tests a sample set that does not say what it cost: like the call before."""
    solver, _ = solver_on(FakeQPU("ok", "untimed"), pack=1)
    sub = joined_sub(5, 1, 3)
    for seed in (1, 2):
        solver(sub, zeros(sub), seed)
    assert [call.qpu_time for call in solver.calls] == pytest.approx([TIME, TIME])


def test_a_budget_holds_in_threads():
    """Tests many reservations at once: never more than the limit, and what never ends stays promised."""
    budget = Budget(10.0)

    def spend(_):
        if not budget.reserve(1.0):
            return 0
        budget.settle(1.0, 1.0)
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(spend, range(100))) == 10
    assert budget.spent == 10.0
    held = Budget(1.0)
    assert held.reserve(0.9)
    assert not held.reserve(0.2)
    assert all(Budget(None).reserve(1e9) for _ in range(3))


# ---- secrets ----


@pytest.mark.parametrize(
    "text",
    [
        f"401: bad token {SECRET}",
        "my own odd secret 77 is refused",
        f"GET https://cloud.example/sapi?token={SECRET} failed",
        "http://user:word@proxy.example:80",
    ],
)
def test_errors_are_scrubbed(text, monkeypatch):
    """Tests tokens by their look, the configured one whatever its look, and addresses."""
    monkeypatch.setenv("DWAVE_API_TOKEN", "my own odd secret 77")
    shown = scrub(RuntimeError(text))
    assert shown.startswith("RuntimeError: ")
    for secret in (SECRET, "odd secret", "example", "word"):
        assert secret not in shown


def test_secrets_of_a_configuration_file_are_scrubbed(tmp_path, monkeypatch):
    """Tests the token of a profile that is not the default."""
    path = tmp_path / "dwave.conf"
    path.write_text("[defaults]\ntoken = default-word\n[lab]\ntoken = lab-word\n")
    monkeypatch.setenv("DWAVE_CONFIG_FILE", str(path))
    assert scrub(ValueError("lab-word"), "lab") == "ValueError: ***"
    assert QPU(profile="lab").profile == "lab"


def test_the_module_of_the_cloud_is_loaded_late():
    """Tests that naming the solver costs nothing until it is used."""
    assert not any(name.startswith("dwave") for name in vars(annealer_module))
