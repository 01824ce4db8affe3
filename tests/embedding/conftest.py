"""Fixtures of the embedding tests: no test touches the user's own cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from lns.embedding import Store


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point the default store to an empty directory."""
    monkeypatch.setenv("LNS_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def memory() -> Store:
    """A store that leaves nothing behind."""
    return Store(None)
