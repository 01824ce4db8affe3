"""Tests of the command line: what it prints where, and with which exit code it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import lns
from lns import cli
from lns.commands import bench, train
from lns.datasets.load import DATASETS
from lns.errors import EnergyMismatchError
from lns.solvers import SOLVERS

KEYS = [
    *("dataset", "examples", "features", "num_variables", "noise", "q", "lam", "solver", "backend", "seed"),
    *("start_objective", "objective", "gain_by_solver", "gain_by_walks"),
    *("train_error", "test_error", "flagged", "flip_recall", "flip_precision"),
    *("rounds", "accepted", "wall_time", "peak_memory_mb", "stop_reason"),
]

SHORT = ["train", "--rows", "300", "--time-limit", "none", "--max-rounds", "2"]


def command(*words, **options):
    """Start a command in a process of its own."""
    call = [sys.executable, "-m", "lns", *words]
    return subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


# ---- train -----------------------------------------------------------------------------------------------


def test_json_is_one_object_with_the_documented_keys():
    """Tests that standard output holds one JSON object and nothing else."""
    process = command(*SHORT, "mease-wyner", "--noise", "0.2", "--q", "-0.7,0", "--seed", "3", "--json")
    out, err = process.communicate()
    assert process.returncode == 0, err
    values = json.loads(out)
    assert list(values) == KEYS
    assert out.count("\n") == 1
    assert values["dataset"] == "mease-wyner"
    assert values["examples"] == 210
    assert values["num_variables"] == 20 * 4 + 8 + 210 * 4
    assert values["q"] == {"-1": -0.7, "1": 0.0}
    assert values["rounds"] == 2
    assert values["stop_reason"] == "max_rounds"
    assert 0 < values["peak_memory_mb"] < 10_000


def test_the_same_call_gives_the_same_answer(run):
    """Tests that a seed and a round limit make a run repeatable."""
    unlike = {"wall_time", "peak_memory_mb"}
    first, second = (json.loads(run(*SHORT, "--json")[1]) for _ in range(2))
    assert {key: first[key] for key in KEYS if key not in unlike} == {
        key: second[key] for key in KEYS if key not in unlike
    }


def test_the_figures_are_those_of_python(run):
    """Tests the printed errors and flips against the same run done by hand."""
    from lns.datasets.split import train_test_split

    values = json.loads(
        run("train", "--noise", "0.2", "--max-rounds", "2", "--time-limit", "none", "--json")[1]
    )
    data = lns.load_dataset("long-servedio")
    part, test = (data.take(rows) for rows in train_test_split(data))
    y, flipped = lns.flip_labels(part.y, rate=0.2)
    result = lns.solve(lns.QLossProblem(part.X, y), max_rounds=2, time_limit=None)
    wrong_side = [
        given * (X @ result.weights + result.bias) <= 0 for X, given in ((part.X, y), (test.X, test.y))
    ]
    assert values["objective"] == pytest.approx(result.objective, rel=1e-12)
    assert values["train_error"] == pytest.approx(wrong_side[0].mean())
    assert values["test_error"] == pytest.approx(wrong_side[1].mean())
    assert values["flagged"] == result.flagged.sum()
    assert values["flip_recall"] == pytest.approx((result.flagged & flipped).sum() / flipped.sum())
    assert values["flip_precision"] == pytest.approx((result.flagged & flipped).sum() / result.flagged.sum())


def test_the_summary_is_for_people(run):
    """Tests that the summary has errors, flips and the figures of the result."""
    code, out, _ = run(*SHORT, "--noise", "0.2")
    assert code == 0
    for part in ("training labels flipped (20 %", "flips found", "objective", "rounds       2", "test   "):
        assert part in out


def test_a_file_is_trained_without_noise(run, tmp_path):
    """Tests that labels of users are flipped only if they ask for it."""
    rows = [f"{k % 7},{(3 * k) % 11},{'yes' if k % 7 > 3 else 'no'}" for k in range(60)]
    path = tmp_path / "mine.csv"
    path.write_text("a,b,label\n" + "\n".join(rows) + "\n")
    code, out, _ = run("train", str(path), "--max-rounds", "1", "--json")
    values = json.loads(out)
    assert code == 0
    assert values["dataset"] == "mine.csv"
    assert values["noise"] == 0
    assert values["flip_recall"] is None
    assert values["flip_precision"] is None


@pytest.mark.parametrize(
    ("words", "q"),
    [
        (["--q", "-0.5"], -0.5),
        (["--q=-0.5"], -0.5),
        (["--q", "-.5,-1e-1"], {-1: -0.5, 1: -0.1}),
        (["--q", "-0.7,0"], {-1: -0.7, 1: 0.0}),
        (["--q", "0,-0.7"], {-1: 0.0, 1: -0.7}),
        (["--q", "-inf"], -float("inf")),
    ],
)
def test_negative_values_are_values(words, q):
    """Tests that a leading minus sign does not make an option of a number or a pair."""
    args = cli.build_parser().parse_args(cli.join_negative(["train", *words, "--weight-range", "-8,8"]))
    assert args.q == q
    assert args.weight_range == (-8.0, 8.0)


def test_the_help_names_every_solver():
    """Tests that the list in the help, which is written out to stay light, is complete."""
    assert set(train.SOLVERS) == set(SOLVERS)


# ---- errors ----------------------------------------------------------------------------------------------

WRONG = [
    ([], "required: COMMAND"),
    (["trian"], "did you mean 'train'?"),
    (["train", "--time-limt", "3"], "did you mean '--time-limit'?"),
    (["train", "long-servedio", "extra"], "unknown argument 'extra'"),
    (["train", "long-servdio"], "Did you mean 'long-servedio'?"),
    (["train", "--solver", "tabo"], "did you mean 'tabu'?"),
    (["train", "nowhere.csv"], "no file nowhere.csv"),
    (["train", "--q", "0.5"], "--q: must be at most 0, not 0.5"),
    (["train", "--q", "-1,-1,-1"], "--q: must be a number"),
    (["train", "--q", "nan"], "--q: must be at most 0"),
    (["train", "--noise", "1"], "--noise: must be a rate from 0 to below 1"),
    (["train", "--noise", "-0.1"], "--noise: must be a rate"),
    (["train", "--lam", "-1"], "lam must be at least 0"),
    (["train", "--weight-bits", "0"], "--weight-bits: must be a whole number of at least 1"),
    (["train", "--weight-bits", "99"], "weight_bits must be"),
    (["train", "--weight-range", "1"], "--weight-range: must be two numbers LO,HI"),
    (["train", "--weight-range", "2,1"], "weight_range must have lo < hi"),
    (["train", "--rows", "2001"], "--rows must be at most 2,000"),
    (["train", "--time-limit", "0"], "--time-limit: must be a number of seconds above 0"),
    (["train", "--max-rounds", "1.5"], "--max-rounds: must be a whole number"),
    (["train", "--seed", "-1"], "--seed: must be a whole number of at least 0"),
    (["train", "--time-limit", "none"], "at least one of"),
    (["train", "--backend", "rai"], "did you mean 'ray'?"),
    (["train", "--address", "head:6379"], "--address goes with --backend ray"),
    (["train", "--live"], "add --out DIR"),
    (["train", "--port", "8000"], "--port goes with --live"),
    (["train", "--resume"], "add --out DIR or --checkpoint FILE"),
    (["train", "--resume", "--out", "nowhere"], "There is no folder nowhere"),
    (["train", "--resume", "--checkpoint", "nowhere.ckpt"], "There is no checkpoint nowhere.ckpt"),
    (["train", "--checkpoint", "nowhere/run.ckpt"], "a folder that is not there: nowhere"),
    (["train", "--out", __file__], "is a file"),
    (["train", "--out", os.path.dirname(__file__)], "is not empty: name another one."),
    (["train", "--config", "nowhere.toml"], "nowhere.toml cannot be read"),
    (["train", "--solver-option", "num_reads"], "must be NAME=VALUE"),
    (["train", "--solver", "sa", "--solver-option", "num_raeds=3"], "Did you mean 'num_reads'?"),
    (["predict", "nowhere", "new.csv"], "There is no model nowhere. 'lns train DATASET --out nowhere'"),
    (["predict", "nowhere"], "required: DATA"),
    (["report", "nowhere"], "There is no folder nowhere"),
    (["report", os.path.dirname(__file__)], "it has no config.json"),
    (["completion", "bsh"], "did you mean 'bash'?"),
    (["datasets", "lst"], "did you mean 'list'?"),
    (["datasets", "info"], "needs the name"),
    (["datasets", "list", "web8"], "lns datasets info web8"),
    (["datasets", "fetch", "web9"], "Did you mean 'web8'?"),
    (["bench", "problm"], "did you mean 'problem'?"),
    (["bench", "problem", "--jsn"], "--jsn"),
]


@pytest.mark.parametrize(("words", "part"), WRONG, ids=lambda value: " ".join(value) if value != [] else "-")
def test_wrong_usage_is_one_line(run, words, part):
    """Tests that a mistake ends with code 2 and one line that says what to do."""
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.startswith("lns: ")
    assert err.count("\n") == 1
    assert part in err


def raising(error):
    """A function that raises."""

    def function(*_, **__):
        raise error

    return function


def test_a_missing_file_of_a_known_set_says_where_it_was_looked_for(run, monkeypatch, tmp_path):
    """Tests the message without a network: every place, and where to get the file."""
    from lns.datasets import remote

    monkeypatch.setenv("LNS_DATA_DIR", str(tmp_path / "b"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    monkeypatch.setattr(remote, "urlopen", raising(OSError("no network")))
    code, out, err = run("train", "web8", "--data-dir", str(tmp_path / "a"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    for part in ("w8a.gz", str(tmp_path / "a"), "LNS_DATA_DIR", str(tmp_path / "c"), "no network"):
        assert part in err


@pytest.mark.parametrize(
    ("error", "code", "part"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (EnergyMismatchError(1.0, 2.0, "a test"), 1, "This is a bug"),
        (MemoryError("2 GB"), 1, "--rows"),
        (RuntimeError("two\nlines"), 1, "RuntimeError: two lines (add --debug"),
    ],
)
def test_failures_are_one_line_too(run, monkeypatch, error, code, part):
    """Tests code and message of what is not the user's mistake."""
    monkeypatch.setattr(train, "train", raising(error))
    got, out, err = run("train")
    assert (got, out) == (code, "")
    assert err.count("\n") == 1
    assert part in err
    assert "Traceback" not in err


def test_warnings_are_one_line_each():
    """Tests that a warning does not show where in the code it is from, without pytest's hooks."""
    code = """
import sys, warnings
from lns import cli
from lns.commands import train

def lose_a_node(args):
    warnings.warn("the cluster\\nlost a node", RuntimeWarning)
    raise KeyboardInterrupt

train.train = lose_a_node
sys.exit(cli.main(["train"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr.splitlines()[0] == "lns: warning: the cluster lost a node"


@pytest.mark.parametrize("words", [["--debug", "train", "long"], ["train", "long", "--debug"]])
def test_debug_shows_the_traceback(run, words):
    """Tests that --debug works on both sides of the command."""
    code, _, err = run(*words)
    assert code == 2
    assert "Traceback" in err


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_a_reader_that_leaves_is_no_error_message():
    """Tests `lns datasets | head -0`."""
    process = command("datasets")
    process.stdout.close()
    assert process.stderr.read() == ""
    process.wait()


# ---- the others ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        *([name, "--help"] for name in ("train", "predict", "report", "datasets", "bench", "completion")),
    ],
    ids=" ".join,
)
def test_help_has_examples(run, words):
    """Tests that every help text shows how it is done, on standard output."""
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert "examples:\n  lns " in out


def test_version(run):
    """Tests `lns --version`."""
    assert run("--version") == (0, f"lns {lns.__version__}\n", "")


def test_the_command_line_is_light():
    """Tests that nothing heavy is imported before a command runs."""
    code = "import sys, lns.cli; print(*({'numpy', 'scipy', 'numba', 'dimod', 'ray'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "\n"


def test_datasets_lists_all(run):
    """Tests that the list has a line for every set."""
    code, out, _ = run("datasets")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(DATASETS)
    assert run("datasets", "list")[1] == out


def test_datasets_info(run, monkeypatch, tmp_path):
    """Tests what is said about a drawn set, a missing one and a file."""
    monkeypatch.delenv("LNS_DATA_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "49.80 % error" in run("datasets", "info", "mease-wyner")[1]
    assert "lns datasets fetch covertype" in run("datasets", "info", "covertype")[1]
    path = tmp_path / "mine.csv"
    path.write_text("1,0\n2,1\n3,1\n")
    assert "3 rows x 1 features" in run("datasets", "info", str(path))[1]


def test_datasets_fetch_of_a_drawn_set(run):
    """Tests that there is nothing to fetch."""
    assert run("datasets", "fetch", "Long-Servedio")[:2] == (
        0,
        "long-servedio is drawn at random with a fixed seed: nothing to fetch.\n",
    )


def test_bench_lists_all(run):
    """Tests `lns bench` without a name."""
    assert [line.split()[0] for line in run("bench")[1].splitlines()] == list(bench.BENCHES)


def test_bench_passes_its_options_on(run):
    """Tests that the options behind a name belong to the benchmark, and that it prints JSON."""
    code, out, _ = run("bench", "problem", "--rows", "500", "--features", "3", "--repeats", "1", "--json")
    assert code in (0, 1)  # on so few rows the ratios mean nothing
    assert json.loads(out)["rows"] == 500
    code, out, _ = run("bench", "problem", "--help")
    assert code == 0
    assert "lns bench problem" in out
