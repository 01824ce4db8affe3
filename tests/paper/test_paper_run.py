"""Tests of units, their cache, the workers, and whole runs."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.error import URLError

import pytest
from made_up_run import write_made_up_run

from lns import cli
from lns.datasets import remote
from lns.paper import origin
from lns.paper import run as paper
from lns.paper.cache import OF_KIND, Cache, fingerprint
from lns.paper.experiment import Cell, Effort
from lns.paper.folds import HELD_OUT, Source, sheet
from lns.paper.outputs.cells import CLEANLAB, CLEANLAB_BEST
from lns.paper.plans import PLANS
from lns.paper.protocols import ESTIMATED, KNOWN
from lns.paper.units import Q_LOSS, Q_PER_CLASS, Unit, run_unit
from lns.paper.workers import Bench

ROOT = Path(__file__).parents[2]
SOURCE = Source("long-servedio")
UNIT = Unit("rates", SOURCE, 20, HELD_OUT)


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache")


def at_once(unit):
    """A worker that answers before it is asked again; unit of noise 13 fails."""
    future: Future = Future()
    if unit.noise_percent == 13:
        future.set_exception(RuntimeError("thirteen"))
    else:
        future.set_result({"noise": unit.noise_percent, "unit_seconds": 2.0})
    return future


def test_results_are_kept_by_what_they_depend_on(cache):
    """Tests that a unit finds its own result, and neither one of other arguments nor of other data."""
    cache.put(UNIT, "data", {"answer": 1})
    assert cache.get(UNIT, "data") == {"answer": 1}
    assert cache.get(UNIT, "other data") is None
    for other in (
        replace(UNIT, noise_percent=30),
        replace(UNIT, fold=1),
        replace(UNIT, settings=({"lam": 1.0},)),
        replace(UNIT, source=replace(SOURCE, seed=1)),
        replace(UNIT, plan=PLANS["web8"]),
    ):
        assert cache.get(other, "data") is None
    assert cache.get(replace(UNIT, source=replace(SOURCE, data_dir="elsewhere")), "data") == {"answer": 1}


def test_a_damaged_result_is_made_again(cache):
    """Tests files cut short, empty and foreign."""
    cache.put(UNIT, "data", {"answer": 1})
    path = cache.path(UNIT, "data")
    for text in (path.read_text()[:20], "", "[]", '{"title": "x"}'):
        path.write_text(text)
        assert cache.get(UNIT, "data") is None


def test_results_know_the_code_that_made_them(tmp_path):
    """Tests that the commits of old and new results are told."""
    Cache(tmp_path, "old").put(UNIT, "data", {"answer": 1})
    cache = Cache(tmp_path, "new")
    assert cache.get(UNIT, "data") == {"answer": 1}
    cache.put(replace(UNIT, fold=1), "data", {"answer": 2})
    assert cache.commits == {"old", "new"}


# Modules that units import, but that cannot change a result: they count, keep, send and show.
HARMLESS = {
    "backends/cluster.py", "backends/ray.py", "backends/ray_worker.py", "backends/shards.py", "checkpoint.py",
    "errors.py", "files.py", "keeper.py", "memory.py", "paper/plans.py", "problem_file.py", "progress.py",
    "qubo.py", "records.py", "result.py", "shard.py", "sharded.py", "warm_up.py",
}  # fmt: skip


def imported(path):
    """Modules of the package that a file imports, and those that they import in turn."""
    home = ROOT / "lns"
    seen, waiting = set(), [home / path]
    while waiting:
        path = waiting.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lns."):
                place = home.joinpath(*node.module.split(".")[1:])
                waiting += [place.with_suffix(".py"), place / "__init__.py"]
                waiting += [place / f"{alias.name}.py" for alias in node.names]
    return {str(path.relative_to(home)) for path in seen}


@pytest.mark.parametrize(
    ("kind", "module"),
    [
        ("train", "paper/qloss.py"), ("choose", "paper/qloss.py"), ("risk", "paper/risk.py"),
        ("rival", "paper/rivals/__init__.py"), ("cleanlab", "paper/recovery.py"),
        ("rates", "paper/protocols.py"),
    ],
)  # fmt: skip
def test_no_code_behind_a_result_is_left_out(kind, module):
    """Tests that whatever a unit imports counts for its hash, or is known to be harmless."""
    counted = OF_KIND[kind]
    # Solvers of a chip are imported, not used; what readers of data give is in the fingerprint of the data.
    elsewhere = ("embedding/", "datasets/")
    found = {name for name in imported(module) - HARMLESS if not name.startswith(elsewhere)}
    assert len(found) >= 10
    assert {name for name in found if not name.startswith(counted)} == set()


def test_fingerprints_tell_data_apart():
    """Tests that features and labels count, in dense and sparse data."""
    data = sheet(SOURCE).inside
    assert fingerprint(data) == fingerprint(data.take(range(len(data))))
    assert fingerprint(data) != fingerprint(sheet(SOURCE).outside)
    assert fingerprint(data) != fingerprint(replace(data, y=-data.y))


def test_units_are_done_once(cache):
    """Tests that a second run takes everything from the cache, and says so in the same order."""
    units = [replace(UNIT, noise_percent=noise) for noise in (10, 20, 30)]
    text = io.StringIO()
    bench = Bench(cache, at_once, 1, text)
    first = bench.results(units, "data", "a stage")
    assert [first[k]["noise"] for k in range(3)] == [10, 20, 30]
    assert "a stage: 3 of 3 units" in text.getvalue()
    assert bench.spent == 6.0

    def never(unit):
        raise AssertionError("done before")

    again = Bench(cache, never, 1, io.StringIO())
    assert again.results(units, "data", "a stage") == first
    assert again.spent == 6.0


def test_what_was_done_before_a_failure_is_kept(cache):
    """Tests that an error in one unit comes out, and results before it are not lost."""
    units = [replace(UNIT, noise_percent=noise) for noise in (10, 13)]
    cache.put(units[0], "data", {"noise": 10})
    with pytest.raises(RuntimeError, match="thirteen"):
        Bench(cache, at_once, 1, io.StringIO()).results(units, "data", "a stage")
    assert cache.get(units[0], "data") == {"noise": 10}
    assert cache.get(units[1], "data") is None


def test_a_unit_can_be_repeated():
    """Tests that everything but the time is the same again."""
    setting = next(s for s in PLANS["long-servedio"].settings() if not s.is_even)
    unit = Unit("train", SOURCE, 20, 0, settings=(setting.as_dict(),), plan=PLANS["long-servedio"])
    one, two = ({**run_unit(unit)["scores"][0], "seconds": 0} for _ in range(2))
    assert one == two
    assert one["errors"] == 0


def result_of(unit):
    """A made-up answer: the error of a setting is a number that only its values decide."""
    if unit.kind == "rates":
        return {"negative": 0.2, "positive": 0.0}
    if unit.kind == "risk":
        about = {"dataset": unit.source.name, "noise_percent": unit.noise_percent}
        return {"steps": [{"loss": "square", **about, "step": 0, "training_error_percent": 1, "risk": 1}]}
    if unit.kind == "cleanlab":
        found = {"injected": 10, "flagged": 8, "train_rows": 900}
        return {"ways": [{**found, "way": "default", "both": 5}, {**found, "way": "other", "both": 6}]}
    scores = []
    for setting in unit.settings:
        bad = sum(map(ord, str(sorted(setting.items(), key=str)))) % 40 + (unit.fold == 0)
        score = {"setting": setting, "errors": bad, "tests": 100, "noisy_wrong": [bad // 2, 9]}
        score |= {"noisy_tests": [50, 50], "train_rows": 900, "seconds": 0.1, "low": [30, 12]}
        scores.append(score)
    return {"scores": scores}


@pytest.mark.parametrize("plan", ["long-servedio", "web8"])
@pytest.mark.parametrize("rows", [900, 90_000])
def test_cells_train_what_they_chose_and_never_mix_protocols(rows, plan):
    """Tests the three steps of a cell, for small data and for data that is cut down for the choice."""
    cell = Cell(SOURCE, 20, PLANS[plan], Effort(folds=4), rows)
    first = cell.first()
    assert all(unit.max_rows is None or unit.max_rows == 20_000 for unit in first)
    cell.hear_first(first, list(map(result_of, first)))
    second = cell.second()
    cell.hear_second(second, list(map(result_of, second)))
    third = cell.third()
    cell.hear_third(third, list(map(result_of, third)))
    fourth = cell.fourth()
    assert {unit.fold for unit in fourth} == {HELD_OUT}
    for units in (second, third, fourth):
        assert len({str(unit.content()) for unit in units}) == len(units)
        assert all(unit.max_rows is None for unit in units)
    folds, flips = cell.rows(fourth, list(map(result_of, fourth)))

    groups = {}
    for row in folds:
        groups.setdefault((row["protocol"], row["method"]), []).append(row)
    assert len(groups) == 3 * 12
    for (protocol, _), group in groups.items():
        places = [row["fold"] for row in group]
        assert places == ([0, 1, 2, 3] if protocol == "paper" else [HELD_OUT])
        assert len({row["lam"] for row in group}) == 1
    mean = {
        name: sum(row["test_error_percent"] for row in groups["paper", name])
        for name in (Q_LOSS, Q_PER_CLASS)
    }
    assert mean[Q_PER_CLASS] <= mean[Q_LOSS]
    assert all(row["q_neg"] == row["q_pos"] for row in folds if row["method"] == Q_LOSS)
    assert {row["method"] for row in flips} == {Q_LOSS, Q_PER_CLASS, CLEANLAB, CLEANLAB_BEST}
    assert [row["both"] for row in flips if row["method"] in (CLEANLAB, CLEANLAB_BEST)] == [5, 6]


def test_the_honest_protocol_does_not_see_clean_labels():
    """Tests that its choices stay as they are when all clean errors are turned around."""

    def chosen(change):
        cell = Cell(SOURCE, 20, PLANS["web8"], Effort(folds=3), 900)
        for units, hear in ((cell.first(), cell.hear_first), (None, cell.hear_second)):
            units = cell.second() if units is None else units
            results = list(map(result_of, units))
            for result in results:
                for score in result.get("scores", ()):
                    score["errors"] = change(score["errors"])
            hear(units, results)
        methods, purposes = (Q_LOSS, Q_PER_CLASS, "logistic"), (KNOWN, ESTIMATED)
        return [cell.honest(method, purpose) for method in methods for purpose in purposes], cell.for_paper(
            Q_LOSS
        )

    (honest, paper), (same, other) = chosen(lambda errors: errors), chosen(lambda errors: 100 - errors)
    assert honest == same
    assert paper != other


# ---- the command -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--dataset", "covertyp"], "did you mean 'covertype'?"),
        (["--noise", "0,60"], "must be percentages below 50"),
        (["--folds", "11"], "must be a number from 1 to 10"),
        (["--address", "here:1"], "--address goes with --backend ray"),
    ],
)
def test_wrong_usage_is_one_line(words, says, capsys):
    """Tests what mistyped options are answered with."""
    assert cli.main(["paper", *words]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


def test_offline_without_data_is_one_sentence(tmp_path, monkeypatch, capsys):
    """Tests that a missing file is named before any work is done, with where it was looked for."""

    def offline(url, timeout):
        raise URLError("network is down")

    monkeypatch.setattr(origin, "EXTRA", ())
    monkeypatch.setattr(remote, "urlopen", offline)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LNS_DATA_DIR", raising=False)
    out = tmp_path / "out"
    call = ["paper", "--dataset", "long-servedio,adult9", "--out", str(out), "--data-dir", str(tmp_path)]
    assert cli.main(call) == 2
    said = capsys.readouterr().err
    assert "a9a.gz" in said
    assert str(tmp_path) in said
    assert said.count("\n") == 1
    assert not (out / "folds.csv").exists()


@pytest.fixture
def made_up_work(monkeypatch):
    """Runs whose units are answered at once, with made-up results."""

    def submit(unit):
        future: Future = Future()
        future.set_result(result_of(unit))
        return future

    @contextmanager
    def workers(*_):
        yield submit

    monkeypatch.setattr(origin, "EXTRA", ())
    monkeypatch.setattr(paper, "open_workers", workers)


def test_the_page_grows_with_every_data_set(tmp_path, monkeypatch, made_up_work):
    """Tests that it is written after each data set, with the risks from the beginning, and its call noted."""
    found = []

    def look(out):
        calls = json.loads((out / "run.json").read_text())["calls"]
        found.append(
            (
                {row["dataset"] for row in table(out / "folds.csv")},
                {row["dataset"] for row in table(out / "risk.csv")},
                [call["dataset"] for call in calls],
            )
        )

    monkeypatch.setattr(paper, "write_page", look)
    options = {"out": tmp_path, "effort": Effort(2, 20_000, True)}
    paper.run(paper.Options(**options, datasets=("mease-wyner", "long-servedio"), noises=(15,)))
    both = {"long-servedio", "mease-wyner"}
    assert found == [
        ({"mease-wyner"}, both, ["mease-wyner"]),
        (both, both, ["mease-wyner", "long-servedio"]),
    ]
    paper.run(paper.Options(**options, datasets=("mease-wyner",), noises=(20,)))
    rows = {(row["dataset"], row["noise_percent"]) for row in table(tmp_path / "folds.csv")}
    assert rows == {("mease-wyner", "15"), ("long-servedio", "15"), ("mease-wyner", "20")}


def test_the_commit_is_that_of_the_beginning(tmp_path, monkeypatch, made_up_work):
    """Tests that a checkout which changes during the run does not change what is noted."""
    heads = ["before"]
    monkeypatch.setattr(origin, "commit", lambda home: heads[-1])
    monkeypatch.setattr(paper, "write_page", lambda out: heads.append("after"))
    names = ("mease-wyner", "long-servedio")
    paper.run(paper.Options(out=tmp_path, datasets=names, noises=(0,), effort=Effort(2, 20_000, True)))
    calls = json.loads((tmp_path / "run.json").read_text())["calls"]
    assert [call["commits"] for call in calls] == [["before"], ["before"]]


FOLDS = "dataset,noise_percent,protocol,method,fold,test_error_percent,q_neg,q_pos,lam,t,interval,objective"
FLIPS = "dataset,noise_percent,method,injected,flagged,both,train_rows\n"
CALL = {
    "dataset": "web8", "noise_percent": [0], "command": "x", "seed": 0, "commits": [], "wall_seconds": 1,
    "workers": 1, "folds": 3, "rows_for_choice": 1, "quick": True, "estimated_rates": {}, "flipped": {},
    "versions": {},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("folds.csv", "", "no column 'dataset'"),
        ("folds.csv", "a,b\n1,2\n", "no column 'dataset'"),
        ("folds.csv", FOLDS, "no column 'train_rows'"),
        ("folds.csv", f"{FOLDS},train_rows,seconds\nweb8,0,pap", "line 2 has too many or too few fields"),
        ("folds.csv", f"{FOLDS},train_rows,seconds\niris,0,paper" + "," * 11, "'iris' is no data set"),
        ("folds.csv", f"{FOLDS},train_rows,seconds\nweb8,x,paper" + "," * 11, "is damaged"),
        ("folds.csv", b"\xff\xfe\x00", "is damaged"),
        ("folds.csv", None, "cannot be read"),
        ("flips.csv", "dataset,noise_percent\n", "no column 'method'"),
        ("flips.csv", f"{FLIPS}web8,20,cleanlab,1,2,3\n", "line 2 has too many or too few fields"),
        ("flips.csv", f"{FLIPS}web8,20,cleanlab,1,2,3,4,5\n", "line 2 has too many or too few fields"),
        ("flips.csv", f"{FLIPS}web8,20,cleanlab,1,2,three,4\n", "'three'"),
        ("risk.csv", "step\n1\n", "no column 'loss'"),
        ("run.json", "", "is damaged"),
        ("run.json", "[]", "no list 'calls'"),
        ("run.json", '{"seed": 0}', "no list 'calls'"),
        ("run.json", '{"calls": {}}', "no list 'calls'"),
        ("run.json", '{"calls": [1]}', "a call is not an object"),
        ("run.json", '{"calls": [{}]}', "no proper 'dataset'"),
        ("run.json", json.dumps({"calls": [{**CALL, "noise_percent": 0}]}), "no proper 'noise_percent'"),
        ("run.json", json.dumps({"calls": [{**CALL, "versions": None}]}), "no proper 'versions'"),
        ("run.json", json.dumps({"calls": [{**CALL, "dataset": "iris"}]}), "'iris' is no data set"),
        ("cache", "", "cache is not a folder"),
        ("figures", "", "figures is not a folder"),
    ],
)
def test_foreign_and_damaged_files_are_named_before_work_begins(
    name, content, says, tmp_path, monkeypatch, capsys
):
    """Tests that a file which cannot be added to is named, with what to do, and stays as it is."""

    def never(*args):
        raise AssertionError("this comes later")

    monkeypatch.setattr(origin, "EXTRA", ())
    monkeypatch.setattr(paper, "sheet", never)
    monkeypatch.setattr(paper, "open_workers", never)
    path = tmp_path / name
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        before = path.read_bytes()
    assert cli.main(["paper", "--dataset", "long-servedio", "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert str(path) in said
    assert "move it away or give another --out" in said
    assert said.count("\n") == 1
    assert content is None or path.read_bytes() == before


def test_the_files_of_a_run_are_accepted(tmp_path, monkeypatch, made_up_work):
    """Tests that a call adds to the files of earlier ones, and keeps what they have noted."""
    monkeypatch.setattr(paper, "write_page", lambda out: None)
    out = write_made_up_run(tmp_path, ("web8",), (0, 20))
    before = table(out / "folds.csv")
    effort = Effort(2, 20_000, True)
    paper.run(paper.Options(out=out, datasets=("long-servedio",), noises=(20,), effort=effort))
    after = table(out / "folds.csv")
    assert after[: len(before)] == before
    assert {row["dataset"] for row in after[len(before) :]} == {"long-servedio"}
    calls = json.loads((out / "run.json").read_text())["calls"]
    assert [call["dataset"] for call in calls] == ["web8", "long-servedio"]


def start(out, *more):
    """A small run in a process of its own."""
    call = [sys.executable, "-m", "lns", "paper", "--quick", "--dataset", "long-servedio", "--noise", "20"]
    place = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [*call, "--folds", "2", "--workers", "2", "--out", str(out), *more],
        env={**os.environ, "PYTHONPATH": place}, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def table(path):
    with path.open(newline="") as stream:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(stream)]


@pytest.mark.slow
def test_a_killed_run_goes_on(tmp_path):
    """Tests runs killed without warning: no worker stays, nothing is done twice, the results are the same."""
    pytest.importorskip("cleanlab")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    process = start(whole)
    assert process.wait(600) == 0, process.stderr.read()
    for least in (3, 12):
        process = start(broken)
        while len(list((broken / "cache").glob("[0-9a-f]*.json"))) < least and process.poll() is None:
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.wait()
    before = {path: path.stat().st_mtime_ns for path in (broken / "cache").glob("[0-9a-f]*.json")}
    assert len(before) >= 12
    process = start(broken)
    assert process.wait(600) == 0, process.stderr.read()
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in before.items())
    assert table(broken / "folds.csv") == table(whole / "folds.csv")
    assert table(broken / "flips.csv") == table(whole / "flips.csv")
    assert {"results.md", "results.html", "risk.csv", "run.json"} <= {p.name for p in broken.iterdir()}
    about = json.loads((broken / "run.json").read_text())
    (call,) = about["calls"]
    assert call["command"].startswith("lns paper --dataset long-servedio --noise 20")
    assert call["wall_seconds"] > 0


def test_every_call_keeps_the_notes_of_the_others(tmp_path):
    """Tests that a call replaces the notes on the noise levels that it ran, and no others."""
    for name, noises in (("web8", (0, 20, 40)), ("adult9", (20,)), ("web8", (20, 30))):
        paper._note(paper.Options(out=tmp_path, noises=noises, seed=len(noises)), name, 1.0, ["c0ffee"], [])
    calls = json.loads((tmp_path / "run.json").read_text())["calls"]
    assert [(one["dataset"], one["noise_percent"], one["seed"]) for one in calls] == [
        ("web8", [0, 40], 3),
        ("adult9", [20], 1),
        ("web8", [20, 30], 2),
    ]


def test_the_commands_of_the_page_are_understood():
    """Tests every call of ``lns paper`` in the guide; running them takes from minutes to hours."""
    calls = [
        line.split()[1:]
        for line in (ROOT / "docs" / "paper.md").read_text().splitlines()
        if line.startswith("lns ")
    ]
    assert len(calls) >= 3
    for words in calls:
        assert cli.parse(words).out == words[words.index("--out") + 1]
