"""Any runnable of dwave-hybrid as a solver of sub-QUBOs: a sampler, or a whole workflow."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lns.errors import InvalidInput
from lns.solvers.dimod_sampler import ordered_bits
from lns.subproblem import SubQubo


def is_runnable(thing: object) -> bool:
    """Whether this is a hybrid.Runnable, found out without importing hybrid: who has one, has imported it."""
    hybrid = sys.modules.get("hybrid")
    return hybrid is not None and isinstance(thing, hybrid.Runnable)


class HybridSolver:
    """Runs a runnable on the sub-QUBO, which is both its ``problem`` and its ``subproblem``.

    The bits as they stand are its ``samples``, and its ``subsamples`` unless it decomposes the sub-QUBO
    further. Whatever covers all variables of the sub-QUBO in either of them at the end is an answer, in every
    state if there are several.

    Hybrid's own samplers of a single step may run on several threads at once. Anything else, be it a loop, a
    branch or a decomposer, may remember things from one call to the next and runs on one thread at a time:
    with several workers, what it remembers depends on who came first.

    The seed of a round reaches dimod samplers wrapped by ``hybrid.HybridSubproblemRunnable`` and the like, if
    they take one. Hybrid's own samplers take none: their runs cannot be repeated.

    Parameters
    ----------
    runnable
        The sampler or workflow.
    options
        Run options of every call.
    """

    def __init__(self, runnable: Any, **options: Any) -> None:
        if not is_runnable(runnable):
            raise InvalidInput(f"runnable must be a hybrid.Runnable. Got {runnable!r}.")
        self.runnable, self.options = runnable, options
        self._seeded = takes_seed(runnable)
        self._decomposes = any("subproblem" in one.outputs for one in leaves(runnable))
        self._turn: AbstractContextManager = nullcontext() if is_single_step(runnable) else threading.Lock()

    def __call__(self, sub: SubQubo, start: NDArray[np.int8], seed: int) -> NDArray[np.int8]:
        import dimod
        import hybrid

        bqm = sub.to_bqm()
        bits = dimod.SampleSet.from_samples_bqm(start, bqm)
        # Hybrid's decomposers leave subsamples of another size as they are, on which samplers then fail.
        subsamples = None if self._decomposes else bits
        state = hybrid.State(problem=bqm, samples=bits, subproblem=bqm, subsamples=subsamples)
        options = {"seed": seed, **self.options} if self._seeded else self.options
        with self._turn:
            done = self.runnable.run(state, executor=hybrid.immediate_executor, **options).result()
        found = [
            ordered_bits(reads)
            for final in (done if isinstance(done, hybrid.States) else [done])
            for reads in (final.samples, final.subsamples)
            if reads is not None and set(reads.variables) == set(bqm.variables)
        ]
        if not found:
            raise InvalidInput(
                f"The runnable {self.runnable} must leave samples of the whole sub-QUBO in its state, as "
                "'samples' or 'subsamples'. It left none."
            )
        return np.vstack(found)


def leaves(runnable: Any) -> Iterator[Any]:
    """The runnables of a workflow that hold no others."""
    inner = list(runnable)
    if not inner:
        yield runnable
    for one in inner:
        yield from leaves(one)


def takes_seed(runnable: Any) -> bool:
    """Whether a seed as run option reaches a sampler and disturbs nobody.

    Options go to every runnable of a workflow. Those made by hybrid.Lambda often take none.
    """
    import hybrid

    steps = list(leaves(runnable))
    wrapped = [one for one in steps if isinstance(one, hybrid.HybridRunnable)]
    seeded = any("seed" in one.sampler.parameters and "seed" not in one.runopts for one in wrapped)
    return seeded and not any(isinstance(one, hybrid.Lambda) for one in steps)


def is_single_step(runnable: Any) -> bool:
    """Whether this is a sampler of hybrid that keeps nothing from one call to the next."""
    import hybrid

    return isinstance(runnable, hybrid.HybridRunnable) or (
        type(runnable).__module__ == "hybrid.samplers" and list(leaves(runnable)) == [runnable]
    )
