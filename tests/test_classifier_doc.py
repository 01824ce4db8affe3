"""Tests that the page about the classifier tells the truth."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "classifier.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="needs the source tree")


def test_every_block_runs_and_prints_what_is_shown(tmp_path, monkeypatch):
    """Tests the blocks of the page one after the other, each against the output below it."""
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", page, flags=re.DOTALL)
    assert len(blocks) >= 6
    names: dict = {"__name__": "page"}
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(PAGE), "exec"), names)
        assert printed.getvalue() == shown
