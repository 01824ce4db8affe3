"""What the reproduction has to show, counted cell by cell; every cell that misses is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from lns.paper import printed
from lns.paper.outputs.cells import CLEANLAB, Run
from lns.paper.outputs.words import REASONS
from lns.paper.rivals import RIVALS

ONE_Q, TWO_Q = "q-loss", "q-loss per class"
# Errors in % at 40 % noise with one q per class.
LIMITS = {
    "long-servedio": 0.1,
    "mease-wyner": 1.2,
    "covertype": 23.0,
    "mushrooms": 0.4,
    "adult9": 16.0,
    "web8": 1.9,
}
COVERTYPE = {0: 21.9, 10: 22.1, 20: 22.9, 30: 25.2206, 40: 31.7}  # the printed errors, not below them
COVERTYPE_ROWS = 406_708  # 70 % of all; a fold trains on those it does not test
EASY = ("long-servedio", "mease-wyner", "mushrooms", "web8")


@dataclass
class Check:
    """A claim about some cells, how many have to fulfil it, and those that were run but do not."""

    claim: str
    wanted: int
    total: int
    run: int = 0
    misses: list[str] = field(default_factory=list)

    def count(self, outcomes: Iterable[str | None]) -> Check:
        """Take in the cells that were run: what is wrong with each, or nothing."""
        for outcome in outcomes:
            self.run += 1
            if outcome:
                self.misses.append(outcome)
        return self

    @property
    def held(self) -> int:
        """How many cells fulfil it."""
        return self.run - len(self.misses)

    @property
    def verdict(self) -> str:
        """Whether it holds, as far as one can tell."""
        if self.held >= self.wanted:
            return "yes"
        return "no" if self.held + self.total - self.run < self.wanted else "not all run"


def check(run: Run) -> list[Check]:
    """Every claim, counted."""
    return [Check(claim, wanted, total).count(outcomes(run)) for claim, wanted, total, outcomes in _claims()]


def _claims() -> list[tuple[str, int, int, Callable[[Run], Iterator[str | None]]]]:
    return [
        ("rivals within 1.5 points or 2 printed std of the printed error", 168, 210, _rivals),
        ("rivals further off are lower than printed, or the reason is known", 210, 210, _unexplained),
        ("q-loss at most the printed mean + std", 27, 30, _printed),
        ("q-loss at most every rival of the same run", 25, 30, _lowest),
        ("one q per class, 40 % noise: at most the limit of the set", 6, 6, _limits),
        ("one q per class: 40 % noise costs at most a point against clean labels", 6, 6, _cost),
        ("one q per class no worse than one q, which is among its settings", 30, 30, _no_worse),
        ("honest choice, rates known, 40 % noise: within a point of the paper's protocol", 6, 6, _known),
        ("honest choice, rates estimated, 40 % noise: half of the gain over one q", 6, 6, _gain),
        ("covertype, one q, all training rows, 3 folds or more: the printed error", 5, 5, _covertype),
        ("flips: F1 above cleanlab's (20 and 40 % noise)", 11, 12, _flips),
        ("flips: recall and precision 0.95 on the four sets that allow it", 8, 8, _easy_flips),
    ]


def _where(dataset: str, noise: int, *more: str) -> str:
    return " ".join((printed.DATASETS[dataset], f"{noise} %", *more))


def _cells(method: str) -> Iterator[tuple[str, int, str]]:
    return ((dataset, noise, method) for dataset in printed.DATASETS for noise in printed.NOISES)


def rival_gaps(run: Run) -> Iterator[tuple[str, int, str, float]]:
    """Data set, noise, rival, and by how much it is off: 0 within 1.5 points or 2 printed std."""
    for method in RIVALS:
        for dataset, noise, _ in _cells(method):
            ours = run.mean(dataset, noise, method)
            if ours is not None:
                theirs, std = printed.errors()[dataset, method, noise]
                gap = ours - theirs
                yield dataset, noise, method, 0.0 if abs(gap) <= max(1.5, 2 * std) else gap


def _rivals(run: Run) -> Iterator[str | None]:
    for dataset, noise, method, gap in rival_gaps(run):
        theirs, _ = printed.errors()[dataset, method, noise]
        side = "above" if gap > 0 else "below"
        yield f"{_where(dataset, noise, method)}: {abs(gap):.2f} {side} {theirs:.2f}" if gap else None


def _unexplained(run: Run) -> Iterator[str | None]:
    """A rival that is lower than printed was trained better; one that is higher asks for a reason."""
    for dataset, noise, method, gap in rival_gaps(run):
        known = (dataset, method) in REASONS
        yield f"{_where(dataset, noise, method)}: {gap:.2f} above" if gap > 0 and not known else None


def _printed(run: Run) -> Iterator[str | None]:
    for dataset, noise, method in _cells(ONE_Q):
        ours = run.mean(dataset, noise, method)
        if ours is None:
            continue
        theirs, std = printed.errors()[dataset, method, noise]
        above = ours - theirs - std
        yield (
            f"{_where(dataset, noise)}: {above:.2f} above {theirs:.2f} + {std:.2f}" if above > 1e-4 else None
        )


def _lowest(run: Run) -> Iterator[str | None]:
    for dataset, noise, method in _cells(ONE_Q):
        ours = run.mean(dataset, noise, method)
        others = {name: run.mean(dataset, noise, name) for name in RIVALS}
        ran = {name: error for name, error in others.items() if error is not None}
        if ours is None or not ran:
            continue
        best = min(ran, key=ran.__getitem__)
        above = ours - ran[best]
        yield (
            f"{_where(dataset, noise)}: {above:.2f} above {best} ({ran[best]:.2f})" if above > 1e-9 else None
        )


def _limits(run: Run) -> Iterator[str | None]:
    for dataset, limit in LIMITS.items():
        ours = run.mean(dataset, 40, TWO_Q)
        if ours is not None:
            yield (
                f"{_where(dataset, 40)}: {ours:.2f}, {ours - limit:.2f} above {limit}"
                if ours > limit
                else None
            )


def _cost(run: Run) -> Iterator[str | None]:
    for dataset in printed.DATASETS:
        noisy, clean = (run.mean(dataset, noise, TWO_Q) for noise in (40, 0))
        if noisy is not None and clean is not None:
            yield f"{_where(dataset, 40)}: {noisy - clean:.2f} points" if noisy > clean + 1 else None


def _no_worse(run: Run) -> Iterator[str | None]:
    for dataset, noise, _ in _cells(TWO_Q):
        one, two = (run.mean(dataset, noise, method) for method in (ONE_Q, TWO_Q))
        if one is not None and two is not None:
            yield f"{_where(dataset, noise)}: {two - one:.2f} above {one:.2f}" if two > one + 1e-9 else None


def _known(run: Run) -> Iterator[str | None]:
    for dataset in printed.DATASETS:
        paper, honest = (run.mean(dataset, 40, TWO_Q, protocol) for protocol in ("paper", "honest-known"))
        if paper is not None and honest is not None:
            yield f"{_where(dataset, 40)}: {honest - paper:.2f} above" if honest > paper + 1 else None


def _gain(run: Run) -> Iterator[str | None]:
    """The gain of q per class over one q, each under its own protocol: the rows that are scored differ."""
    for dataset in printed.DATASETS:
        one, two = (run.mean(dataset, 40, method) for method in (ONE_Q, TWO_Q))
        honest_one, honest_two = (
            run.mean(dataset, 40, method, "honest-estimated") for method in (ONE_Q, TWO_Q)
        )
        if one is None or two is None or honest_one is None or honest_two is None:
            continue
        gain, wanted = honest_one - honest_two, max(0.0, one - two) / 2
        yield f"{_where(dataset, 40)}: {gain:.2f}, {wanted:.2f} wanted" if gain < wanted - 1e-9 else None


def _covertype(run: Run) -> Iterator[str | None]:
    for noise, limit in COVERTYPE.items():
        cell = run.cell("covertype", noise, ONE_Q)
        if cell is None:
            continue
        where, folds = _where("covertype", noise), len(cell.errors)
        if folds < 3:
            yield f"{where}: {folds} folds"
        elif cell.train_rows < COVERTYPE_ROWS * 0.9 - 10:  # one of ten folds is for the test
            yield f"{where}: trained on {cell.train_rows:,} rows"
        else:
            yield f"{where}: {cell.mean - limit:.2f} above {limit}" if cell.mean > limit else None


def _flips(run: Run) -> Iterator[str | None]:
    for dataset in printed.DATASETS:
        for noise in (20, 40):
            ours, theirs = (run.flips.get((dataset, noise, method)) for method in (TWO_Q, CLEANLAB))
            if ours is not None and theirs is not None:
                words = f"{_where(dataset, noise)}: F1 {ours.f1:.3f} against {theirs.f1:.3f}"
                yield None if ours.f1 > theirs.f1 else words


def _easy_flips(run: Run) -> Iterator[str | None]:
    for dataset in EASY:
        for noise in (20, 40):
            ours = run.flips.get((dataset, noise, TWO_Q))
            if ours is not None:
                words = f"{_where(dataset, noise)}: recall {ours.recall:.3f}, precision {ours.precision:.3f}"
                yield None if min(ours.recall, ours.precision) >= 0.95 else words
