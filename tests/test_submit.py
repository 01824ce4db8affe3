"""Tests of `lns submit`: without a cluster what is sent and how it ends, then on a cluster of its own."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ray_head import TREE, environment, ray_head, run_lns

from lns import cli
from lns.backends.jobs import Ending, Jobs, _Lines
from lns.commands import submit
from lns.errors import ClusterError

RESULT = json.dumps({"objective": 0.25, "stop_reason": "max_rounds"})


def words(*given):
    """The words of `lns train` that a command line becomes."""
    return submit.training_words(cli.build_parser().parse_args(cli.join_negative(["submit", *given])))


class FakeJobs:
    """A cluster that plays a prepared job."""

    address = "http://head:8265"

    def __init__(self, lines=(), ending=None, interrupt=False):
        self.lines, self.ending, self.interrupt = lines, ending or Ending("SUCCEEDED", 0, ""), interrupt
        self.stopped = []
        self.submitted = None

    def submit(self, command, *, working_dir, variables):
        self.submitted = command, working_dir, variables
        return "job-1"

    def follow(self, job, hear):
        for line in self.lines:
            hear(line)
        if self.interrupt:
            raise KeyboardInterrupt
        return self.ending

    def stop(self, job):
        self.stopped.append(job)


@pytest.fixture
def play(monkeypatch):
    """Run `lns submit` against a prepared job; the exit code and the fake."""

    def run(*given, **job):
        fake = FakeJobs(**job)
        monkeypatch.setattr("lns.backends.jobs.Jobs", lambda address: fake)
        return cli.main(["submit", *given]), fake

    return run


class TestWords:
    """What is passed on to `lns train`."""

    def test_options_are_passed_on_as_they_were_given(self):
        """Tests values of every kind, negative numbers included, and that the job's own options stay here."""
        given = ["covertype", "--q", "-0.7,0", "--noise", "0.4", "--time-limit", "none", "--json"]
        sent = words(*given, "--no-wait", "--address", "http://head:8265", "--env", "A=b")
        own = [word for word in sent if not re.match("--(backend|address)", word)]
        assert own == ["covertype", "--noise=0.4", "--q=-0.7,0", "--time-limit=none", "--json"]

    def test_nothing_is_invented(self):
        """Tests that defaults are left to the cluster."""
        assert [word for word in words() if not re.match("--(backend|address)", word)] == []

    def test_the_training_that_is_sent_is_the_one_asked_for(self):
        """Tests that both command lines mean the same to `lns train`."""
        given = ["mease-wyner", "--q=-1,0", "--weight-range=0,8", "--max-rounds", "7", "--seed", "3"]
        parser = cli.build_parser()
        sent = parser.parse_args(["train", *words(*given)])
        asked = parser.parse_args(["train", *given])
        for name in ("dataset", "q", "weight_range", "max_rounds", "seed", "lam", "time_limit"):
            assert getattr(sent, name) == getattr(asked, name)

    @pytest.mark.parametrize(
        ("given", "sent"),
        [
            ([], ["--backend=ray", "--address=auto"]),
            (["--backend", "ray", "--address", "http://head:8265"], ["--backend=ray", "--address=auto"]),
            (["--backend", "local"], ["--backend=local"]),
            (
                ["--option=a=1", "--option=b=-2"],
                ["--option=a=1", "--option=b=-2", "--backend=ray", "--address=auto"],
            ),
        ],
    )
    def test_rounds_run_on_the_cluster_of_the_job(self, monkeypatch, given, sent):
        """Tests that a job uses the whole cluster unless told otherwise, and options given several times."""

        def add_parser(commands):
            parser = commands.add_parser("train", allow_abbrev=False)
            parser.add_argument("--option", action="append", default=[])
            parser.add_argument("--backend", choices=("local", "ray"), default="local")
            parser.add_argument("--address")
            return parser

        monkeypatch.setattr("lns.commands.train.add_parser", add_parser)
        assert words(*given) == sent

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (["--q", "3"], "argument --q: must be at most 0"),
            (["--nois", "0.2"], "did you mean '--noise'"),
            (["--on-interrupt", "pray"], "there is no 'pray'"),
            (["--env", "novalue"], "--env must be NAME=VALUE"),
            (["--attach", "job-1", "--seed", "1"], "--attach follows a job"),
        ],
    )
    def test_mistakes_are_found_before_anything_is_sent(self, play, capsys, given, message):
        """Tests that wrong options end with one line and code 2."""
        code, fake = play(*given)
        assert code == 2
        assert fake.submitted is None
        assert message in capsys.readouterr().err


class TestJob:
    """How a job is started, followed and ended."""

    def test_the_command(self, play):
        """Tests that the cluster needs no more than an interpreter with the package."""
        _, fake = play("my data.csv", "--python", "/opt/py", "--working-dir", ".", "--env", "A=b=c")
        command, folder, variables = fake.submitted
        assert command.startswith("/opt/py -m lns train 'my data.csv'")
        assert (folder, variables) == (".", {"A": "b=c"})

    def test_json_is_alone_on_standard_output(self, play, capsys):
        """Tests that everything else that the job prints goes to standard error."""
        code, _ = play("--json", lines=["Compiling", RESULT, "{not json", '{"other": 1}'])
        printed = capsys.readouterr()
        assert code == 0
        assert printed.out == RESULT + "\n"
        assert printed.err.splitlines() == ["Compiling", "{not json", '{"other": 1}']

    def test_without_json_everything_is_shown(self, play, capsys):
        """Tests that progress and summary appear as the job prints them."""
        assert play(lines=["objective 0.3", "flagged 7"])[0] == 0
        assert capsys.readouterr().out == "objective 0.3\nflagged 7\n"

    def test_no_result_is_a_failure(self, play, capsys):
        """Tests that a job that ends well without an answer is not called done."""
        assert play("--json", lines=["bye"])[0] == 1
        assert "ended without a result" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("ending", "code"),
        [
            (Ending("SUCCEEDED", 0, ""), 0),
            (Ending("FAILED", 1, "failed"), 1),
            (Ending("FAILED", 2, "failed"), 2),
            (Ending("FAILED", 130, "failed"), 130),
            (Ending("FAILED", -9, "killed"), 1),
            (Ending("FAILED", None, "no environment"), 1),
            (Ending("STOPPED", None, "stopped"), 130),
        ],
    )
    def test_exit_codes_are_those_of_training(self, play, ending, code):
        """Tests every way in which a job ends."""
        assert play(ending=ending)[0] == code

    def test_a_cluster_without_the_package(self, play, capsys):
        """Tests that the remedy is named."""
        play(lines=["/usr/bin/python: No module named lns"], ending=Ending("FAILED", 1, "It failed."))
        assert "Install qlns on the cluster" in capsys.readouterr().err
        play(ending=Ending("FAILED", 127, "It failed."))
        assert "--python" in capsys.readouterr().err

    def test_no_wait(self, play, capsys):
        """Tests that the name of the job is printed and nothing is followed."""
        assert play("--no-wait", interrupt=True)[0] == 0
        assert capsys.readouterr().out == "job-1\n"

    def test_attach(self, play, capsys):
        """Tests that a job can be followed again, without a new one."""
        code, fake = play("--attach", "job-1", "--json", lines=[RESULT])
        assert (code, fake.submitted, capsys.readouterr().out) == (0, None, RESULT + "\n")

    @pytest.mark.parametrize(("choice", "stopped"), [("stop", ["job-1"]), ("leave", []), ("ask", ["job-1"])])
    def test_an_interrupt(self, play, monkeypatch, choice, stopped):
        """Tests Ctrl-C, with nobody there to be asked."""
        monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
        code, fake = play("--on-interrupt", choice, interrupt=True)
        assert (code, fake.stopped) == (130, stopped)

    @pytest.mark.parametrize(("answer", "stopped"), [("y\n", ["job-1"]), ("\n", []), ("n\n", [])])
    def test_an_interrupt_asks(self, play, monkeypatch, answer, stopped):
        """Tests that only a yes stops the job."""

        class Terminal:
            isatty = staticmethod(lambda: True)
            readline = staticmethod(lambda: answer)

        monkeypatch.setattr(sys, "stdin", Terminal)
        assert play(interrupt=True)[1].stopped == stopped


class TestConnection:
    """Nobody there, and lines over a connection that breaks."""

    @pytest.mark.parametrize(
        ("address", "message"),
        [
            (
                "http://127.0.0.1:9",
                "There is no Ray dashboard at http://127.0.0.1:9 .*--address http://HEAD:8265",
            ),
            ("ftp://head", "looks like http://127.0.0.1:8265"),
            ("http://head:port", "looks like http://127.0.0.1:8265"),
        ],
    )
    def test_nobody_there(self, address, message):
        """Tests that it is said at once, with what to check."""
        with pytest.raises(ClusterError, match=message):
            Jobs(address)

    def test_the_command_says_it_in_one_line(self, capsys):
        """Tests the exit code and the line."""
        assert cli.main(["submit", "--address", "127.0.0.1:9"]) == 1
        assert len(capsys.readouterr().err.strip().splitlines()) == 1

    def test_lines_are_heard_once(self):
        """Tests that after a broken connection the text goes on where it was."""
        heard = []
        lines = _Lines(heard.append)
        lines.add("one\ntw")
        lines.start_over()
        lines.add("one\n")
        lines.add("two\nthr")
        lines.add("ee")
        lines.finish()
        assert heard == ["one", "two", "three"]


@pytest.fixture(scope="module")
def head():
    """Dashboard and cluster."""
    with ray_head() as addresses:
        yield addresses


@pytest.mark.ray
@pytest.mark.slow
class TestCluster:
    """On a cluster started with the `ray` command, with a token."""

    TRAINING = ("long-servedio", "--noise=0.2", "--max-rounds=5", "--time-limit=none", "--seed=4", "--json")

    def test_the_result_is_that_of_a_local_run(self, head):
        """Tests that the same seed and rounds give the same classifier, here and there."""
        local = run_lns("train", *self.TRAINING)
        job = run_lns("submit", *self.TRAINING, "--address", head[0])
        assert job.returncode == 0, job.stderr
        here, there = (json.loads(done.stdout) for done in (local, job))
        for key in ("objective", "test_error", "flagged", "rounds", "accepted"):
            assert here[key] == there[key]

    def test_a_wrong_token(self, head):
        """Tests that the remedy is named, and the token is not."""
        done = run_lns("submit", "--address", head[0], RAY_AUTH_TOKEN="wrong" * 7)
        assert done.returncode == 1
        assert "ray get-auth-token" in done.stderr
        assert "wrong" not in done.stderr

    def test_a_token_in_a_file_is_found(self, head, tmp_path):
        """Tests that a token in its usual place is sent without being told to."""
        (tmp_path / ".ray").mkdir()
        (tmp_path / ".ray" / "auth_token").write_text(environment()["RAY_AUTH_TOKEN"])
        variables = {name: value for name, value in environment().items() if not name.startswith("RAY_")}
        command = [sys.executable, "-m", "lns", "submit", "--no-wait", "--address", head[0]]
        done = subprocess.run(
            command, env={**variables, "HOME": str(tmp_path)}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr

    def test_bad_input_on_the_cluster(self, head):
        """Tests that the job's own message and its exit code arrive."""
        done = run_lns("submit", "missing.csv", "--address", head[0])
        assert done.returncode == 2
        assert "There is no file missing.csv." in done.stdout

    def test_a_file_that_is_sent_along(self, head, tmp_path):
        """Tests that a file from here can be trained on there."""
        rows = "".join(f"{k % 7},{k % 3},{k % 2}\n" for k in range(60))
        (tmp_path / "mine.csv").write_text("a,b,label\n" + rows)
        options = ["--max-rounds=2", "--time-limit=none", "--json", "--working-dir", str(tmp_path)]
        done = run_lns("submit", "mine.csv", *options, "--address", head[0])
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["dataset"] == "mine.csv"

    def test_no_wait_attach_and_stop(self, head):
        """Tests that a job left alone can be followed, and that Ctrl-C there stops it."""
        done = run_lns("submit", "long-servedio", "--time-limit=300", "--no-wait", "--address", head[0])
        job = done.stdout.strip()
        command = [sys.executable, "-m", "lns", "submit", "--attach", job, "--address", head[0]]
        follower = subprocess.Popen(
            command,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert follower.stdout.readline()  # it hears something
        time.sleep(5)
        follower.send_signal(signal.SIGINT)
        _, error = follower.communicate(timeout=60)
        assert follower.returncode == 130
        assert b"was told to stop" in error
        again = run_lns("submit", "--attach", job, "--address", head[0])
        assert again.returncode == 130

    def test_the_wheel_is_enough(self, head, tmp_path):
        """Tests a job whose interpreter has the wheel and its dependencies, and not this tree."""
        tree = tmp_path / "tree"
        leave = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
        shutil.copytree(TREE, tree, symlinks=True, ignore=leave)
        build = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "-q",
            "--no-deps",
            "--retries=0",
            "-w",
            str(tmp_path),
            str(tree),
        ]
        built = subprocess.run(build, capture_output=True, text=True)
        if "setuptools>=77" in built.stderr:
            pytest.skip("needs the package index for setuptools")
        assert built.returncode == 0, built.stderr
        subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
        python = tmp_path / "env" / "bin" / "python"
        wheel = next(tmp_path.glob("qlns-*.whl"))
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", str(wheel)], check=True)
        site = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
        dependencies = Path(importlib.util.find_spec("ray").origin).parent.parent
        (site / "dependencies.pth").write_text(f"{dependencies}\n")
        where = [python, "-c", "import lns; print(lns.__file__)"]
        alone = environment(PYTHONPATH="")
        home = subprocess.run(
            where, env=alone, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        assert home.startswith(str(site))
        done = run_lns(
            "submit", *self.TRAINING, "--address", head[0], "--python", str(python), "--env", "PYTHONPATH="
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["rounds"] == 5
