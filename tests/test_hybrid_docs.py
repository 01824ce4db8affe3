"""Tests that the page on hybrid workflows tells the truth."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "hybrid.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="needs the source tree")


def test_the_code_runs_and_prints_what_is_shown():
    """Tests every Python block, one after the other, against the output shown below it."""
    blocks = re.findall(
        r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    assert len(blocks) > 5
    names = {}
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(PAGE), "exec"), names)
        assert printed.getvalue() == shown
