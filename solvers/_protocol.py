"""What the engine asks of a solver of sub-QUBOs."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lns.subproblem import SubQubo


@runtime_checkable
class Solver(Protocol):
    """Any callable from a sub-QUBO to samples of it.

    A solver may also say how much it can take, with integer attributes ``max_weight_bits`` and
    ``max_variables``; rounds are then sized to fit. One with a method ``prepare(target_bits)`` is told how
    many target bits an example has before the clock starts. One with a true attribute ``interruptible`` takes
    a further argument ``expired``, a function that says when not to wait any more. What its attribute
    ``info`` says of the last call of this thread, with ``info.to_dict()``, goes into the records.
    """

    def __call__(self, sub: SubQubo, start: NDArray[np.int8], seed: int) -> NDArray[np.int8]:
        """Return samples (K, n) of `sub`, in any order.

        Parameters
        ----------
        sub
            The sub-QUBO: weight bits first, then target bits.
        start
            The bits that leave everything as it is: a good place to begin.
        seed
            Below 2**31. The same seed must give the same samples.
        """
        ...
