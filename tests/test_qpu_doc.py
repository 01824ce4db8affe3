"""Tests that the document about annealers tells the truth."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest

from lns import cli
from lns.solvers import QPU, ChipCall

DOCUMENT = Path(__file__).parent.parent / "docs" / "qpu.md"
pytestmark = pytest.mark.skipif(not DOCUMENT.exists(), reason="needs the source tree")


def blocks(language):
    """The code blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), flags=re.DOTALL)


def table(heading):
    """The names in the first column of a section's table."""
    section = DOCUMENT.read_text(encoding="utf-8").split(f"## {heading}")[1].split("\n## ")[0]
    return {
        name
        for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }


@pytest.mark.parametrize("number", range(3))
def test_the_python_blocks_run(number, tmp_path, monkeypatch):
    """Tests every block as it stands."""
    monkeypatch.setenv("LNS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    code = blocks("python")
    assert len(code) == 3
    exec(compile(code[number], f"docs/qpu.md, block {number}", "exec"), {"__name__": "__main__"})


def test_the_commands_are_understood():
    """Tests that the options of all commands exist."""
    commands = [shlex.split(line) for block in blocks("sh") + blocks("text") for line in block.splitlines()]
    ours = [words[1:] for words in commands if words and words[0] == "lns"]
    assert len(ours) == 3
    for words in ours:
        cli.build_parser().parse_args(words)


def test_the_tables_name_what_there_is():
    """Tests the options and the keys of a record."""
    assert table("Options") == {option.name for option in fields(QPU) if option.init}
    assert table("What is recorded") == {option.name for option in fields(ChipCall)}
