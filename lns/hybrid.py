"""Rounds of the search as runnables of dwave-hybrid, for workflows of one's own.

A flow is ``decomposer | any subproblem sampler | composer`` over a state that `hybrid_state` makes:

``problem``     a `CollapsedModel`: the objective over weight and bias bits; never copied.
``samples``     first where the search stands, then the best others; their energies are the true objective.
``subproblem``  the sub-QUBO of a round, a dimod model over the variables 0 ... n - 1.
``subsamples``  its bits as they stand; after a sampler, its reads.
``move``        what those bits mean, for the composer.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import dimod
import hybrid
import numpy as np
from hybrid import traits
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from lns import rounds
from lns.accept import Accept, Outcome, make_accept
from lns.collapsed import CollapsedModel
from lns.engine import EngineParams
from lns.errors import InvalidInput
from lns.neighbourhood import Neighbourhood
from lns.select import Selector, View
from lns.solvers.dimod_sampler import ordered_bits
from lns.start import starting_state
from lns.warm_up import compile_loops

if TYPE_CHECKING:
    from lns.problem import QLossProblem


KINDS = ("window", "hop", "fusion")
BACKGROUNDS = ("curvature", "pinned")


class OneBlasThread:
    """While any runnable is inside, BLAS has one thread: products are small, and branches run side by side.

    The limit belongs to the process: the first to come sets it, the last to go takes it back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0

    @cached_property
    def _libraries(self) -> ThreadpoolController:
        return ThreadpoolController()  # looking for them takes longer than a round

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limits = self._libraries.limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limits.restore_original_limits()


one_blas_thread = OneBlasThread()


@dataclass(eq=False)
class Move:
    """What the bits of a subproblem mean: the way from a decomposer to the composer, and back.

    The composer writes the gain here and the decomposer learns from it. Copies of a state share their
    move, so that after a race every decomposer hears of its own, whoever won.
    """

    codes: NDArray[np.int32]
    neighbourhood: Neighbourhood
    num_variables: int
    kind: str
    seed: int
    gain: float | None = None  # of the objective, once it is known

    def __deepcopy__(self, memo: dict) -> Move:
        return self

    def bits(self, subsamples: dimod.SampleSet) -> NDArray[np.int8]:
        """Reads in the order of the bits, or an error if they belong to another subproblem."""
        if set(subsamples.variables) != set(range(self.num_variables)):
            raise InvalidInput(
                f"The subsamples must have the {self.num_variables} variables of the subproblem. Got "
                f"{len(subsamples.variables)} others: put a sampler between the decomposer and the composer."
            )
        return ordered_bits(subsamples)


class QLossStart(traits.ProblemProducing, traits.SamplesProducing, traits.SISO, hybrid.Runnable):
    """Puts a problem and its start into a state that has none; a state of the same problem goes on as it is.

    Parameters are those of `hybrid_state`.
    """

    def __init__(
        self,
        problem: QLossProblem,
        *,
        initial: Any = None,
        seed: int = 0,
        sample_rows: int = EngineParams.sample_rows,
        **runopts: Any,
    ) -> None:
        super().__init__(**runopts)
        _check_counts(seed=(seed, 0), sample_rows=(sample_rows, 1))
        self.problem, self.initial, self.seed, self.sample_rows = problem, initial, seed, sample_rows

    def next(self, state: hybrid.State, **runopts: Any) -> hybrid.State:
        """The state with `problem` and `samples`."""
        if state.problem is not None:
            if _model(state).problem is not self.problem:
                raise InvalidInput(
                    "The state belongs to another problem than the workflow. Begin with hybrid.State()."
                )
            return state
        compile_loops(self.problem, self.sample_rows)
        with one_blas_thread:
            # Workflows pass bits around: levels stay those of the problem.
            fixed = self.problem.on_grids(*self.problem.grids)
            start = starting_state(fixed, self.initial, self.seed)
            model = CollapsedModel(self.problem, start.codes, self.sample_rows, self.seed)
        samples = model.samples(start.codes[None, :], np.array([start.objective]))
        return state.updated(problem=model, samples=samples)


class QLossDecomposer(traits.ProblemDecomposer, traits.SISO, hybrid.Runnable):
    """From where the search stands to the sub-QUBO of a neighbourhood.

    Neighbourhoods are drawn as in `lns.solve`, by what has paid so far; what is given here is fixed instead.
    The subsamples become the bits nearest to the current solution: a start for samplers, and no reads of an
    earlier subproblem are left that could be taken for reads of this one.

    Parameters
    ----------
    max_bits, examples
        Largest number of weight bits, and of examples with target bits.
    kind
        What the bits stand for: ``"window"``, the levels below and above the place where each of some weights
        is best, ``"hop"``, the same after others were thrown to random levels, ``"fusion"``, one bit for each
        weight, its level here or that in another of the state's samples (a window if there is none);
        ``"stored"``, the bits of the paper. By default all but the last, by what has paid so far.
    background
        How examples without target bits enter: ``"curvature"`` or ``"pinned"`` (held where they are).
    seed
        Of all choices. Decomposers of parallel branches need different ones, to choose different things.
    """

    def __init__(
        self,
        *,
        max_bits: int = 64,
        examples: int = 8,
        kind: str | None = None,
        background: str = "curvature",
        seed: int = 0,
        **runopts: Any,
    ) -> None:
        super().__init__(**runopts)
        self.outputs |= {"subsamples", "move"}
        _check_counts(max_bits=(max_bits, 1), examples=(examples, 0), seed=(seed, 0))
        _check_name("background", background, BACKGROUNDS)
        if kind is not None:
            _check_name("kind", kind, (*KINDS, "stored"))
        self.max_bits, self.examples, self.seed = max_bits, examples, seed
        self.kind, self.background = kind, background
        self._lock = threading.Lock()
        self._select: tuple[QLossProblem, Selector] | None = None
        self._last: Move | None = None
        self._count = 0

    def next(self, state: hybrid.State, **runopts: Any) -> hybrid.State:
        """The state with `subproblem`, `subsamples` and `move`."""
        model = _model(state)
        codes, part = model.codes(state.samples), model.part
        with self._lock, one_blas_thread:  # one decomposer may serve several states at once: hybrid.Map
            select = self._selector(model.problem)
            if self._last is not None and self._last.gain is not None:
                select.update(self._last.kind, self._last.gain, 1e6)
            rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(self._count,)))
            self._count += 1
            problem, others = part.problem, list(codes[1:])
            points = [problem.point(other) for other in others]
            view = View(codes[0], problem.tops, problem.effects(), points, others)
            (choice,) = select(view, 1, rng)
            asked = rounds.question(problem, codes[0], choice, rng)
            size, seed = asked.sub.num_variables, int(rng.integers(2**31))
            move = self._last = Move(asked.codes, asked.neighbourhood, size, choice.kind, seed)
        bqm = asked.sub.to_bqm()
        subsamples = dimod.SampleSet.from_samples_bqm(asked.start, bqm)
        return state.updated(subproblem=bqm, subsamples=subsamples, move=move)

    def _selector(self, problem: QLossProblem) -> Selector:
        """What draws neighbourhoods; begins anew with a new problem."""
        if self._select is None or self._select[0] is not problem:
            kinds = KINDS if self.kind is None else (self.kind,)
            select = Selector(
                kinds, (), max_bits=self.max_bits, max_examples=self.examples, background=self.background
            )
            self._select, self._last = (problem, select), None
        return self._select[1]


class QLossComposer(traits.SubsamplesComposer, traits.SISO, hybrid.Runnable):
    """Merges the reads of a subproblem by the true objective.

    Every read is judged on all examples, whatever energy the sampler gave it; a walk sets out from the best,
    and the lower end is accepted or not. The best solution seen stays among the samples in any case.

    Parameters
    ----------
    polish
        Moves of a short walk from the best read, per weight; 0 for none.
    accept
        ``"greedy"`` or a callable (see `lns.accept`).
    keep
        Samples kept: the current one and the best others, with which ``"fusion"`` moves merge it.
    """

    def __init__(
        self,
        *,
        polish: int = 300,
        accept: str | Accept = "greedy",
        keep: int = EngineParams.elites,
        **runopts: Any,
    ) -> None:
        super().__init__(**runopts)
        self.inputs.add("move")
        _check_counts(polish=(polish, 0), keep=(keep, 2))
        self.polish, self.accept, self.keep = polish, make_accept(accept), keep

    def next(self, state: hybrid.State, **runopts: Any) -> hybrid.State:
        """The state with new `samples`."""
        model, move = _model(state), state.move
        codes, energies = model.codes(state.samples), state.samples.record.energy
        rng = np.random.default_rng(move.seed)
        with one_blas_thread:
            here = model.problem.state(move.codes)
            cand = rounds.best_read(here, move.neighbourhood, move.bits(state.subsamples))
            if self.polish:
                part, seed, moves = model.part, int(rng.integers(2**31)), self.polish * len(cand)
                unit, heat = max(float(energies.min()), 1e-300) / part.rows, rng.choice(EngineParams.heats)
                walked = part.walker.walk(part.problem, cand, heat * unit, rounds.COLD * unit, moves, seed)
                pair = np.stack([cand, walked])  # the walk looks at a part of very large data
                cand = pair[np.argmin(here.evaluate(pair))]
            value = model.problem.state(cand).objective
        move.gain = float(energies[0]) - value
        outcome = self.accept(float(energies.min()), float(energies[0]), value, rng)
        if outcome != Outcome.REJECT:
            codes, energies = np.vstack([cand, codes]), np.append(value, energies)
        _, first = np.unique(codes, axis=0, return_index=True)
        others = sorted(first[first > 0], key=lambda k: (energies[k], codes[k].tobytes()))
        rows = [0, *others[: self.keep - 1]]
        return state.updated(samples=model.samples(codes[rows], energies[rows]))


def hybrid_state(
    problem: QLossProblem,
    *,
    initial: Any = None,
    seed: int = 0,
    sample_rows: int = EngineParams.sample_rows,
) -> hybrid.State:
    """The state in which a workflow begins; nothing of the size of the full QUBO is built.

    Parameters
    ----------
    problem
        The training problem.
    initial
        Where to begin: None for the continuous warm start, ``(weights, bias)``, ``"zero"`` or ``"random"``.
    seed
        Of a random start, and of the sample of very large data.
    sample_rows
        Sub-QUBOs look at this many examples of larger data; what they propose is judged on all.

    Returns
    -------
    A state whose ``samples`` can be given to `QLossProblem.decode`, at the end as at the beginning.

    Examples
    --------
    >>> import lns
    >>> data = lns.load_dataset("long-servedio")
    >>> problem = lns.QLossProblem(data.X, data.y, q=-0.5, lam=0.003, weight_bits=2)
    >>> state = lns.hybrid_state(problem, initial="zero")
    >>> float(state.samples.first.energy) == problem.objective(*problem.decode(state.samples))
    True
    """
    start = QLossStart(problem, initial=initial, seed=seed, sample_rows=sample_rows)
    return start.next(hybrid.State())


def hybrid_workflow(
    problem: QLossProblem,
    sampler: hybrid.Runnable | None = None,
    *,
    decomposer: hybrid.Runnable | None = None,
    composer: hybrid.Runnable | None = None,
    initial: Any = None,
    seed: int = 0,
    max_time: float | None = 30.0,
    max_iter: int | None = None,
    convergence: int | None = None,
    target: float | None = None,
) -> hybrid.Runnable:
    """A workflow ready to run: ``start | Loop(decomposer | sampler | composer)``.

    Run it on ``hybrid.State()``, or on a state it has returned, to go on from there.

    Parameters
    ----------
    problem
        The training problem.
    sampler
        Any subproblem sampler of hybrid, or a flow that leaves reads in ``subsamples``. Default: hybrid's
        tabu search, 10 ms a round.
    decomposer, composer
        Default: `QLossDecomposer` with this seed, and `QLossComposer`.
    initial
        Where to begin, as in `hybrid_state`.
    seed
        Of the start and of the decomposer. The samplers of hybrid take none.
    max_time, max_iter, convergence, target
        Stop rules of the loop, the first that holds: seconds (looked at between rounds), rounds, rounds
        without improvement, an objective to reach.

    Examples
    --------
    >>> import hybrid, lns
    >>> data = lns.load_dataset("long-servedio")
    >>> problem = lns.QLossProblem(data.X, data.y, q=-0.5, lam=0.003, weight_bits=2)
    >>> workflow = lns.hybrid_workflow(problem, hybrid.TabuSubproblemSampler(timeout=5), max_iter=3)
    >>> weights, bias = problem.decode(workflow.run(hybrid.State()).result().samples)
    """
    if sampler is None:
        sampler = hybrid.TabuSubproblemSampler(timeout=10)
    if not isinstance(sampler, hybrid.Runnable):
        raise InvalidInput(
            f"sampler must be a hybrid.Runnable. Got {sampler!r}. Wrap a dimod sampler like this: "
            "hybrid.HybridSubproblemRunnable(sampler)."
        )
    if max_time is None and max_iter is None and convergence is None and target is None:
        raise InvalidInput("Give at least one of max_time, max_iter, convergence and target.")
    one_round = (decomposer or QLossDecomposer(seed=seed)) | sampler | (composer or QLossComposer())
    loop = hybrid.Loop(
        one_round,
        max_time=max_time,
        max_iter=max_iter,
        convergence=convergence,
        terminate=None if target is None else lambda objective: objective <= target,
    )
    return QLossStart(problem, initial=initial, seed=seed) | loop


def _model(state: hybrid.State) -> CollapsedModel:
    if not isinstance(state.problem, CollapsedModel):
        raise InvalidInput(
            "The state must hold a q-loss problem. Make it with lns.hybrid_state(problem). "
            f"Got {type(state.problem).__name__}."
        )
    return state.problem


def _check_name(name: str, value: object, known: Collection[str]) -> None:
    if value not in known:
        raise InvalidInput(f"Unknown {name} {value!r}. Choose one of {', '.join(known)}.")


def _check_counts(**counts: tuple[object, int]) -> None:
    for name, (value, least) in counts.items():
        if not isinstance(value, (int, np.integer)) or value < least:
            raise InvalidInput(f"{name} must be an int of at least {least}. Got {value!r}.")
