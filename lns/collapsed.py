"""The collapsed objective in the shape of a dimod model, for tools that pass models and samples around."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import dimod
import numpy as np
from numpy.typing import NDArray

from lns.errors import InvalidInput
from lns.grid import pack_bits, unpack_bits
from lns.qubo import weight_labels
from lns.rounds import Part

if TYPE_CHECKING:
    from lns.problem import QLossProblem


class Samples(dimod.SampleSet):
    """A sample set whose deep copies share its labels: hybrid copies states at every step."""

    def __deepcopy__(self, memo: dict) -> Samples:
        return self.copy()


class CollapsedModel:
    """A problem as a function of its weight and bias bits, every target at its best.

    It has the variables ``("w", i, k)`` and ``("b", k)`` of `QLossProblem.to_bqm`, dimod's `energies`, and no
    couplers: with the targets minimised out the objective is exact, small and not quadratic. Copying it, also
    deeply, gives the same object: the data is never copied.

    Parameters
    ----------
    problem
        The training problem.
    codes
        Where a search begins; tells which weights can make up for each other.
    rows, seed
        Sub-QUBOs are built from at most this many examples, drawn with this seed. What they propose is judged
        on all examples.
    """

    vartype = dimod.BINARY

    def __init__(self, problem: QLossProblem, codes: NDArray[np.int32], rows: int, seed: int) -> None:
        self.problem = problem
        w, b = problem.values(codes)
        self.part = Part(problem, rows, seed, w, float(b))

    @cached_property
    def variables(self) -> dimod.variables.Variables:
        """Labels of the weight bits, then of the bias bits."""
        return dimod.variables.Variables(weight_labels(self.problem))

    @property
    def num_variables(self) -> int:
        """Weight bits and bias bits."""
        return len(self.variables)

    def codes(self, samples: Any) -> NDArray[np.int32]:
        """Codes of samples in any form that dimod takes, bias last: (K, N + 1)."""
        if isinstance(samples, dimod.SampleSet):
            bits, labels = samples.record.sample, samples.variables
        else:
            bits, labels = dimod.as_samples(samples)
        if set(labels) != set(self.variables):
            raise InvalidInput(
                "samples must be over the weight and bias bits of this problem. Make them with "
                "lns.hybrid_state(problem)."
            )
        at = {label: column for column, label in enumerate(labels)}
        # Spin samples (±1) count -1 as 0.
        ordered = bits[:, [at[label] for label in self.variables]] > 0
        problem = self.problem
        count = problem.num_features * problem.weight_bits
        weights = ordered[:, :count].reshape(len(bits), problem.num_features, problem.weight_bits)
        return np.column_stack([pack_bits(weights), pack_bits(ordered[:, count:])])

    def samples(self, codes: NDArray[np.int32], energies: NDArray[np.float64]) -> Samples:
        """Codes (K, N + 1) as a sample set in the same order, with the energies given."""
        problem = self.problem
        bits = np.hstack(
            [
                unpack_bits(codes[:, :-1], problem.weight_bits).reshape(len(codes), -1),
                unpack_bits(codes[:, -1], problem.bias_bits),
            ]
        )
        return Samples.from_samples(
            (bits, self.variables), vartype=self.vartype, energy=energies, sort_labels=False
        )

    def energies(self, samples: Any) -> NDArray[np.float64]:
        """The objective of every sample."""
        codes = self.codes(samples)
        return self.problem.state(codes[0]).evaluate(codes) if len(codes) else np.empty(0)

    def energy(self, sample: Any) -> float:
        """The objective of a sample."""
        return float(self.energies(sample)[0])

    def __len__(self) -> int:
        return self.num_variables

    def __copy__(self) -> CollapsedModel:
        return self

    def __deepcopy__(self, memo: dict) -> CollapsedModel:
        return self

    def __repr__(self) -> str:
        return f"CollapsedModel({self.problem!r})"

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"The collapsed objective is not quadratic and has no {name!r}. Put a QLossDecomposer in front "
            "of what needs a quadratic model, or give it problem.to_bqm()."
        )
