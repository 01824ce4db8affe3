"""The whole run: data sets one after another, their cells side by side, results as CSV and as a page."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import lns
from lns.errors import InvalidInput
from lns.files import write_json
from lns.paper import origin, risk
from lns.paper.cache import Cache, fingerprint
from lns.paper.experiment import Cell, Effort
from lns.paper.folds import HELD_OUT, Source, sheet
from lns.paper.outputs.cells import COLUMNS, FIGURES, FLIP_COLUMNS, RISK_COLUMNS
from lns.paper.outputs.cells import read as read_run
from lns.paper.plans import PLANS, plan_of
from lns.paper.protocols import ESTIMATED
from lns.paper.run_files import merge, read_calls
from lns.paper.units import Unit
from lns.paper.workers import Bench, open_workers

NOISES = (0, 10, 20, 30, 40)
QUICK_ROWS = 10_000
CACHE = "cache"


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to run, and where.

    Parameters
    ----------
    out
        Folder of the results and of the cache.
    datasets, noises
        The cells: names, and percentages.
    effort
        Folds, rows and grid.
    seed
        Of everything random.
    backend, workers, address
        ``"local"`` processes or ``"ray"``, and how many at a time.
    data_dir
        Where to look first for files.
    command
        The words that the user typed, for the record.
    """

    out: Path
    datasets: Sequence[str] = tuple(PLANS)
    noises: Sequence[int] = NOISES
    effort: Effort = field(default_factory=Effort)
    seed: int = 0
    backend: str = "local"
    workers: int = 1
    address: str | None = None
    data_dir: str | None = None
    command: Sequence[str] = ("lns", "paper")


def run(options: Options) -> None:
    """Do what has not been done, and write everything that is known by then after every data set.

    Raises
    ------
    InvalidInput
        If a package is not installed, or the folder cannot be used.
    DataError
        If data is missing, or a file of the folder is not of a run.
    """
    # All that will be needed is looked for first: a run must not end after hours because it is missing.
    origin.check_packages()
    cache = Cache(_folder(options.out) / CACHE, origin.commit(Path(lns.__file__).parent))
    for name in options.datasets:
        sheet(_source(options, name))
    with open_workers(options.backend, options.workers, options.address) as submit:
        bench = Bench(cache, submit, options.workers)
        _run_risk(options, bench)
        for name in options.datasets:
            _run_dataset(options, name, bench)
            write_page(options.out)


def write_page(out: Path) -> None:
    """Tables, figures and the page, from the files of a run."""
    from lns.paper.outputs import page

    page.write(out)


def _source(options: Options, name: str) -> Source:
    return Source(name, options.seed, QUICK_ROWS if options.effort.quick else None, options.data_dir)


def _run_dataset(options: Options, name: str, bench: Bench) -> None:
    began, spent_before = perf_counter(), bench.spent
    bench.cache.commits.clear()
    source = _source(options, name)
    rows = sheet(source)
    data = fingerprint(rows.inside) + fingerprint(rows.outside)
    plan = plan_of(name, options.effort.quick)
    inside = int((rows.fold != 0).sum())
    cells = [Cell(source, noise, plan, options.effort, inside) for noise in options.noises]

    for cell, units, results in _step(bench, cells, Cell.first, data, f"{name} 1/4"):
        cell.hear_first(units, results)
    for cell, units, results in _step(bench, cells, Cell.second, data, f"{name} 2/4"):
        cell.hear_second(units, results)
    for cell, units, results in _step(bench, cells, Cell.third, data, f"{name} 3/4"):
        cell.hear_third(units, results)
    folds: list[dict[str, Any]] = []
    flips: list[dict[str, Any]] = []
    for cell, units, results in _step(bench, cells, Cell.fourth, data, f"{name} 4/4"):
        for table, found in zip((folds, flips), cell.rows(units, results), strict=True):
            table.extend(found)
    merge(options.out / "folds.csv", COLUMNS, folds)
    merge(options.out / "flips.csv", FLIP_COLUMNS, flips)
    # What earlier, interrupted calls have done counts as if it had been done now.
    fresh = perf_counter() - began
    wall = max(fresh, (bench.spent - spent_before) / options.workers)
    _note(options, name, round(wall, 1), sorted(bench.cache.commits), cells)


def _step(
    bench: Bench, cells: list[Cell], units_of: Callable[[Cell], list[Unit]], data: str, stage: str
) -> Iterable[tuple[Cell, list[Unit], list[dict[str, Any]]]]:
    """All units of a step of all cells at once; then cell by cell."""
    lists = [units_of(cell) for cell in cells]
    done = bench.results([unit for units in lists for unit in units], data, stage)
    at = 0
    for cell, units in zip(cells, lists, strict=True):
        yield cell, units, [done[k] for k in range(at, at + len(units))]
        at += len(units)


def _run_risk(options: Options, bench: Bench) -> None:
    """The traces of the paper's first figure, which need the synthetic sets only."""
    table: list[dict[str, Any]] = []
    for name, noise, interval, q in risk.CASES:
        source = Source(name, options.seed)
        case = {"interval": interval, "q": q}
        unit = Unit("risk", source, noise, HELD_OUT, settings=(case,), plan=PLANS[name])
        data = fingerprint(sheet(source).inside)
        table += bench.results([unit], data, f"{name} risk")[0]["steps"]
    merge(options.out / "risk.csv", RISK_COLUMNS, table)


def _folder(out: Path) -> Path:
    """Make the folder of a run, or make sure that this call can add to what is there."""
    for folder in (out, out / CACHE, out / FIGURES):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise InvalidInput(
                f"--out {out} cannot be used: {folder} is not a folder; move it away or give another --out."
            ) from None
        except OSError as error:
            raise InvalidInput(f"--out {out} cannot be used: {error.strerror or error}.") from None
    read_run(out)
    return out


def _note(options: Options, name: str, wall: float, commits: list[str], cells: Sequence[Cell]) -> None:
    """Who made the results, by which command, in which time; earlier calls keep what this one left alone."""
    path, effort = options.out / "run.json", options.effort
    calls = []
    for call in read_calls(path):
        if call["dataset"] == name:
            call["noise_percent"] = [one for one in call["noise_percent"] if one not in options.noises]
        if call["noise_percent"]:
            calls.append(call)
    calls.append(
        {
            "dataset": name,
            "noise_percent": list(options.noises),
            "command": shlex.join(options.command),
            "seed": options.seed,
            "commits": commits,
            "wall_seconds": wall,
            "workers": options.workers,
            "folds": effort.folds,
            "rows_for_choice": effort.choice_rows,
            "quick": effort.quick,
            "estimated_rates": {cell.noise_percent: list(cell.rates[ESTIMATED]) for cell in cells},
            "flipped": {cell.noise_percent: _flipped(cell) for cell in cells},
            "versions": origin.versions(),
        }
    )
    write_json(path, {"calls": calls})


def _flipped(cell: Cell) -> float:
    """Share of the negatives that the draw has flipped; it is not quite the noise level."""
    part = sheet(cell.source).part(cell.noise_percent, HELD_OUT)
    return float(part.flipped[part.train.y < 0].mean())
