"""Problems that several tests use."""

from __future__ import annotations

import signal

import numpy as np
import pytest
from run_cases import FLIPS, mail, train
from slow_reference import LAYOUTS

from lns import cli
from lns.problem import QLossProblem


@pytest.fixture(autouse=True, scope="session")
def ctrl_c():
    """Let Ctrl-C, which some tests press, be heard: a shell's background jobs are started deaf to it."""
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(params=LAYOUTS)
def layout(request):
    """Every kind of matrix that has its own compiled loops, as a function from a dense array."""
    return LAYOUTS[request.param]


@pytest.fixture
def blobs():
    """60 x 5 data in halves, half of them zero, and labels of both classes."""
    rng = np.random.default_rng(1)
    X = rng.integers(-4, 5, size=(60, 5)) / 2 * (rng.random((60, 5)) < 0.5)
    y = np.where(X @ [1, -1, 0.5, 0, 2] + rng.normal(size=60) > 0, 1, -1)
    return X, y


@pytest.fixture
def blob_problem(blobs, layout):
    """The blobs in every layout, with one q per class and sample weights."""
    X, y = blobs
    weight = np.linspace(0.5, 2, len(y))
    ranges = {"weight_range": (-1, 1), "bias_range": (-2, 2)}
    return QLossProblem(layout(X), y, q={-1: -1.0, 1: -0.25}, lam=0.01, sample_weight=weight, **ranges)


@pytest.fixture
def tiny():
    """Three examples with one feature: 2 weight bits, 1 bias bit, 2 target bits each, 9 variables in all."""
    X = np.array([[1.0], [-2.0], [0.5]])
    ranges = {"weight_bits": 2, "weight_range": (-1, 2), "bias_bits": 1, "bias_range": (-1, 1)}
    return QLossProblem(X, [1, 1, -1], q=-0.5, lam=0.1, target_bits=2, target_span=6.0, **ranges)


@pytest.fixture(scope="session")
def ray_cluster():
    """Ray on this machine, for all tests that need it; only its own processes are stopped."""
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


@pytest.fixture
def run(capfd):
    """Run a command in this process: exit code, standard output, standard error."""

    def run(*words):
        capfd.readouterr()  # what was printed before is not of this command
        code = cli.main([str(word) for word in words])
        out, err = capfd.readouterr()
        return code, out, err

    return run


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory):
    """The folder of a short run with flipped labels, walks and windows; not to be changed."""
    return train(tmp_path_factory.mktemp("runs") / "flips", *FLIPS)


@pytest.fixture(scope="session")
def mail_run(tmp_path_factory):
    """The folder of a short run on a file, and the file; not to be changed."""
    folder = tmp_path_factory.mktemp("mail")
    data = mail(folder / "mail.csv")
    return train(folder / "run", str(data), "--rows", "80"), data
