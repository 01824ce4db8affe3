"""What a run was asked for: the arguments of `lns.solve` that decide its rounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from lns import stop
from lns.accept import Accept, make_accept
from lns.engine import EngineParams
from lns.errors import InvalidInput
from lns.problem import QLossProblem
from lns.select import Selector
from lns.solvers import Solver, make_solver

# What a run may be made of: all the engine has; rounds alone, with its own backgrounds and codings; or the
# paper's rounds: stored bits, targets outside the batch held where they are.
MODES: dict[str, tuple[str, ...] | None] = {
    "default": None,
    "rounds": ("window", "hop", "fusion"),
    "paper": ("stored",),
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything but the problem, the start and where the work is done.

    Parameters
    ----------
    solver, solver_options, accept
        Names and options, or objects, which a file cannot keep.
    time_limit
        The limit that the run was begun with: the length of walks follows from it.

    The others are as in `lns.solve`.
    """

    seed: int
    solver: Any
    solver_options: Mapping[str, Any] | None
    mode: str
    accept: Any
    max_bits: int
    examples: int
    time_limit: float | None
    max_rounds: int | None
    target: float | None
    no_improvement: int | None
    params: EngineParams

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidInput(f"Unknown mode {self.mode!r}. Choose one of {', '.join(MODES)}.")
        for name in ("seed", "max_bits", "examples"):
            number = getattr(self, name)
            if not isinstance(number, (int, np.integer)) or number < 0:
                raise InvalidInput(f"{name} must be an int of at least 0. Got {number!r}.")

    def make_solver(self) -> Solver:
        """The solver of sub-QUBOs."""
        return make_solver(self.solver, self.solver_options)

    def make_acceptance(self) -> Accept:
        """The rule of acceptance, with an empty memory."""
        return make_accept(self.accept)

    def make_selector(self, problem: QLossProblem, solver: Solver) -> Selector:
        """A selector whose rounds are sized to what the solver takes: weight bits first, then target bits."""
        most = getattr(solver, "max_variables", None) or 10**9
        max_bits = min(self.max_bits, most, getattr(solver, "max_weight_bits", None) or 10**9)
        kinds = MODES[self.mode] or self.params.kinds
        if self.follows(problem):
            # A minimum without a grid has nowhere to relax to, and walks find other ones sooner than hops.
            idle = {"window", "hop"} if "walk" in kinds else {"window"}
            kinds = tuple(kind for kind in kinds if kind not in idle) or kinds
        return Selector(
            kinds,
            self.params.heats,
            max_bits=max_bits,
            max_examples=min(self.examples, max(0, most - max_bits) // problem.target_bits),
            background="pinned" if self.mode == "paper" else "curvature",
        )

    def follows(self, problem: QLossProblem) -> bool:
        """Whether solutions are followed off the grid; those of the paper are bits."""
        return problem.grid_follows and self.mode != "paper"

    @property
    def solver_name(self) -> str:
        """The solver, for people."""
        return self.solver if isinstance(self.solver, str) else type(self.solver).__name__

    def to_dict(self) -> dict[str, Any]:
        """As plain values; what a file cannot keep is None."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["params"] = asdict(self.params)
        options = dict(self.solver_options or {})
        if not isinstance(self.solver, str) or not _survives_json(options):
            values["solver"], options = None, {}
        values["solver_options"] = options
        values["accept"] = self.accept if isinstance(self.accept, str) else None
        return {name: _plain(value) for name, value in values.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """The settings that `to_dict` was asked for."""
        params: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values["params"].items()
        }
        return cls(**{**values, "params": EngineParams(**params)})


def stop_rules(
    *, time_limit: float | None, max_rounds: int | None, target: float | None, no_improvement: int | None
) -> list[stop.Stop]:
    """The rules that end a run; at least one."""
    given: tuple[tuple[Callable[[Any], stop.Stop], float | None], ...] = (
        (stop.target, target),
        (stop.max_rounds, max_rounds),
        (stop.no_improvement, no_improvement),
        (stop.time_limit, time_limit),
    )
    rules: list[stop.Stop] = [make(value) for make, value in given if value is not None]
    if not rules:
        raise InvalidInput("Give at least one of time_limit, max_rounds, target and no_improvement.")
    return rules


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _survives_json(value: Any) -> bool:
    try:
        return json.loads(json.dumps(value)) == value
    except (TypeError, ValueError):
        return False
