"""Tests of hybrid runnables as the engine's solver."""

from __future__ import annotations

import threading
import time

import dimod
import hybrid
import numpy as np
import pytest
from dwave.samplers import SimulatedAnnealingSampler, SteepestDescentSampler
from search_cases import facts, random_problem

import lns
from lns.errors import InvalidInput
from lns.solvers import HybridSolver, make_solver
from lns.solvers.hybrid_runnable import is_single_step, leaves, takes_seed
from lns.subproblem import SubQubo


def fresh_loop():
    """A decomposition of the sub-QUBO inside a loop, without stale subsamples."""
    inner = hybrid.EnergyImpactDecomposer(size=3) | hybrid.Const(subsamples=None)
    return hybrid.Loop(inner | hybrid.TabuSubproblemSampler(timeout=1) | hybrid.SplatComposer(), max_iter=5)


RUNNABLES = {
    "tabu": lambda: hybrid.TabuSubproblemSampler(timeout=2),
    "tabu of problems": lambda: hybrid.TabuProblemSampler(timeout=2),
    "annealing": lambda: hybrid.SimulatedAnnealingSubproblemSampler(num_sweeps=50),
    "descent": lambda: hybrid.SteepestDescentSubproblemSampler(num_reads=3),
    "random": hybrid.RandomSubproblemSampler,
    "wrapped": lambda: hybrid.HybridSubproblemRunnable(SteepestDescentSampler(), num_reads=3),
    "wrapped, of problems": lambda: hybrid.HybridProblemRunnable(SteepestDescentSampler(), num_reads=3),
    "loop": fresh_loop,
    "several states": lambda: hybrid.Parallel(
        hybrid.TabuSubproblemSampler(timeout=1), hybrid.RandomSubproblemSampler()
    ),
    "race": lambda: (
        hybrid.Race(hybrid.InterruptableTabuSampler(timeout=1), hybrid.TabuProblemSampler(timeout=2))
        | hybrid.ArgMin()
    ),
}


def sub_qubo(bits=6, seed=0):
    """A dense sub-QUBO with normal coefficients."""
    rng = np.random.default_rng(seed)
    half = np.triu(rng.normal(size=(bits, bits)), 1)
    return SubQubo(rng.normal(size=bits), half + half.T, 0.5, bits)


@pytest.mark.parametrize("name", RUNNABLES)
def test_every_runnable_answers(name):
    """Tests samplers and workflows: rows of bits, the best of them no worse than the start."""
    sub, solver = sub_qubo(), make_solver(RUNNABLES[name]())
    assert isinstance(solver, HybridSolver)
    start = np.zeros(6, dtype=np.int8)
    found = solver(sub, start, 1)
    assert found.dtype == np.int8
    assert found.ndim == 2
    assert found.shape[1] == 6
    assert set(np.unique(found)) <= {0, 1}
    assert sub.energies(found).min() <= sub.energies(start[None])[0]


@pytest.mark.parametrize("name", ["tabu", "tabu of problems", "annealing", "several states"])
def test_good_runnables_find_the_optimum(name):
    """Tests that bits come back in their order: the least energy of a small sub-QUBO is found."""
    sub = sub_qubo()
    all_bits = (np.arange(64)[:, None] >> np.arange(6) & 1).astype(np.int8)
    found = np.vstack([make_solver(RUNNABLES[name]())(sub, np.zeros(6, dtype=np.int8), k) for k in range(5)])
    assert sub.energies(found).min() == pytest.approx(sub.energies(all_bits).min())


def test_reads_in_another_order_are_put_right():
    """Tests a runnable that answers with spins and its variables backwards."""
    wanted = np.array([1, 0, 0, 1, 1, 0])

    def answer(_, state):
        spins = dimod.SampleSet.from_samples(
            (2 * wanted[None, ::-1] - 1, [5, 4, 3, 2, 1, 0]), vartype="SPIN", energy=0, sort_labels=False
        )
        return hybrid.State(subsamples=spins)

    found = make_solver(hybrid.Lambda(answer))(sub_qubo(), np.zeros(6, dtype=np.int8), 0)
    assert found.tolist() == [wanted.tolist()]


@pytest.mark.parametrize("name", ["tabu", "annealing", "wrapped", "loop"])
def test_the_engine_takes_runnables(name):
    """Tests a run: its objective is true and below the start."""
    problem = random_problem()
    result = lns.solve(
        problem, solver=RUNNABLES[name](), mode="rounds", max_rounds=4, initial="zero", workers=2,
        max_bits=4, examples=0,
    )  # fmt: skip
    assert result.objective == pytest.approx(problem.objective(result.weights, result.bias), abs=1e-12)
    assert result.objective < result.start_objective
    assert result.solver in {type(RUNNABLES[name]()).__name__}


def test_wrapped_samplers_are_seeded():
    """Tests that the engine's seeds reach a wrapped dimod sampler: runs repeat with any number of workers."""
    problem = random_problem(features=12)

    def rounds(workers, seed=3):
        annealing = hybrid.HybridSubproblemRunnable(SimulatedAnnealingSampler(), num_reads=1, num_sweeps=2)
        result = lns.solve(problem, solver=annealing, mode="rounds", max_rounds=8, workers=workers, seed=seed)
        return [facts(record) for record in result.rounds]

    assert rounds(1) == rounds(3)


def test_seeds_go_only_where_they_are_taken():
    """Tests who gets the seed: wrapped samplers that take one, unless it is given, or a Lambda is around."""
    wrapped = hybrid.HybridSubproblemRunnable(SimulatedAnnealingSampler())
    fixed = hybrid.HybridSubproblemRunnable(SimulatedAnnealingSampler(), seed=1)
    nothing = hybrid.Lambda(lambda _, state: state)
    assert takes_seed(wrapped)
    assert takes_seed(hybrid.Loop(hybrid.Identity() | wrapped))
    assert not takes_seed(fixed)
    assert not takes_seed(hybrid.TabuSubproblemSampler())
    assert not takes_seed(nothing | wrapped)
    make_solver(nothing | wrapped)(sub_qubo(), np.zeros(6, dtype=np.int8), 1)  # and it still runs


def test_the_leaves_of_a_workflow():
    """Tests the walk through nested flows."""
    one, two, three = hybrid.Identity(), hybrid.Identity(), hybrid.Identity()
    assert list(leaves(hybrid.Loop(one | hybrid.Map(two)) | three)) == [one, two, three]


class Crowded(hybrid.Runnable):
    """Counts how many are inside at once."""

    def __init__(self):
        super().__init__()
        self.inside = self.most = 0
        self.lock = threading.Lock()

    def next(self, state, **options):
        """Stay for a moment."""
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        time.sleep(0.01)
        with self.lock:
            self.inside -= 1
        return state


def test_runnables_with_memory_run_one_at_a_time():
    """Tests that threads wait for each other, except for hybrid's samplers of a single step."""
    crowded = Crowded()
    params = lns.EngineParams(neighbourhoods=4)
    lns.solve(random_problem(), solver=crowded, mode="rounds", max_rounds=4, workers=4, params=params)
    assert crowded.most == 1
    assert not is_single_step(crowded)
    assert not is_single_step(fresh_loop())
    assert not is_single_step(hybrid.InterruptableTabuSampler())
    assert is_single_step(hybrid.TabuSubproblemSampler())
    assert is_single_step(hybrid.HybridSubproblemRunnable(SteepestDescentSampler()))


def test_options_are_run_options():
    """Tests solver_options with a runnable."""
    wrapped = hybrid.HybridSubproblemRunnable(SteepestDescentSampler())
    found = make_solver(wrapped, {"num_reads": 7})(sub_qubo(), np.zeros(6, dtype=np.int8), 1)
    assert len(found) == 7 + 1  # and the start, which stays in `samples`


def test_a_runnable_without_answers_is_an_error():
    """Tests the message for a flow that loses its samples."""
    lost = hybrid.Const(samples=None, subsamples=None)
    with pytest.raises(InvalidInput, match="must leave samples of the whole sub-QUBO"):
        make_solver(lost)(sub_qubo(), np.zeros(6, dtype=np.int8), 0)
    with pytest.raises(InvalidInput, match=r"must be a hybrid\.Runnable"):
        HybridSolver(SteepestDescentSampler())
