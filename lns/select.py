"""Which kind of neighbourhood comes next, and which weights it frees: by what has paid so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lns.errors import InvalidInput
from lns.neighbourhood import WINDOW_BITS
from lns.rounds import Choice

KINDS = ("window", "walk", "hop", "fusion")  # those of the engine; "stored" is that of the paper
NOTHING = (
    1e-4 / 1e9
)  # of the objective, per unit of work (about a nanosecond): what brings less brings nothing
MEMORY = 0.7  # of what a kind has brought, from one of its rounds to the next
WIDTHS = (0.0, 0.3)  # of margins over which the curvature of a window is averaged, in turn


@dataclass(frozen=True)
class View:
    """What a selector may look at."""

    codes: NDArray[np.int32]
    tops: NDArray[np.int32]
    partner: NDArray[np.integer]  # the most correlated weights of each weight, if they are known
    others: list[NDArray[np.float64]]  # other good solutions: weights and, last, the bias
    other_codes: list[NDArray[np.int32]]  # the same, on the present levels
    effect: NDArray[np.float64] | None = None  # of one level of each weight on margins; None: all alike


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
        self.walks = self.windows = 0  # how many there have been

    def __call__(self, view: View, count: int, rng: np.random.Generator) -> list[Choice]:
        """As many choices as asked for, all of one kind: they run side by side."""
        possible = [kind for kind in self.kinds if kind != "fusion" or self._differ(view)]
        kind = self.wheel.draw(possible or ["window"], rng)
        return [self._choice(kind, view, rng) for _ in range(count)]

    def _choice(self, kind: str, view: View, rng: np.random.Generator) -> Choice:
        if kind == "walk":
            self.walks += 1
            return Choice(
                kind, np.empty(0, dtype=np.intp), heat=self.heats[(self.walks - 1) % len(self.heats)]
            )
        other, width, examples = None, 0.0, self.max_examples
        if kind == "fusion":
            differ = self._differ(view)
            k = differ[rng.integers(len(differ))]
            other = view.others[k]
            weights = rng.permutation(np.flatnonzero(view.other_codes[k] != view.codes))[: self.max_bits]
        else:
            depth = np.ceil(np.log2(view.tops + 1)).astype(int)
            if kind != "stored":
                depth = np.minimum(depth, min(WINDOW_BITS, self.max_bits))
            if kind == "window":
                width = WIDTHS[self.windows % len(WIDTHS)]
                self.windows += 1
            weights = connected_weights(view, depth, self.max_bits, rng)
        return Choice(kind, np.sort(weights), self.background, width, examples, 0.0, other, self.max_bits)

    def _differ(self, view: View) -> list[int]:
        return [k for k, codes in enumerate(view.other_codes) if (codes != view.codes).any()]

    def update(self, kind: str, gain: float, work: float) -> None:
        """Learn what share of the objective the last round has brought, and what it cost."""
        self.wheel.reward(kind, max(gain, 0.0), max(work, 1.0))

    def state(self) -> dict[str, float]:
        """What has been learnt, for checkpoints."""
        learnt = {"rate": self.wheel.rates, "work": self.wheel.works}
        known = {f"{name} {kind}": value for name, of in learnt.items() for kind, value in of.items()}
        return {"walks": self.walks, "windows": self.windows, **known}

    def restore(self, state: Mapping[str, float]) -> None:
        """Go on with what had been learnt."""
        self.walks, self.windows = int(state.get("walks", 0)), int(state.get("windows", 0))
        for name, of in ("rate ", self.wheel.rates), ("work ", self.wheel.works):
            of.update({key.removeprefix(name): value for key, value in state.items() if key.startswith(name)})


def connected_weights(
    view: View, depth: NDArray[np.integer], bits: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """A weight, those most correlated with it, with them, and so on, while there is room.

    Where correlations are not known, weights by their effect. At least one, however many bits it has.
    """
    n = len(view.codes)
    if depth.sum() <= bits:
        return np.arange(n)
    effect = np.ones(n) if view.effect is None else view.effect
    share = effect / effect.sum()
    chosen = [int(rng.choice(n, p=share))]
    room = bits - int(depth[chosen[0]])
    inside = set(chosen)
    for i in chosen:  # grows while it is walked
        for j in map(int, view.partner[i]):
            if j not in inside and depth[j] <= room:
                inside.add(j)
                chosen.append(j)
                room -= int(depth[j])
    if room > 0:
        count = min(2 * bits, np.count_nonzero(share))
        for j in map(int, rng.choice(n, count, replace=False, p=share)):
            if j not in inside and depth[j] <= room:
                inside.add(j)
                chosen.append(j)
                room -= int(depth[j])
    return np.array(chosen, dtype=np.intp)
