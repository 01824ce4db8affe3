"""Tests of run folders: what is written when, and what is left of a run that ends badly."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from run_cases import FLIPS, SHORT, events, mail

import lns
from lns.commands import training
from lns.datasets.split import subsample_rows, train_test_split
from lns.errors import DataError
from lns.progress import Callbacks
from lns.report.story import Story
from lns.run_folder import describe_data, read_config


def test_a_finished_folder_has_all_of_it(finished_run):
    """Tests the files, and that nothing half-written is left."""
    names = {path.name for path in finished_run.iterdir() if not path.name.startswith("run.ckpt")}
    assert names == {"config.json", "events.jsonl", "model.json", "margins.json", "flagged.csv"}


def test_the_configuration_names_options_data_and_versions(finished_run):
    """Tests config.json."""
    config = read_config(finished_run)
    assert config["options"]["noise"] == 0.2
    assert config["options"]["q"] == [-1.0, 0.0]
    assert config["options"]["time-limit"] == "none"
    assert config["data"]["name"] == "long-servedio"
    assert config["data"]["sha256"] == describe_data(lns.load_dataset("long-servedio"))["sha256"]
    assert (config["data"]["training_rows"], config["data"]["test_rows"]) == (210, 90)
    assert config["versions"]["numpy"] == np.__version__


def test_the_events_are_a_start_the_rounds_and_an_end(finished_run):
    """Tests events.jsonl against what --json says."""
    start, *rounds, end = events(finished_run)
    assert (start["event"], end["event"]) == ("start", "end")
    assert [one["round"] for one in rounds] == [0, 1, 2]
    assert end["rounds"] == 3
    assert end["stop_reason"] == "max_rounds"
    assert rounds[-1]["best"] == end["objective"] <= start["objective"]
    kinds = {one["kind"]: one["variables"] for record in rounds for one in record["neighbourhoods"]}
    assert kinds["walk"] == 0
    assert kinds["window"] > 0


def test_model_margins_and_table_are_those_of_the_result(finished_run):
    """Tests the files of the best solution against the data, rows counted from 1."""
    data = lns.load_dataset("long-servedio")
    part = subsample_rows(data, 300)
    rows = part[train_test_split(data.take(part))[0]]
    y, flipped = lns.flip_labels(data.y[rows], rate=0.2)
    model = lns.load_model(finished_run)
    margins = y * model.decision_function(data.X[rows])
    flagged = margins <= np.where(y < 0, -1.0, 0.0)
    with (finished_run / "flagged.csv").open() as stream:
        table = list(csv.DictReader(stream))
    assert sorted(int(line["row"]) for line in table) == (rows[flagged] + 1).tolist()
    assert sum(int(line["flipped"]) for line in table) == (flagged & flipped).sum()
    summary = json.loads((finished_run / "margins.json").read_text())
    assert summary["flagged"] == flagged.sum() == events(finished_run)[-1]["flagged"]
    assert summary["suspicious"][0]["margin"] == pytest.approx(
        margins[np.argmin(margins - np.where(y < 0, -1.0, 0.0))], abs=1e-6
    )


def test_a_file_keeps_its_names_classes_and_place(mail_run):
    """Tests that the folder of a file can be used from anywhere."""
    folder, data = mail_run
    config, model = read_config(folder), lns.load_model(folder)
    assert config["options"]["dataset"] == str(data.absolute())
    assert model.feature_names == ("words", "links")
    assert model.classes == ("no", "yes")
    assert model.span.tolist() == [6.0, 1000.0]
    assert json.loads((folder / "margins.json").read_text())["flipped"] is None


def test_the_folder_changes_nothing_of_the_run(finished_run, run):
    """Tests that the same command without --out gives the same solution."""
    values = json.loads(run("train", *SHORT, *FLIPS, "--json")[1])
    end = events(finished_run)[-1]
    assert {key: end[key] for key in values if key not in ("wall_time", "peak_memory_mb")} == {
        key: values[key] for key in values if key not in ("wall_time", "peak_memory_mb")
    }


def test_the_checksum_tells_data_apart(mail_run, tmp_path):
    """Tests that a changed value, label or storage changes it, and the name does not."""
    data = lns.load_dataset(mail_run[1])
    same = lns.Dataset("other", data.X, data.y)
    X = data.X.copy()
    X[3, 1] += 1
    assert describe_data(same)["sha256"] == describe_data(data)["sha256"]
    for other in (lns.Dataset("x", X, data.y), lns.Dataset("x", data.X, -data.y)):
        assert describe_data(other)["sha256"] != describe_data(data)["sha256"]


# ---- runs that end badly ---------------------------------------------------------------------------------


class Watch(Callbacks):
    """Does something at a round."""

    def __init__(self, round, action):
        self.round, self.action = round, action

    def on_round(self, record):
        if record.round == self.round:
            self.action()


def raising(error):
    """A function that raises."""

    def function():
        raise error

    return function


def with_watch(monkeypatch, watch):
    """Let every search be watched."""
    solve = lns.solve

    def watched(problem, *, callbacks, **options):
        return solve(problem, callbacks=[*callbacks, watch], **options)

    monkeypatch.setattr(lns, "solve", watched)


def test_ctrl_c_leaves_a_usable_folder(run, monkeypatch, tmp_path):
    """Tests code, message and files of an interrupted run."""
    with_watch(monkeypatch, Watch(1, raising(KeyboardInterrupt())))
    code, out, err = run("train", *SHORT, "--out", tmp_path / "r", "--json")
    assert code == 130
    assert json.loads(out)["stop_reason"] == "interrupted"
    assert "interrupted after 2 rounds; " in err
    assert str(tmp_path / "r") in err
    assert Story(tmp_path / "r").status == "interrupted"
    assert lns.load_model(tmp_path / "r").num_features == 21
    assert run("report", tmp_path / "r")[0] == 0


def test_ctrl_c_without_a_folder_says_that_nothing_is_kept(run, monkeypatch):
    """Tests the hint."""
    with_watch(monkeypatch, Watch(0, raising(KeyboardInterrupt())))
    code, _, err = run("train", *SHORT, "--json")
    assert code == 130
    assert "nothing was saved (--out DIR keeps a run)" in err


def test_an_error_is_written_down(run, monkeypatch, tmp_path):
    """Tests that the folder says why the run ended, and that it has a report."""
    with_watch(monkeypatch, Watch(1, raising(RuntimeError("the chip\nis on fire"))))
    code, _, err = run("train", *SHORT, "--out", tmp_path / "r", "--json")
    assert (code, err.count("\n")) == (1, 1)
    story = Story(tmp_path / "r")
    assert story.status == "failed"
    assert story.end["error"] == "RuntimeError: the chip is on fire"
    assert len(story.rounds) == 2
    assert run("report", tmp_path / "r")[0] == 0
    assert "the chip is on fire" in (tmp_path / "r" / "report.html").read_text()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_killed_run_leaves_rounds_and_model(tmp_path, run):
    """Tests a process that is killed without warning."""
    folder = tmp_path / "r"
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "lns",
            "train",
            "--rows",
            "300",
            "--time-limit",
            "120",
            "--out",
            str(folder),
            "--json",
        ],
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 100
    while not (folder / "margins.json").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    story = Story(folder)
    assert story.status == "unfinished"
    assert story.rounds
    assert lns.load_model(folder).num_features == 21
    assert run("report", folder)[0] == 0
    assert "was killed" in (folder / "report.html").read_text()


# ---- going on --------------------------------------------------------------------------------------------


@pytest.fixture
def resumed(monkeypatch):
    """A stand-in for `lns.resume` that searches anew with other limits, and what it was called with."""
    calls = []

    def resume(path, *, problem, time_limit, max_rounds, target, **where):
        calls.append(SimpleNamespace(path=path, time_limit=time_limit, max_rounds=max_rounds, **where))
        return lns.solve(problem, time_limit=time_limit, max_rounds=max_rounds, callbacks=where["callbacks"])

    monkeypatch.setattr(lns, "resume", resume, raising=False)
    return calls


@pytest.fixture
def stopped(finished_run, tmp_path):
    """A copy of a folder with a run to go on with."""
    folder = tmp_path / "stopped"
    shutil.copytree(finished_run, folder)
    (folder / "run.ckpt").touch()
    return folder


def test_a_run_goes_on_with_its_own_options(run, resumed, stopped):
    """Tests that --out and --resume are enough, that limits may change, and where the checkpoint is."""
    folder = stopped
    before = (folder / "config.json").read_text()
    code, out, err = run("train", "--out", folder, "--resume", "--max-rounds", "4", "--json")
    assert code == 0, err
    values = json.loads(out)
    assert (values["examples"], values["noise"], values["q"]) == (210, 0.2, {"-1": -1.0, "1": 0.0})
    assert resumed[0].path == str(folder / "run.ckpt")
    assert (resumed[0].time_limit, resumed[0].max_rounds) == (None, 4)
    assert (folder / "config.json").read_text() == before
    story = Story(folder)
    assert story.starts == 2
    assert [one.number for one in story.rounds] == [0, 1, 2, 3]
    assert story.status == "finished"


@pytest.mark.parametrize(
    "words",
    [["web8"], ["--q", "-0.4"], ["--solver", "sa"], ["--seed", "1"], ["--solver-option", "num_reads=3"]],
)
def test_what_makes_a_run_cannot_change(run, resumed, stopped, words):
    """Tests that a run is not continued as another one."""
    code, out, err = run("train", *words, "--out", stopped, "--resume")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "cannot change when a run goes on" in err
    assert not resumed


def test_the_same_options_may_be_said_again(run, resumed, tmp_path, monkeypatch):
    """Tests that the whole command with --resume goes on, too, with a file named from its own folder."""
    mail(tmp_path / "mail.csv")
    monkeypatch.chdir(tmp_path)
    words = [
        "train",
        "mail.csv",
        "--q",
        "-1,0",
        "--max-rounds",
        "2",
        "--time-limit",
        "none",
        "--out",
        "r",
        "--json",
    ]
    assert run(*words)[0] == 0
    (tmp_path / "r" / "run.ckpt").touch()
    code, _, err = run(*words, "--resume")
    assert code == 0, err


def test_a_run_without_a_folder_goes_on_from_its_checkpoint(run, resumed, tmp_path):
    """Tests --checkpoint and --resume without --out."""
    path = tmp_path / "x.ckpt"
    path.touch()
    assert run("train", *SHORT, "--checkpoint", path, "--resume", "--workers", "1", "--json")[0] == 0
    assert resumed[0].path == str(path)
    assert resumed[0].workers == 1


def test_without_a_checkpoint_there_is_nothing_to_go_on_from(run, stopped):
    """Tests the remedy."""
    (stopped / "run.ckpt").unlink()
    code, _, err = run("train", "--out", stopped, "--resume")
    assert code == 2
    assert "There is no checkpoint" in err
    assert "with another --out" in err


def test_a_full_folder_is_not_written_to(run, finished_run):
    """Tests that an older run is safe, and that --resume is offered."""
    before = sorted((path.name, path.stat().st_mtime_ns) for path in finished_run.iterdir())
    code, _, err = run("train", "--out", finished_run)
    assert code == 2
    assert "is not empty: name another one or add --resume" in err
    assert sorted((path.name, path.stat().st_mtime_ns) for path in finished_run.iterdir()) == before


def test_backend_and_checkpoint_are_passed_on(monkeypatch, tmp_path):
    """Tests what reaches `lns.solve`."""
    got = {}
    monkeypatch.setattr(lns, "solve", lambda problem, **options: got.update(options))
    from lns import cli

    words = ["train", "--backend", "ray", "--address", "head:1", "--workers", "3", "--checkpoint", "x.ckpt"]
    training._search(cli.parse(words), None, [], 30.0)
    assert (got["backend"], got["address"], got["workers"], got["checkpoint"]) == (
        "ray",
        "head:1",
        3,
        "x.ckpt",
    )
    got.clear()
    training._search(cli.parse(["train"]), None, [], 30.0)
    assert (got["backend"], got["checkpoint"]) == ("local", None)
    assert got["solver_options"] == {}


# ---- reading ---------------------------------------------------------------------------------------------


def copy_of(folder, to, lines):
    """A folder with some events, the last of them perhaps cut off."""
    to.mkdir()
    (to / "config.json").write_text((folder / "config.json").read_text())
    (to / "events.jsonl").write_text(lines)
    return to


def test_a_growing_folder_is_read_bit_by_bit(finished_run, tmp_path):
    """Tests that a line that is being written is left for later, and nothing is counted twice."""
    text = (finished_run / "events.jsonl").read_text()
    folder = copy_of(finished_run, tmp_path / "r", "")
    story = Story(folder)
    assert (story.start, story.rounds, story.status) == (None, [], "unfinished")
    for end in range(0, len(text) + 1, 97):
        (folder / "events.jsonl").write_text(text[:end])
        story.read()
        assert len(story.rounds) == min(3, max(0, text[:end].count("\n") - 1))
    (folder / "events.jsonl").write_text(text)
    story.read()
    assert story.rounds == Story(finished_run).rounds
    assert story.status == "finished"


@pytest.mark.parametrize("clock", [0.0, 5.0], ids=["clock begins anew", "clock goes on"])
def test_rounds_lost_with_a_process_are_replaced(finished_run, tmp_path, clock):
    """Tests that a resumed run repeats rounds in the story once, and that time does not go back."""
    start, *rounds, _ = events(finished_run)
    rounds = [{**one, "seconds": 1.0 + one["round"]} for one in rounds]
    again = [{**one, "seconds": clock + 0.5 + k} for k, one in enumerate(rounds[2:])]
    lines = [
        start,
        *rounds,
        {**start, "resumed": True},
        *again,
        {**again[-1], "round": 3, "seconds": clock + 2.5},
    ]
    folder = copy_of(finished_run, tmp_path / "r", "".join(json.dumps(line) + "\n" for line in lines))
    story = Story(folder)
    assert [one.number for one in story.rounds] == [0, 1, 2, 3]
    assert [one.seconds for one in story.rounds] == ([1, 2, 5.5, 7.5] if clock else [1, 2, 2.5, 4.5])


def test_a_half_written_line_is_dropped_when_the_run_goes_on(run, resumed, stopped):
    """Tests that the last words of a killed process do not spoil the events."""
    folder = stopped
    with (folder / "events.jsonl").open("a") as stream:
        stream.write('{"event": "rou')
    assert run("train", "--out", folder, "--resume", "--json")[0] == 0
    assert [one["event"] for one in events(folder)].count("start") == 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", "{", "config.json is damaged: it is not JSON"),
        ("config.json", "[]", "is not a JSON object"),
        ("config.json", '{"format": 9}', "has the format 9; this version reads 1: update qlns"),
        ("events.jsonl", '{"event": "start", "objective": 1}\n{]\n', "Line 2 of .* is damaged"),
        ("model.json", "{", "model.json is damaged"),
    ],
)
def test_damaged_folders_are_errors_in_one_sentence(finished_run, tmp_path, name, content, message):
    """Tests what `lns report` says."""
    folder = copy_of(finished_run, tmp_path / "r", "")
    (folder / name).write_text(content)
    with pytest.raises(DataError, match=message):
        Story(folder)
