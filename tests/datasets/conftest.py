"""Fixtures of the data set tests: no network, a cache of their own, and the real files if they are there."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.error import URLError

import pytest

from lns.datasets import remote

# Read here, because each test runs without the variable.
_CANDIDATES = [os.environ.get("LNS_DATA_DIR"), Path(__file__).resolve().parents[3] / "shared" / "data"]


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the files of the real data sets."""
    for folder in _CANDIDATES:
        if folder and (Path(folder) / "covtype.data.gz").is_file():
            return Path(folder)
    pytest.skip("the real data files are not here: set LNS_DATA_DIR to their folder")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty user cache, no LNS_DATA_DIR, and a network that is down."""
    base = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(base))
    monkeypatch.delenv("LNS_DATA_DIR", raising=False)

    def offline(url: str, timeout: float) -> None:
        raise URLError("network is down")

    monkeypatch.setattr(remote, "urlopen", offline)
    return base / "qlns"
