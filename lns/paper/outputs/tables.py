"""The tables of the results page."""

from __future__ import annotations

from collections.abc import Iterable

from lns.paper import printed
from lns.paper.outputs import significance
from lns.paper.outputs.cells import CLEANLAB, CLEANLAB_BEST, Cell, Run
from lns.paper.outputs.checks import ONE_Q, TWO_Q, Check, rival_gaps
from lns.paper.outputs.table import Table
from lns.paper.outputs.words import REASONS
from lns.paper.plans import plan_of
from lns.paper.rivals import RIVALS, TODAY
from lns.report.numbers import count, duration, plain

METHODS = (ONE_Q, TWO_Q, *RIVALS, *TODAY)
FLAGGERS = (TWO_Q, ONE_Q, CLEANLAB, CLEANLAB_BEST)
PROTOCOLS = {
    "paper": "paper's protocol",
    "honest-known": "honest, rates known",
    "honest-estimated": "honest, rates estimated",
}
NOTHING = "–"


def datasets_of(run: Run) -> list[str]:
    """The data sets that were run, in the paper's order."""
    return [name for name in printed.DATASETS if any(key[0] == name for key in run.cells)]


def calls_table(run: Run) -> Table:
    """Who made the numbers of each data set."""
    rows = []
    for call in run.calls:
        dataset, noises = call["dataset"], call["noise_percent"]
        trained = [
            cell.train_rows for key, cell in run.cells.items() if key[0] == dataset and key[1] in noises
        ]
        rows.append(
            (
                printed.DATASETS[dataset], ", ".join(map(str, noises)), call["command"], str(call["seed"]),
                ", ".join(call["commits"]), duration(float(call["wall_seconds"])), str(call["workers"]),
                " to ".join(map(count, sorted({min(trained), max(trained)}))) if trained else NOTHING,
                ", ".join(f"{package} {version}" for package, version in call["versions"].items()),
            )
        )  # fmt: skip
    head = (
        "data set",
        "noise in %",
        "command",
        "seed",
        "commit",
        "wall time",
        "workers",
        "training rows",
        "versions",
    )
    return Table("Calls of lns paper", head, rows)


def effort_table(run: Run) -> Table:
    """How much was tried for q-loss, and on what."""
    rows = []
    for call in run.calls:
        plan = plan_of(call["dataset"], call["quick"])
        settings = plan.settings()
        even = sum(one.is_even for one in settings)
        rows.append(
            (
                printed.DATASETS[call["dataset"]], f"{call['folds']} of 10",
                str(even), str(len(settings) - even),
                f"{min(call['folds'], plan.choice_folds)} folds, {count(call['rows_for_choice'])} rows",
                "the search" if plan.by_search else "the continuous path",
                str(plan.shortlist), str(plan.rounds), str(plan.weight_bits),
            )
        )  # fmt: skip
    head = (
        "data set", "folds scored", "settings with one q", "pairs of q", "compared on at most", "compared by",
        "of each trained by the search", "rounds of a search", "bits of a weight",
    )  # fmt: skip
    return Table("Effort for q-loss", head, rows)


def rates_table(run: Run) -> Table:
    """Flip rates: asked for, drawn, and estimated from the noisy labels."""
    rows = [
        (
            printed.DATASETS[call["dataset"]], f"{noise} %", f"{100 * call['flipped'][str(noise)]:.1f} %",
            *(f"{100 * rate:.1f} %" for rate in call["estimated_rates"][str(noise)]),
        )
        for call in run.calls
        for noise in call["noise_percent"]
    ]  # fmt: skip
    head = ("data set", "noise", "negatives flipped", "estimated", "estimated for positives")
    return Table("Flip rates", head, rows)


def reasons_table(run: Run) -> Table | None:
    """Why rivals are above the printed error, as far as that is known."""
    found: dict[tuple[str, str], list[int]] = {}
    for dataset, noise, method, gap in rival_gaps(run):
        if gap > 0:
            found.setdefault((dataset, method), []).append(noise)
    rows = [
        (printed.DATASETS[dataset], method, ", ".join(f"{noise} %" for noise in noises),
         REASONS.get((dataset, method), "not known"))
        for (dataset, method), noises in found.items()
    ]  # fmt: skip
    head = ("data set", "method", "noise", "why")
    return Table("Rivals above the printed error, and why", head, rows) if rows else None


def checks_table(checks: Iterable[Check]) -> Table:
    """Claims and whether they hold."""
    rows = [
        (one.claim, f"{one.wanted} of {one.total}", f"{one.held} of {one.run}", f"**{one.verdict}**")
        for one in checks
    ]
    return Table("What had to be shown", ("claim", "wanted", "cells that do, of those run", "holds"), rows)


def misses_table(checks: Iterable[Check]) -> Table | None:
    """Every cell that misses, and by how much."""
    rows = [(one.claim, miss) for one in checks for miss in one.misses]
    return Table("Cells that miss", ("claim", "cell, and by how much"), rows) if rows else None


def errors_table(run: Run, dataset: str) -> Table:
    """Test errors under the paper's protocol: ours, and the printed one in brackets."""
    lowest = {}
    for noise in run.noises:
        means = (run.mean(dataset, noise, method) for method in (ONE_Q, TWO_Q, *RIVALS))
        lowest[noise] = min((one for one in means if one is not None), default=0.0)

    def entry(noise: int, method: str) -> str:
        cell, theirs = run.cell(dataset, noise, method), printed.errors().get((dataset, method, noise))
        known = f" ({theirs[0]:.2f} ± {theirs[1]:.2f})" if theirs else ""
        if cell is None:
            return NOTHING + known
        words = f"{cell.mean:.2f} ± {cell.std:.2f}{known}"
        return f"**{words}**" if method not in TODAY and cell.mean <= lowest[noise] + 1e-9 else words

    methods = [
        method for method in METHODS
        if method in RIVALS or any(run.cell(dataset, noise, method) for noise in run.noises)
    ]  # fmt: skip
    rows = [(method, *(entry(noise, method) for noise in run.noises)) for method in methods]
    return Table(f"{printed.DATASETS[dataset]}: test error in %", ("method", *_noise_head(run)), rows)


def protocols_table(run: Run) -> Table | None:
    """q-loss under the honest protocol beside the paper's: never the same numbers."""
    rows = [
        (printed.DATASETS[dataset], method, words, *_errors(run, dataset, method, name))
        for dataset in datasets_of(run)
        for method in (ONE_Q, TWO_Q)
        for name, words in PROTOCOLS.items()
        if any(run.cell(dataset, noise, method, name) for noise in run.noises)
    ]  # fmt: skip
    if all(row[2] == PROTOCOLS["paper"] for row in rows):
        return None
    return Table(
        "q-loss under both protocols: test error in %",
        ("data set", "method", "protocol", *_noise_head(run)),
        rows,
    )


def honest_table(run: Run) -> Table | None:
    """All methods under the honest protocol."""
    rows = [
        (printed.DATASETS[dataset], method, words, *_errors(run, dataset, method, name))
        for dataset in datasets_of(run)
        for method in METHODS
        for name, words in PROTOCOLS.items()
        if name != "paper" and any(run.cell(dataset, noise, method, name) for noise in run.noises)
    ]  # fmt: skip
    if not rows:
        return None
    return Table(
        "Honest protocol: test error in %", ("data set", "method", "choice", *_noise_head(run)), rows
    )


def settings_table(run: Run, dataset: str) -> Table:
    """The hyper-parameters chosen under the paper's protocol; printed ones in brackets."""
    rows = []
    for method in METHODS:
        cells = {noise: run.cell(dataset, noise, method) for noise in run.noises}
        for name, words in (("q", "q"), ("lam", "λ"), ("t", "t"), ("interval", "intervals")):
            entries = {noise: _setting(cell, name) for noise, cell in cells.items()}
            if not any(entries.values()):
                continue
            known = {noise: _printed_setting(name, dataset, method, noise) for noise in run.noises}
            joined = (f"{entries[noise] or NOTHING}{known[noise]}" for noise in run.noises)
            rows.append((method, words, *joined))
    return Table(
        f"{printed.DATASETS[dataset]}: chosen settings", ("method", "setting", *_noise_head(run)), rows
    )


def significance_table(run: Run) -> Table | None:
    """Paired t-tests; the paper's own verdict in brackets."""
    rows = []
    for dataset in datasets_of(run):
        rival = significance.closest_convex(run, dataset)
        if rival is None:
            continue
        entries = []
        for noise in run.noises:
            found = significance.compare(run, dataset, noise, rival)
            theirs = printed.significant().get((dataset, noise))
            known = "" if theirs is None else f" ({'Y' if theirs else 'N'})"
            if found is None:
                entries.append(NOTHING + known)
                continue
            ours = "Y" if found.significant else "N"
            words = f"{ours}: {found.difference:+.2f}, p = {found.p:.2g}".replace("-", "−", 1)
            entries.append(words + known)
        rows.append((printed.DATASETS[dataset], rival, printed.closest_convex()[dataset], *entries))
    head = ("data set", "closest convex rival here", "in the paper", *_noise_head(run))
    return Table("Paired t-tests of q-loss against the closest convex rival", head, rows) if rows else None


def flips_table(run: Run) -> Table | None:
    """Injected and flagged labels."""
    rows = []
    for dataset in printed.DATASETS:
        for noise in sorted({key[1] for key in run.flips}):
            for method in FLAGGERS:
                found = run.flips.get((dataset, noise, method))
                if found is None:
                    continue
                counts = (found.train_rows, found.injected, found.flagged, found.both)
                shares = (found.recall, found.precision, found.f1)
                numbers = [*map(count, counts), *(f"{one:.3f}" for one in shares)]
                rows.append((printed.DATASETS[dataset], f"{noise} %", method, *numbers))
    head = (
        "data set",
        "noise",
        "method",
        "training labels",
        "injected",
        "flagged",
        "both",
        "recall",
        "precision",
        "F1",
    )
    return Table("Flipped labels found", head, rows) if rows else None


def _noise_head(run: Run) -> tuple[str, ...]:
    return tuple(f"{noise} % noise" for noise in run.noises)


def _errors(run: Run, dataset: str, method: str, protocol: str) -> list[str]:
    return [_error(run.cell(dataset, noise, method, protocol)) for noise in run.noises]


def _error(cell: Cell | None) -> str:
    if cell is None:
        return NOTHING
    return f"{cell.mean:.2f}" if len(cell.errors) < 2 else f"{cell.mean:.2f} ± {cell.std:.2f}"


def _setting(cell: Cell | None, name: str) -> str:
    if cell is None:
        return ""
    if name == "q":
        both = [cell.setting[key] for key in ("q_neg", "q_pos") if key in cell.setting]
        texts = [plain(float(one), 3) for one in both]
        return texts[0] if texts and texts[0] == texts[-1] else " / ".join(texts)
    value = cell.setting.get(name, "")
    return value if name == "interval" or not value else plain(float(value), 3)


def _printed_setting(name: str, dataset: str, method: str, noise: int) -> str:
    value = None
    if name == "q" and method == ONE_Q:
        value = printed.q().get((dataset, noise))
    elif name == "t" and method == "t-logistic":
        value = printed.t().get((dataset, noise))
    elif name == "lam":
        value = printed.lam().get((dataset, method, noise))
    return "" if value is None else f" ({plain(value, 3)})"
