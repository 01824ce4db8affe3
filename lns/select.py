"""Which kind of neighbourhood comes next, and which weights it frees: by what has paid so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lns.errors import InvalidInput
from lns.rounds import HOP_THROWN, NO_WEIGHTS, Choice

KINDS = ("window", "walk", "hop", "fusion")  # those of the engine; "stored" is that of the paper
NOTHING = 1e-13  # of the objective, per unit of work (a nanosecond): what brings less brings nothing
FIRST_WALKS = 1 / 32  # of the length of later ones; every second walk is twice as long
MEMORY = 0.7  # of what a kind has brought, from one of its rounds to the next


@dataclass(frozen=True)
class View:
    """What a selector may look at."""

    codes: NDArray[np.int32]
    tops: NDArray[np.int32]
    effect: NDArray[np.float64]  # of one level of each weight on margins
    others: list[NDArray[np.float64]]  # other good solutions: weights and, last, the bias
    other_codes: list[NDArray[np.int32]]  # the same, on the present levels


@dataclass
class Wheel:
    """Draws kinds so that each gets work in proportion to what that has brought; each once at first."""

    rates: dict[str, float] = field(default_factory=dict)  # gain per unit of work
    works: dict[str, float] = field(default_factory=dict)  # of one round

    def draw(self, kinds: Sequence[str], rng: np.random.Generator) -> str:
        """The next kind."""
        for kind in kinds:
            if kind not in self.rates:
                return kind
        rates, works = (np.array([of[kind] for kind in kinds]) for of in (self.rates, self.works))
        often = (NOTHING + rates) / works
        return str(rng.choice(list(kinds), p=often / often.sum()))

    def reward(self, kind: str, gain: float, work: float) -> None:
        """Remember what a round of a kind has brought, and what it took."""
        for of, now in ((self.rates, gain / work), (self.works, work)):
            of[kind] = MEMORY * of[kind] + (1 - MEMORY) * now if kind in of else now


class Selector:
    """Draws the kind of the next round, and its neighbourhoods.

    Parameters
    ----------
    kinds
        The kinds to draw from.
    heats
        Of walks, in turn.
    max_bits, max_examples
        Largest number of weight bits of a neighbourhood, and of examples with target bits.
    background
        As in `lns.rounds.Choice`.
    """

    def __init__(
        self,
        kinds: Sequence[str],
        heats: Sequence[float],
        *,
        max_bits: int,
        max_examples: int,
        background: str,
    ) -> None:
        if max_bits < 1 and set(kinds) != {"walk"}:
            raise InvalidInput(
                f"A round needs room for at least one weight bit. Got max_bits = {max_bits}: give a larger "
                "one, or a solver that takes larger sub-QUBOs."
            )
        self.max_bits, self.max_examples, self.background = max_bits, max_examples, background
        self.kinds, self.heats, self.wheel = kinds, heats, Wheel()
        self.walks = 0  # how many there have been

    def __call__(self, view: View, count: int, rng: np.random.Generator) -> list[Choice]:
        """As many choices as asked for, all of one kind: they run side by side."""
        possible = [kind for kind in self.kinds if kind != "fusion" or self._differ(view)]
        kind = self.wheel.draw(possible or ["window"], rng)
        return [self._choice(kind, view, rng) for _ in range(count)]

    def _choice(self, kind: str, view: View, rng: np.random.Generator) -> Choice:
        if kind == "walk":
            heat, length = self.heats[self.walks % len(self.heats)], FIRST_WALKS * 2.0 ** (self.walks // 2)
            self.walks += 1
            return Choice(kind, NO_WEIGHTS, heat=heat, length=min(1.0, length))
        n, other, thrown = len(view.codes), None, NO_WEIGHTS
        if kind == "fusion":
            differ = self._differ(view)
            k = differ[rng.integers(len(differ))]
            other = view.others[k]
            weights = rng.permutation(np.flatnonzero(view.other_codes[k] != view.codes))[: self.max_bits]
        elif kind == "stored":
            order, depth = rng.permutation(n), np.ceil(np.log2(view.tops + 1)).astype(int)
            fit = int((np.cumsum(depth[order]) <= self.max_bits).sum())
            weights = order[: max(1, fit)]
        else:  # few weights as often as many
            count, share = int(np.exp(rng.uniform(np.log(min(2, n)), np.log(n + 1)))), view.effect.copy()
            if kind == "hop":
                matter = rng.permutation(np.flatnonzero(share))
                most = min(max(1, int(HOP_THROWN * n)), len(matter) - 1)  # one at least has to settle
                number = int(np.exp(rng.uniform(0.0, np.log(most + 1))))
                count, thrown = n, matter[: min(number, most)]
                share[thrown] = 0.0
            count = min(count, self.max_bits, int(np.count_nonzero(share)))
            weights = rng.choice(n, count, replace=False, p=share / share.sum())
        return Choice(
            kind, np.sort(weights), self.background, self.max_examples, thrown=thrown, other=other,
            max_bits=self.max_bits,
        )  # fmt: skip

    def _differ(self, view: View) -> list[int]:
        return [k for k, codes in enumerate(view.other_codes) if (codes != view.codes).any()]

    def update(self, kind: str, gain: float, work: float) -> None:
        """Learn what share of the objective the last round has brought, and what it cost."""
        self.wheel.reward(kind, max(gain, 0.0), max(work, 1.0))

    def state(self) -> dict[str, float]:
        """What has been learnt, for checkpoints."""
        learnt = {"rate": self.wheel.rates, "work": self.wheel.works}
        known = {f"{name} {kind}": value for name, of in learnt.items() for kind, value in of.items()}
        return {"walks": self.walks, **known}

    def restore(self, state: Mapping[str, float]) -> None:
        """Go on with what had been learnt."""
        self.walks = int(state.get("walks", 0))
        for name, of in ("rate ", self.wheel.rates), ("work ", self.wheel.works):
            of.update({key.removeprefix(name): value for key, value in state.items() if key.startswith(name)})
