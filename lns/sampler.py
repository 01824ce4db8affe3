"""The search as a dimod sampler of full QUBOs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from time import perf_counter
from typing import Any

import dimod
import numpy as np

from lns.driver import solve
from lns.errors import InvalidInput
from lns.full_energy import FullEnergy
from lns.qubo import labels
from lns.recognise import recognise

WALK = 2000  # moves of the last walk, per weight


class LNSSampler(dimod.Sampler):
    """Samples models made by `QLossProblem.to_bqm`: weights, bias and best target bits.

    The training problem is read back from the labels and coefficients of the model and solved as by
    `lns.solve`. That minimises the objective of the problem. The energy of the model is above it, because its
    targets lie on a grid with ends; a walk at the end therefore looks for weights of low energy, and the best
    are returned. Where margins leave the interval of the targets (``target_span``) the two differ much: then
    `lns.solve` gives the better classifier, and this sampler the lower energy.

    Any other model is an error.

    Examples
    --------
    >>> import lns
    >>> data = lns.load_dataset("long-servedio")
    >>> problem = lns.QLossProblem(data.X[:100], data.y[:100], q=-0.5, lam=0.003, weight_bits=2)
    >>> found = lns.LNSSampler().sample(problem.to_bqm(), max_rounds=5, seed=1)
    >>> weights, bias = problem.decode(found)
    """

    @property
    def parameters(self) -> dict[str, list]:
        """Keywords of `sample`."""
        names = ("num_reads", "seed", "max_rounds", "time_limit", "solver", "solver_options")
        return {name: [] for name in names}

    @property
    def properties(self) -> dict[str, Any]:
        """None."""
        return {}

    def sample(
        self,
        bqm: dimod.BinaryQuadraticModel,
        *,
        num_reads: int = 1,
        seed: int | None = None,
        max_rounds: int | None = 50,
        time_limit: float | None = None,
        solver: Any = "tabu",
        solver_options: Mapping[str, Any] | None = None,
    ) -> dimod.SampleSet:
        """Sample a model.

        Parameters
        ----------
        bqm
            A model made by `QLossProblem.to_bqm`, binary or spin, its variables in any order.
        num_reads
            Searches, each from a seed of its own; one sample each.
        seed
            Of everything random; None for a new one. Without a time limit it repeats the samples.
        max_rounds, time_limit
            Rounds of each search, and seconds of all of them together. The first that is reached.
        solver, solver_options
            As in `lns.solve`.

        Returns
        -------
        One sample a read, with the energies of the model; ``info["objective"]`` is the exact objective of
        each, all targets free.
        """
        if not isinstance(bqm, dimod.BinaryQuadraticModel):
            raise InvalidInput(f"bqm must be a dimod.BinaryQuadraticModel. Got {type(bqm).__name__}.")
        if not isinstance(num_reads, (int, np.integer)) or num_reads < 1:
            raise InvalidInput(f"num_reads must be an int of at least 1. Got {num_reads!r}.")
        end = None if time_limit is None else perf_counter() + time_limit
        problem = recognise(bqm.change_vartype(dimod.BINARY, inplace=False))
        energy = FullEnergy(problem)
        samples, objectives = [], []
        for k, one in enumerate(np.random.SeedSequence(seed).generate_state(num_reads).tolist()):
            seconds = None if end is None else max(0.01, (end - perf_counter()) / (num_reads - k))
            deadline = perf_counter() + (math.inf if seconds is None else seconds)
            found = solve(
                problem,
                seed=one,
                max_rounds=max_rounds,
                time_limit=None if seconds is None else 0.5 * seconds,
                solver=solver,
                solver_options=solver_options,
            )
            walked = energy.anneal(found.codes, WALK * len(found.codes), one, deadline)
            best = min((energy.settle(found.codes), walked), key=lambda codes: energy(codes))
            solution = problem.values(best)
            samples.append(list(problem.encode(*solution).values()))
            objectives.append(problem.objective(*solution))
        bits = np.array(samples, dtype=np.int8)
        return dimod.SampleSet.from_samples_bqm(
            (bits if bqm.vartype is dimod.BINARY else 2 * bits - 1, labels(problem)),
            bqm,
            info={"objective": objectives},
        )
