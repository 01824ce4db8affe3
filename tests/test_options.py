"""Tests of options from files."""

from __future__ import annotations

import json

import pytest

from lns import cli
from lns.commands import options

FULL = """
dataset = "mease-wyner"
noise = 0.25
rows = 200
data-dir = "somewhere"
q = [-0.7, 0]
lam = 1e-5
weight-bits = 3
weight-range = [-8, 8]
time-limit = "none"
max-rounds = 2
target = 0.01
mode = "rounds"
ties = 0.002
solver = "emulator"
topology = "chimera:4"
seed = 5
backend = "local"
workers = 1
address = "head:1"
checkpoint = "x.ckpt"
[solver-option]
num_reads = 4
noise = 0.02
"""


@pytest.fixture
def toml(tmp_path):
    """A function that writes a configuration and returns its path."""

    def write(content):
        path = tmp_path / "run.toml"
        path.write_text(content)
        return str(path)

    return write


def test_a_file_can_hold_every_option(toml):
    """Tests each value, and that no option that says what is done is missing here."""
    args = cli.parse(["train", "--config", toml(FULL)])
    assert args.dataset == "mease-wyner"
    assert (args.noise, args.rows, args.data_dir) == (0.25, 200, "somewhere")
    assert args.q == {-1: -0.7, 1: 0.0}
    assert (args.lam, args.weight_bits, args.weight_range) == (1e-5, 3, (-8.0, 8.0))
    assert (args.time_limit, args.max_rounds, args.target, args.ties) == (None, 2, 0.01, 0.002)
    assert args.mode == "rounds"
    assert (args.solver, args.topology, args.seed) == ("emulator", "chimera:4", 5)
    assert args.solver_option == [("num_reads", 4), ("noise", 0.02)]
    assert (args.backend, args.workers, args.address, args.checkpoint) == ("local", 1, "head:1", "x.ckpt")
    for name in options.by_name(args.parser):
        assert f"\n{name} = " in FULL or f"\n[{name}]" in FULL


def test_an_empty_file_changes_nothing(toml):
    """Tests the defaults."""
    given, none = (vars(cli.parse(words)) for words in (["train", "--config", toml("")], ["train"]))
    unlike = {"config", "parser"}
    assert {k: v for k, v in given.items() if k not in unlike} == {
        k: v for k, v in none.items() if k not in unlike
    }


def test_the_command_line_wins(toml):
    """Tests options and the data set; options of the solver are added."""
    path = toml('dataset = "web8"\nseed = 5\n[solver-option]\nnum_reads = 4\n')
    args = cli.parse(["train", "adult9", "--config", path, "--seed", "6", "--solver-option", "num_sweeps=9"])
    assert (args.dataset, args.seed) == ("adult9", 6)
    assert args.solver_option == [("num_reads", 4), ("num_sweeps", 9)]
    assert cli.parse(["train"]).seed == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("time_limit = 3", "has the unknown key 'time_limit'; did you mean 'time-limit'?"),
        ("zzz = 3", "has the unknown key 'zzz'; it may have dataset, noise,"),
        ('out = "x"', "has the unknown key 'out'"),
        ("json = true", "has the unknown key 'json'"),
        ("time-limit = -3", "time-limit must be a number of seconds above 0 or 'none', not -3."),
        ("seed = 1.5", "seed must be a whole number of at least 0, not '1.5'."),
        ("seed = true", "seed must be a value as on the command line, not True."),
        ("[seed]\na = 1", "seed must be a value as on the command line"),
        ('q = ["a"]', "q must be a number, not 'a'."),
        ('backend = "rai"', "backend must be one of local, ray, not 'rai'; did you mean 'ray'?"),
        ("solver-option = 3", "solver-option must be a table"),
        ("q", "is not TOML"),
    ],
)
def test_mistakes_in_a_file_are_one_line(run, toml, content, message):
    """Tests that the file and the key are named, with the closest match."""
    path = toml(content)
    code, out, err = run("train", "--config", path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert path in err
    assert message in err


@pytest.mark.parametrize("words", [[], ["--q", "-inf", "--time-limit", "none"], ["--weight-range", "-8,8"]])
def test_options_survive_json(toml, words):
    """Tests that what a folder remembers gives the same options again."""
    args = cli.parse(cli.join_negative(["train", "--config", toml(FULL), *words]))
    remembered = json.loads(json.dumps(options.as_values(args.parser, args), allow_nan=False))
    fresh = cli.parse(["train"])
    options.set_defaults(fresh.parser, remembered, "test")
    for action in options.by_name(args.parser).values():
        assert fresh.parser.get_default(action.dest) == getattr(args, action.dest)


@pytest.mark.parametrize(
    ("text", "value"),
    [("a=3", 3), ("a=0.5", 0.5), ("a=true", True), ("a=eu-central", "eu-central"), ("a=x=y", "x=y"),
     ('a="3"', "3"), ("a=chimera:8", "chimera:8")],
)  # fmt: skip
def test_options_of_solvers_are_numbers_or_text(text, value):
    """Tests the types of NAME=VALUE."""
    assert cli.parse(["train", "--solver-option", text]).solver_option == [("a", value)]
