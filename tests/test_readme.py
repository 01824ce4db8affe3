"""Tests that the README tells the truth."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lns import cli

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
pytestmark = pytest.mark.skipif(not README.exists(), reason="needs the source tree")


def blocks(language):
    """The code blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_python_block_prints_what_is_shown():
    """Tests the README's Python against the output below it."""
    (code,), (shown,) = blocks("python"), blocks("text")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown


def test_the_first_command_is_understood():
    """Tests that the options of the README's training command exist."""
    words = shlex.split(blocks("sh")[0])
    training = words[words.index(".venv/bin/lns") + 1 :]
    args = cli.build_parser().parse_args(cli.join_negative(training))
    assert args.dataset == "long-servedio"
    assert args.time_limit is not None


def test_the_second_command_is_that_of_the_ci():
    """Tests that the CI runs the README's test command."""
    script = ROOT / ".ci" / "run"
    if not script.exists():
        pytest.skip("needs the CI script")
    assert blocks("sh")[1].strip() in script.read_text()
