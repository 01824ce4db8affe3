"""Which weights, which coding, how much heat: neighbourhoods chosen by what has paid so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lns.accept import Outcome
from lns.rounds import Choice, View

Strategy = Callable[[View, int, np.random.Generator], NDArray[np.intp]]


def random_weights(view: View, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Any weights."""
    return rng.choice(len(view.codes), size, replace=False)


def promising_weights(view: View, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Weights whose single-level moves cost least, with some luck."""
    cost = view.gains().min(axis=1)
    rank = np.empty(len(cost))
    rank[np.argsort(cost, kind="stable")] = np.arange(len(cost))
    return np.argsort(rank + rng.exponential(size, len(cost)), kind="stable")[:size]


def correlated_weights(view: View, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """A weight, those most correlated with it, those most correlated with them, and so on."""
    chosen = [int(rng.integers(len(view.codes)))]
    inside = set(chosen)
    for i in chosen:  # grows while it is walked
        for j in view.partner[i]:
            if len(chosen) < size and int(j) not in inside:
                inside.add(int(j))
                chosen.append(int(j))
    if len(chosen) < size:
        rest = np.setdiff1d(np.arange(len(view.codes)), chosen)
        chosen.extend(rng.choice(rest, size - len(chosen), replace=False).tolist())
    return np.array(chosen[:size], dtype=np.intp)


STRATEGIES: dict[str, Strategy] = {
    "random": random_weights,
    "gain": promising_weights,
    "block": correlated_weights,
}

REWARDS = {Outcome.BEST: 8.0, Outcome.BETTER: 4.0, Outcome.ACCEPT: 1.0, Outcome.REJECT: 0.0}


@dataclass
class Roulette:
    """Options drawn in proportion to their recent rewards, none of them ever below its floor."""

    options: list
    memory: float = 0.95
    floor: float | NDArray[np.float64] = 0.2
    scores: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scores = self.scores or [1.0] * len(self.options)

    def draw(self, rng: np.random.Generator) -> int:
        """The index of an option."""
        scores = np.maximum(self.scores, self.floor)
        return int(rng.choice(len(scores), p=scores / scores.sum()))

    def reward(self, index: int, value: float) -> None:
        """Remember what an option brought."""
        self.scores[index] = self.memory * self.scores[index] + (1 - self.memory) * value


class AdaptiveSelector:
    """Draws the kind of neighbourhood, its size and its heat by roulette.

    Parameters
    ----------
    max_bits
        Largest number of weight bits that a round may have; 0 for rounds of polish alone.
    bits_per_weight
        Weight bits that one weight needs.
    max_examples
        Largest number of examples with target bits.
    background, coding
        As in `Choice`.
    relax
        Whether some rounds take weights off the grid; their sub-QUBO then brings these back.
    """

    WINDOW_BITS = 2
    HEATS = (0.5, 1.5, 3.0, 6.0)
    FUSION_HEATS = (3.0, 6.0, 20.0)
    FUSION_FLOOR = 3.0  # by what fusions are drawn at least: they pay on most data
    RELAXED_SIZES = (32, 64, 128, 256)
    RELAXED_HEAT = 0.5  # what was just rounded is to be settled, not shaken
    WIDTHS = (0.0, 0.3, 1.0)
    RELAXED_FIRST = 2.0  # relaxed rounds to others at first: where they pay they bring most
    CAUTION = 0.25  # the width of relaxed rounds

    # The wheels behind a choice of each coding, besides those behind all: only what was used is learnt about.
    OWN: Mapping[str, tuple[str, ...]] = {
        "window": ("size", "heat", "width", "batch", "relaxed"),
        "stored": ("size", "heat", "width", "batch", "relaxed"),
        "relaxed": ("relaxed size", "relaxed"),
        "fusion": ("fusion heat", "width", "batch"),
    }

    def __init__(
        self,
        num_codes: int,
        *,
        max_bits: int,
        bits_per_weight: int,
        max_examples: int,
        background: str,
        coding: str,
        relax: bool = True,
    ) -> None:
        largest = min(num_codes, max_bits // bits_per_weight)
        sizes = sorted({min(largest, size) for size in (4, 8, 16, 32, 64, largest)})
        self.max_bits, self.max_examples = max_bits, max_examples
        self.background, self.coding = background, coding
        floors = np.append(np.full(len(STRATEGIES), Roulette.floor), self.FUSION_FLOOR)
        self.wheels = {
            "kind": Roulette([*STRATEGIES, "fusion"], floor=floors),
            "size": Roulette(sizes),
            "heat": Roulette(list(self.HEATS)),
            "fusion heat": Roulette(list(self.FUSION_HEATS)),
            "width": Roulette(list(self.WIDTHS)),
            "batch": Roulette(["ambiguous", "random", "none"]),
            "relaxed": Roulette([False, True], scores=[1.0, self.RELAXED_FIRST])
            if relax and max_bits
            else Roulette([False]),
            "relaxed size": Roulette(sorted({min(num_codes, max_bits, size) for size in self.RELAXED_SIZES})),
        }
        self._drawn: list[dict[str, int]] = []

    def __call__(self, view: View, count: int, rng: np.random.Generator) -> list[Choice]:
        """As many choices as asked for."""
        self._drawn = [{name: wheel.draw(rng) for name, wheel in self.wheels.items()} for _ in range(count)]
        choices = [self._choice(view, drawn, rng) for drawn in self._drawn]
        self._drawn = [
            {name: drawn[name] for name in ("kind", *self.OWN[choice.coding])}
            for drawn, choice in zip(self._drawn, choices, strict=True)
        ]
        return choices

    def _choice(self, view: View, drawn: Mapping[str, int], rng: np.random.Generator) -> Choice:
        option = {name: self.wheels[name].options[index] for name, index in drawn.items()}
        kind, coding, other = option["kind"], self.coding, None
        others = [elite for elite in view.elites if (elite != view.codes).any()]
        if kind == "fusion" and others:
            option["heat"] = option["fusion heat"]
            other, coding = others[rng.integers(len(others))], "fusion"
            weights = rng.permutation(np.flatnonzero(other != view.codes))[: self.max_bits]
        else:
            kind = "random" if kind == "fusion" else kind
            if option["relaxed"]:
                coding, option["size"], option["heat"] = "relaxed", option["relaxed size"], self.RELAXED_HEAT
                option["width"], option["batch"] = self.CAUTION, "none"
            weights = STRATEGIES[kind](view, option["size"], rng)
        return Choice(
            kind=kind,
            weights=np.sort(weights),
            coding=coding,
            bits=self.WINDOW_BITS,
            background=self.background,
            width=option["width"],
            batch=option["batch"],
            examples=0 if option["batch"] == "none" else self.max_examples,
            heat=option["heat"],
            other=other,
        )

    def update(self, rewards: list[float]) -> None:
        """Learn from the outcome of each choice of the last call."""
        for drawn, reward in zip(self._drawn, rewards, strict=True):
            for name, index in drawn.items():
                self.wheels[name].reward(index, reward)

    def state(self) -> dict[str, list[float]]:
        """What has been learnt, for checkpoints."""
        return {name: list(wheel.scores) for name, wheel in self.wheels.items()}

    def restore(self, state: Mapping[str, list[float]]) -> None:
        """Go on with what had been learnt."""
        for name, scores in state.items():
            self.wheels[name].scores = list(scores)
