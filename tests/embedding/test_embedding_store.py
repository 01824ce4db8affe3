"""Tests of the store: round trip, damage, several processes, directories that cannot be written."""

from __future__ import annotations

import logging
import multiprocessing
import os
import time
from pathlib import Path

import numpy as np
import pytest

from lns.embedding import (
    Chip,
    Embedding,
    Shape,
    Store,
    cache_dir,
    default_store,
    embed,
    largest_embedding,
    routes,
)

SHAPE = Shape(4, 2, 2)


@pytest.fixture
def chip() -> Chip:
    return Chip.from_name("chimera:4")


@pytest.fixture
def kept(chip: Chip, tmp_path: Path) -> Embedding:
    """An embedding that is in the store in tmp_path."""
    return embed(chip, SHAPE, store=Store(tmp_path))


def the_file(root: Path, suffix: str = ".npz") -> Path:
    """Return the only file of a kind in a store."""
    (path,) = root.rglob(f"*{suffix}")
    return path


def test_round_trip(chip: Chip, kept: Embedding, tmp_path: Path) -> None:
    """Tests that another process gets the same chains, and that no temporary file stays."""
    again = Store(tmp_path).load(chip, SHAPE)
    assert again == kept
    assert again is not None
    assert again.route == kept.route
    assert not list(tmp_path.rglob(".new-*"))


def test_no_pickle(kept: Embedding, tmp_path: Path) -> None:
    """Tests that the file is plain arrays."""
    with np.load(the_file(tmp_path), allow_pickle=False) as file:
        assert sorted(file.files) == ["meta", "offsets", "qubits"]


def test_other_chips_and_shapes_are_absent(chip: Chip, kept: Embedding, tmp_path: Path) -> None:
    """Tests that a chip with one more dead qubit does not get this chip's embedding."""
    store = Store(tmp_path)
    assert store.load(chip, Shape(4, 2, 3)) is None
    assert store.load(chip.damaged(0.01, 0, seed=0), SHAPE) is None


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "text", "other"])
def test_damaged_file_is_made_anew(
    damage: str, chip: Chip, kept: Embedding, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Tests that any damage is noticed, logged and repaired by the next request."""
    path = the_file(tmp_path)
    content = path.read_bytes()
    place = content.index(kept.qubits.tobytes()) + 4
    path.write_bytes(
        {
            "empty": b"",
            "cut": content[: len(content) // 2],
            "flipped": content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :],
            "text": b"not an archive",
            "other": the_other(chip, tmp_path),
        }[damage]
    )
    store = Store(tmp_path)
    with caplog.at_level(logging.WARNING, "lns.embedding"):
        assert store.load(chip, SHAPE) is None
    assert "is damaged" in caplog.text
    assert embed(chip, SHAPE, store=store) == kept
    assert Store(tmp_path).load(chip, SHAPE) == kept


def the_other(chip: Chip, root: Path) -> bytes:
    """Return the whole file of another shape."""
    embed(chip, Shape(3, 1, 1), store=Store(root / "other"))
    return the_file(root / "other").read_bytes()


def test_consistent_but_wrong_file_is_refused(chip: Chip, kept: Embedding, tmp_path: Path) -> None:
    """Tests that chains which do not fit the chip are refused even with a right checksum."""
    Store(tmp_path).save(Embedding.from_chains(chip, SHAPE, [[q] for q in range(SHAPE.size)], "template"))
    assert Store(tmp_path).load(chip, SHAPE) is None


def test_damaged_size_is_made_anew(chip: Chip, tmp_path: Path) -> None:
    """Tests that an answer about sizes is checked like an embedding."""
    first = largest_embedding(chip, weights=4, store=Store(tmp_path))
    path = the_file(tmp_path, ".json")
    path.write_text(path.read_text().replace(f"[4, {first.shape.examples}, 4]", "[4, 1, 4]"))
    assert largest_embedding(chip, weights=4, store=Store(tmp_path)) == first
    path.write_text("{")
    assert largest_embedding(chip, weights=4, store=Store(tmp_path)) == first


def test_directory_that_cannot_be_written(
    chip: Chip, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that memory serves where nothing can be written, with one warning that says what to do."""
    (tmp_path / "file").write_text("a file, not a directory")
    store = Store(tmp_path / "file" / "cache")
    with caplog.at_level(logging.WARNING, "lns.embedding"):
        first = embed(chip, SHAPE, store=store)
        embed(chip, Shape(3, 1, 1), store=store)
    assert len(caplog.records) == 1
    assert "Set LNS_CACHE_DIR" in caplog.text
    monkeypatch.setattr(routes, "find_best", lambda *a, **k: pytest.fail("embedded twice"))
    assert embed(chip, SHAPE, store=store) is first


def test_full_disk_leaves_no_rubbish(
    chip: Chip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Tests that a write that fails half-way leaves neither a temporary file nor half an embedding."""

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    embed(chip, SHAPE, store=Store(tmp_path))
    assert "No space left" in caplog.text
    assert not [p for p in tmp_path.rglob("*") if p.suffix == ".npz" or p.name.startswith(".new-")]


def test_read_only_store_is_still_read(chip: Chip, kept: Embedding, tmp_path: Path) -> None:
    """Tests that a shared store which this user may only read serves its embeddings."""
    for path in [tmp_path, *tmp_path.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert Store(tmp_path).load(chip, SHAPE) == kept
    finally:
        for path in [tmp_path, *tmp_path.rglob("*")]:
            path.chmod(0o755)


def test_cache_dir(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tests the order of the places: our variable, the desktop's, the home directory."""
    monkeypatch.setenv("LNS_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_dir() == tmp_path / "own"
    assert default_store() is default_store()
    assert default_store().root == tmp_path / "own"
    monkeypatch.delenv("LNS_CACHE_DIR")
    assert cache_dir() == tmp_path / "xdg" / "qlns"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == tmp_path / "home" / ".cache" / "qlns"


def test_user_without_a_home(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Tests that memory serves where there is no place for a cache at all, with one warning."""

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("lns.embedding.store.cache_dir", homeless)
    assert default_store() is default_store()
    assert default_store().root is None
    assert caplog.text.count("set LNS_CACHE_DIR") == 1


def _embed_many(root: str, mark: str) -> None:
    """Ask for the same few embeddings again and again, noting each time one is really made."""
    real = routes.find_best

    def noted(chip: Chip, shape: Shape, **options: float) -> Embedding | None:
        with open(mark, "a") as file:
            file.write(f"{shape.examples}\n")
        time.sleep(0.2)
        return real(chip, shape, **options)  # type: ignore[arg-type]

    routes.find_best = noted  # type: ignore[assignment]
    chip = Chip.from_name("chimera:4")
    for _ in range(5):
        for examples in (1, 2, 3):
            embed(chip, Shape(4, examples, 2), store=Store(root)).verify()


def test_several_processes(tmp_path: Path) -> None:
    """Tests that three processes at once all succeed and that each embedding is made by one of them only."""
    context = multiprocessing.get_context("spawn")
    mark = tmp_path / "made"
    workers = [
        context.Process(target=_embed_many, args=(str(tmp_path / "store"), str(mark))) for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert sorted(mark.read_text().split()) == ["1", "2", "3"]


@pytest.mark.parametrize(("name", "weights", "limit"), [("chimera:8", 8, 0.010), ("zephyr:15", 16, 0.100)])
def test_loading_is_fast(name: str, weights: int, limit: float, tmp_path: Path) -> None:
    """Tests that loading, checking and relabelling a full chip costs a round next to nothing."""
    chip = Chip.from_name(name)
    shape = largest_embedding(chip, weights=weights, store=Store(tmp_path)).shape
    labels = [("t", i) for i in range(shape.targets)]
    seconds = []
    for _ in range(10):
        start = time.perf_counter()
        found = Store(tmp_path).load(chip, shape)
        assert found is not None
        found.relabel(range(weights), labels)
        seconds.append(time.perf_counter() - start)
    # The fastest: the others measure what else the machine is doing.
    assert min(seconds) < limit
