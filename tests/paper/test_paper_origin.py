"""Tests of what is needed for a run, and of what is noted about its code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from lns import cli
from lns.errors import InvalidInput
from lns.paper import origin
from lns.paper import run as paper

IDENTITY = {f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@pytest.mark.parametrize("missing", [("matplotlib",), ("cleanlab",), ("cleanlab", "matplotlib")])
def test_missing_packages_are_named_at_the_start(missing, tmp_path, monkeypatch, capsys):
    """Tests that nothing is made or computed if tables or figures could not be made in the end."""

    def never(*args):
        raise AssertionError("this comes later")

    monkeypatch.setattr(paper, "sheet", never)
    monkeypatch.setattr(paper, "open_workers", never)
    monkeypatch.setattr(origin, "find_spec", lambda name: None if name in missing else "found")
    assert cli.main(["paper", "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert f'lns paper needs {" and ".join(missing)}: pip install "qlns[paper]".' in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_package_that_cannot_be_imported_is_missing(monkeypatch):
    """Tests the search itself, for a package that is there and one that is blocked."""
    monkeypatch.setattr(origin, "EXTRA", ("numpy",))
    origin.check_packages()
    monkeypatch.setitem(sys.modules, "cleanlab", None)
    monkeypatch.setattr(origin, "EXTRA", ("numpy", "cleanlab"))
    with pytest.raises(InvalidInput, match="needs cleanlab: pip install"):
        origin.check_packages()


@pytest.fixture
def checkout(tmp_path):
    """A package in a repository, with a subpackage that is a link to a folder beside it."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    for name in ("lns/__init__.py", "datasets/__init__.py"):
        path = tmp_path / name
        path.parent.mkdir()
        path.write_text("")
    (tmp_path / "lns" / "datasets").symlink_to("../datasets")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def git(folder, *words):
    """What git answers."""
    call = ["git", *words]
    env = {**os.environ, **IDENTITY}
    return subprocess.run(
        call, cwd=folder, env=env, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_the_commit_of_a_checkout(checkout):
    """Tests that files that git does not know do not count as changes."""
    (checkout / "notes.txt").write_text("mine")
    assert origin.commit(checkout / "lns") == git(checkout, "rev-parse", "HEAD")


@pytest.mark.parametrize("name", ["lns/__init__.py", "datasets/__init__.py"])
def test_changes_are_seen_behind_links_too(checkout, name):
    """Tests a change in the package, and one in a folder that it only links to."""
    (checkout / name).write_text("changed = True\n")
    assert origin.commit(checkout / "lns") == git(checkout, "rev-parse", "HEAD") + " with changes"


def test_no_commit_of_somebody_elses_repository(checkout, tmp_path_factory):
    """Tests an installed package in a virtual environment inside a repository, and one outside of any."""
    for place in (checkout, tmp_path_factory.mktemp("outside")):
        home = place / "venv" / "lns"
        home.mkdir(parents=True)
        (home / "__init__.py").write_text("")
        assert origin.commit(home) is None
