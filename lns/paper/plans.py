"""What is tried on each data set: bit depths as in the paper, intervals, q, λ, and how much work.

Intervals of the weights are a hyper-parameter of q-loss, in one of three kinds:

``per weight``
    An interval for each weight, around its size in the continuous solution.
``zero:W``
    [0, W] for all: a coarse grid that contains zero leaves weights out altogether. The bias lies on half
    steps of the same grid, so that a boundary through the middle of the cube is among the levels.
``uniform:W``
    [-W, W] for all, the bias likewise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from lns.errors import InvalidInput
from lns.paper.paths import LADDER, POSITIVE

PER_WEIGHT = "per weight"


@dataclass(frozen=True, order=True)
class QSetting:
    """Hyper-parameters of q-loss.

    Parameters
    ----------
    q_neg, q_pos
        q of the examples labelled -1 and +1; equal for the loss of the paper.
    lam
        λ.
    interval
        Of the weights, see above.
    detour
        Where the continuous path goes before it comes to q: None for q of both classes rising together, or
        a value d for the way over (q_neg, q_pos) = (d, 0), which gives up suspicious positives first.
    searched
        Whether the search goes on from the end of the path, or the nearest levels are taken as they are.
        Where a lower objective is a worse classifier (one q near 0 and many flips: answering +1 to
        everything is the deepest basin), less search is the better regulariser.
    """

    q_neg: float
    q_pos: float
    lam: float
    interval: str = PER_WEIGHT
    detour: float | None = None
    searched: bool = True

    @property
    def is_even(self) -> bool:
        """Whether both classes have one q, as in the paper."""
        return self.q_neg == self.q_pos

    @property
    def label(self) -> str:
        """Interval, path and search, for tables."""
        over = "" if self.detour is None else f", over ({self.detour:g}, 0)"
        return f"{self.interval}{over}{'' if self.searched else ', rounded'}"

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Plan:
    """The grid and the effort for one data set.

    Parameters
    ----------
    weight_bits
        d_w of the paper's table.
    intervals, lams, pairs, even, detours
        The values that settings are made of.
    rounds, walk_moves, heats
        Of the search (`lns.engine.EngineParams`): limited by rounds, so that results do not depend on the
        machine. Cool walks keep to the basin that the path has found.
    choice_folds
        Folds on which settings are compared.
    shortlist, honest_shortlist
        How many are trained by the search there: settings with one q, and as many with one per class, for
        the paper's protocol; and for each choice of the honest one.
    """

    weight_bits: int
    intervals: tuple[str, ...]
    lams: tuple[float, ...]
    even: tuple[float, ...]
    pairs: tuple[tuple[float, float], ...]
    detours: tuple[float, ...] = ()
    rounds: int = 10
    walk_moves: int = 2000
    heats: tuple[float, ...] = (6.0, 0.6, 20.0, 60.0, 200.0)
    choice_folds: int = 5
    shortlist: int = 6
    honest_shortlist: int = 3

    @property
    def by_search(self) -> bool:
        """Whether settings are compared by the search itself; the path knows nothing of coarse grids."""
        return self.intervals != (PER_WEIGHT,)

    def settings(self) -> list[QSetting]:
        """The whole grid."""
        even = [(q, q, detour) for q in self.even for detour in (None, *self.detours)]
        return [
            QSetting(q_neg, q_pos, lam, interval, detour)
            for lam in self.lams
            for interval in self.intervals
            for q_neg, q_pos, detour in [*even, *((*pair, None) for pair in self.pairs)]
        ]

    def variants(self, settings: Iterable[QSetting]) -> list[QSetting]:
        """The same settings as they can be trained, with and without a search; each once."""
        both = (True,) if self.by_search else (True, False)
        return list(dict.fromkeys(replace(one, searched=searched) for one in settings for searched in both))

    def coarse(self) -> Plan:
        """A third of the grid, for ``--quick``."""
        thin = self.intervals[::2] if self.by_search else self.intervals
        return replace(
            self, intervals=thin, lams=self.lams[::2], even=self.even[1::2], pairs=self.pairs[::2],
            detours=self.detours[:1], choice_folds=1, shortlist=1, honest_shortlist=1,
        )  # fmt: skip


_SYNTHETIC: dict[str, Any] = {
    "weight_bits": 2,
    "lams": (0.000126, 0.003167),
    "even": (-1.6, -1.0, -0.6, -0.3, 0.0),
    "pairs": ((-1.0, 0.0), (-0.6, 0.0), (-1.6, 0.0), (-1.0, -0.3), (-1.6, -0.3)),
}
_REAL: dict[str, Any] = {
    "weight_bits": 4,
    "intervals": (PER_WEIGHT,),
    "lams": (0.000126, 0.000001, 0.000632, 0.000025, 0.003167, 0.015875),
    "even": LADDER,
    "pairs": tuple((n, p) for n in (-3.0, -2.0, -1.4, -1.0, -0.7, -0.5, -0.35) for p in POSITIVE if p > n),
    "detours": (-0.7, -0.5, -2.0),
    "choice_folds": 3,
    "walk_moves": 20,
    "heats": (0.6,),
}

PLANS = {
    "long-servedio": Plan(intervals=("zero:1", "zero:1.5", "zero:3", "uniform:1"), **_SYNTHETIC),
    "mease-wyner": Plan(intervals=("zero:24", "zero:15", "zero:18", "uniform:12"), **_SYNTHETIC),
    "covertype": Plan(**{**_REAL, "lams": (0.000001, 0.000126, 0.000005, 0.000025)}),
    "mushrooms": Plan(**{**_REAL, "choice_folds": 5}),
    "adult9": Plan(**_REAL),
    "web8": Plan(**_REAL),
}


def plan_of(dataset: str, quick: bool) -> Plan:
    """What is tried on a data set, or the third of it that ``--quick`` tries."""
    return PLANS[dataset].coarse() if quick else PLANS[dataset]


def width_of(interval: str) -> tuple[str, float]:
    """Kind and W of ``zero:W`` and ``uniform:W``."""
    kind, _, width = interval.partition(":")
    if kind not in ("zero", "uniform") or not width:
        raise InvalidInput(f"An interval is 'per weight', 'zero:W' or 'uniform:W'. Got {interval!r}.")
    return kind, float(width)
