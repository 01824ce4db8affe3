"""Tests that the guide tells the truth: its code runs and prints what is shown, its links lead somewhere."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
OWN_TESTS = {"cluster", "command-line", "qpu"}  # their code needs a cluster, a shell, a cache of its own
CODE = re.compile(r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?", flags=re.DOTALL)
pytestmark = pytest.mark.skipif(not PAGES, reason="needs the source tree")


@pytest.mark.parametrize("page", [p for p in PAGES if p.stem not in OWN_TESTS], ids=lambda page: page.stem)
def test_the_code_runs_and_prints_what_is_shown(page, tmp_path, monkeypatch):
    """Tests the Python blocks of a page, one after the other, against the output below each."""
    monkeypatch.chdir(tmp_path)  # tutorials write files
    names: dict[str, object] = {}
    for code, shown in CODE.findall(page.read_text(encoding="utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), names)
        assert printed.getvalue() == shown, code


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("*.md")], ids=lambda page: page.stem)
def test_the_links_lead_to_files(page):
    """Tests every relative link of a page."""
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
