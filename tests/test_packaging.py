"""Tests of what is installed, and of what importing it costs."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="needs the source tree")

USE_A_KERNEL = """
import numpy as np
from lns.problem import QLossProblem
X = np.eye(4, dtype=np.float32)
problem = QLossProblem(X, [1, -1, 1, -1], weight_range=(-1, 1), bias_range=(-1, 1))
print(problem.objective(np.ones(4), 0.0))
"""


def python(code, **environment):
    """Run code in a fresh interpreter, away from the source tree."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        cwd=Path(sys.executable).parent,
        capture_output=True,
        text=True,
        check=True,
    )


def modules():
    """Every module of the tree by its path inside the installed package, links followed."""
    found = []
    for folder, _, files in os.walk(ROOT / "lns", followlinks=True):
        found += [(Path(folder) / name).relative_to(ROOT) for name in files if name.endswith(".py")]
    return found


@pytest.mark.parametrize("name", ["solvers", "embedding", "datasets"])
def test_the_links_are_relative(name):
    """Tests that the tree has the same names as the wheel, wherever it is checked out."""
    if (ROOT / "PKG-INFO").exists():
        pytest.skip("a source distribution holds the folders only")
    link = ROOT / "lns" / name
    assert link.is_symlink()
    assert os.readlink(link) == f"../{name}"
    assert link.is_dir()


def test_every_folder_with_modules_is_a_package_of_the_wheel():
    """Tests that a new sub-package is not forgotten in pyproject.toml."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {".".join(path.parent.parts) for path in modules()}
    assert folders <= set(listed)


def test_the_name_datasets_stays_free():
    """Tests that a process started in the tree still finds another distribution's `datasets`."""
    assert not (ROOT / "datasets" / "__init__.py").exists()


def test_importing_is_quick_and_light():
    """Tests that `import lns` takes less than a second and leaves the heavy packages alone."""
    code = "import time, sys; start = time.perf_counter(); import lns; print(time.perf_counter() - start)"
    heavy = "; print(*(m for m in ('ray', 'sklearn', 'dwave', 'hybrid', 'numba') if m in sys.modules))"
    seconds, imported = (python(code + heavy).stdout + "\n").split("\n")[:2]
    assert imported == ""
    assert float(seconds) < 1.0


def test_compiling_is_announced_once(tmp_path):
    """Tests that an empty cache is announced in one line, and a filled one not at all."""
    first, second = (python(USE_A_KERNEL, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first.stderr.count("Compiling the inner loops") == 1
    assert second.stderr == ""
    assert first.stdout == second.stdout


@pytest.mark.slow
def test_a_wheel_built_from_the_sdist_has_every_module(tmp_path):
    """Tests that nothing is lost on the way to the package index, and nothing lands outside `lns`."""
    if importlib.util.find_spec("build") is None:
        pytest.skip("needs the package `build`")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "--retries",
        "0",
        "-d",
        tmp_path / "pip",
    ]
    if subprocess.run([*pip, "setuptools>=77"], capture_output=True).returncode:
        pytest.skip("needs the package index for setuptools")
    tree = tmp_path / "tree"
    leave = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, tree, symlinks=True, ignore=leave)
    command = [sys.executable, "-m", "build"]
    subprocess.run([*command, "--sdist", tree, "--outdir", tmp_path], check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("qlns-*.tar.gz"))) as archive:
        archive.extractall(tmp_path / "sdist", filter="data")
    source = next((tmp_path / "sdist").iterdir())
    subprocess.run([*command, "--wheel", source, "--outdir", tmp_path], check=True, capture_output=True)
    names = zipfile.ZipFile(next(tmp_path.glob("qlns-*.whl"))).namelist()
    assert {path.as_posix() for path in modules()} <= set(names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"lns", "qlns"}
    assert {"lns/py.typed", "lns/report/page.css", "lns/report/page.js"} <= set(names)
