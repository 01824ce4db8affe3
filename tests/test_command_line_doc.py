"""Tests that the guide to the command line tells the truth."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lns import cli

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "docs" / "command-line.md"
pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="needs the source tree")

BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks():
    """Language and content of every block."""
    return BLOCK.findall(GUIDE.read_text(encoding="utf-8"))


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_blocks_print_what_is_shown(tmp_path):
    """Tests every block of bash and Python, in order and in one folder; ``...`` stands for anything."""
    shim = tmp_path / "bin" / "lns"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m lns "$@"\n')
    shim.chmod(0o755)
    path = f"{shim.parent}{os.pathsep}{os.environ['PATH']}"
    place = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    folder = tmp_path / "work"
    folder.mkdir()
    printed = None
    ran = 0
    for language, content in blocks():
        if language in ("bash", "python"):
            call = ["bash", "-euc", content] if language == "bash" else [sys.executable, "-c", content]
            done = subprocess.run(
                call, cwd=folder, env={**os.environ, "PATH": path, "PYTHONPATH": place},
                capture_output=True, text=True,
            )  # fmt: skip
            assert done.returncode == 0, f"{content}\n{done.stderr}"
            printed = done.stdout
            ran += 1
        elif language == "text":
            parts = content.split("...")
            assert re.fullmatch("(.|\n)*".join(map(re.escape, parts)), printed), printed
    assert ran == 9


def test_the_other_commands_are_understood():
    """Tests that the options of commands that are not run here exist."""
    lines = [line for language, content in blocks() if language == "sh" for line in content.splitlines()]
    assert len(lines) > 8
    for line in lines:
        words = shlex.split(line)
        if words[0] == "lns":
            args = cli.build_parser().parse_args(cli.join_negative(words[1:]))
            assert args.run
