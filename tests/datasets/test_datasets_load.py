"""Tests of loading by name and by file, with the real files if they are there."""

from __future__ import annotations

import doctest
import gzip
import importlib
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

import lns.datasets.real
from lns.datasets import remote
from lns.datasets.load import DATASETS, fetch_dataset, load_dataset
from lns.datasets.split import describe
from lns.errors import DataError, InvalidInput

FOLDER = Path(lns.datasets.real.__file__).parent
MODULES = sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.fixture(scope="module")
def covertype(
    real_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[lns.datasets.load.Dataset, Path]:
    """Covertype, parsed once, and the cache folder that holds its parsed copy."""
    base = tmp_path_factory.mktemp("covertype")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(base))
        return load_dataset("covertype", real_data), base


def test_names() -> None:
    """Tests that the six sets of the paper are known."""
    assert list(DATASETS) == ["long-servedio", "mease-wyner", "covertype", "mushrooms", "adult9", "web8"]


@pytest.mark.parametrize(
    ("name", "rows", "features", "density", "baseline"),
    [
        ("mushrooms", 8124, 112, 18.75, 48.20),
        ("adult9", 48842, 123, 11.30, 23.93),
        ("web8", 59245, 300, 4.20, 2.92),
    ],
)
def test_sparse_sets_match_the_paper(
    real_data: Path, name: str, rows: int, features: int, density: float, baseline: float
) -> None:
    """Tests that rows, features, density and baseline error are those of the paper's data summary."""
    data = load_dataset(name, real_data)
    summary = describe(data)
    assert (
        (summary.rows, summary.features) == (rows, features) == (DATASETS[name].rows, DATASETS[name].features)
    )
    assert summary.density_percent == pytest.approx(density, abs=0.3)
    assert summary.baseline_error_percent == pytest.approx(baseline, abs=0.01)
    assert data.X.format == "csr"
    assert data.X.dtype == np.float32
    assert data.y.dtype == np.int8
    assert set(data.X.data.tolist()) == {1.0}


def test_covertype_matches_the_paper(covertype: tuple[lns.datasets.load.Dataset, Path]) -> None:
    """Tests that rows, features, density and baseline error are those of the paper's data summary."""
    summary = describe(covertype[0])
    assert (summary.rows, summary.features) == (581012, 54)
    assert summary.density_percent == pytest.approx(22.20, abs=0.3)
    assert summary.baseline_error_percent == pytest.approx(36.46, abs=0.01)


def test_covertype_is_scaled_by_column(covertype: tuple[lns.datasets.load.Dataset, Path]) -> None:
    """Tests that covertype is column-major and each column fills [0, 1]."""
    X = covertype[0].X
    assert X.flags.f_contiguous
    assert X.dtype == np.float32
    assert (X.min(axis=0) == 0).all()
    assert (X.max(axis=0) == 1).all()


def test_covertype_first_row(covertype: tuple[lns.datasets.load.Dataset, Path]) -> None:
    """Tests that the first row is that of the file: elevation 2596 of 1859..3858, class 5."""
    data = covertype[0]
    assert data.X[0, 0] == pytest.approx((2596 - 1859) / (3858 - 1859))
    assert data.y[0] == -1


def test_covertype_parsed_copy(
    covertype: tuple[lns.datasets.load.Dataset, Path], real_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that the second load does not parse, is fast and gives the same set."""
    data, base = covertype
    monkeypatch.setenv("XDG_CACHE_HOME", str(base))
    monkeypatch.setattr(lns.datasets.real, "read_integers", None)
    start = time.process_time()
    again = load_dataset("covertype", real_data)
    assert time.process_time() - start < 5
    np.testing.assert_array_equal(again.X, data.X)
    np.testing.assert_array_equal(again.y, data.y)


def test_covertype_damaged_copy_is_rebuilt(
    covertype: tuple[lns.datasets.load.Dataset, Path],
    real_data: Path,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tests that a damaged parsed copy leads to parsing the file again."""
    (good,) = (covertype[1] / "qlns" / "parsed").iterdir()
    (cache / "parsed").mkdir(parents=True)
    (cache / "parsed" / good.name).write_bytes(good.read_bytes()[:1000])
    table = np.arange(110, dtype=np.int16).reshape(2, 55)
    monkeypatch.setattr(lns.datasets.real, "read_integers", lambda path, columns: table)
    assert len(load_dataset("covertype", real_data)) == 2
    with np.load(cache / "parsed" / good.name) as stored:
        np.testing.assert_array_equal(stored["values"], table)


def test_mushrooms_positive_is_poisonous(real_data: Path) -> None:
    """Tests that the 3,916 poisonous mushrooms are positive."""
    data = load_dataset("mushrooms", real_data)
    assert int((data.y == 1).sum()) == 3916
    assert data.classes == ("edible", "poisonous")


def test_web8_has_no_empty_rows(real_data: Path) -> None:
    """Tests that every row of web8 has a feature."""
    assert np.diff(load_dataset("web8", real_data).X.indptr).min() >= 1


def test_named_set_from_a_plain_file(real_data: Path, tmp_path: Path) -> None:
    """Tests that an uncompressed file as LIBSVM serves it is as good."""
    (tmp_path / "mushrooms").write_bytes(gzip.decompress((real_data / "mushrooms.gz").read_bytes()))
    assert len(load_dataset("mushrooms", tmp_path)) == 8124


def test_environment_variable(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the folder can be given by LNS_DATA_DIR."""
    monkeypatch.setenv("LNS_DATA_DIR", str(real_data))
    assert len(load_dataset("mushrooms")) == 8124


def test_downloaded_set(real_data: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a missing file is downloaded, stored in the cache and used."""
    monkeypatch.setattr(remote, "urlopen", lambda url, timeout: (real_data / "mushrooms.gz").open("rb"))
    assert len(load_dataset("mushrooms")) == 8124
    assert (cache / "mushrooms.gz").is_file()


def test_damaged_file_of_a_named_set(real_data: Path, tmp_path: Path) -> None:
    """Tests that a file with one changed character is refused by its checksum."""
    content = gzip.decompress((real_data / "mushrooms.gz").read_bytes())
    (tmp_path / "mushrooms.gz").write_bytes(gzip.compress(content.replace(b"6:1", b"7:1", 1)))
    with pytest.raises(DataError, match=r"mushrooms\.gz does not have the right content"):
        load_dataset("mushrooms", tmp_path)


def test_truncated_covertype(real_data: Path, tmp_path: Path) -> None:
    """Tests that a download that was cut off is refused."""
    shutil.copy(real_data / "covtype.data.gz", tmp_path)
    path = tmp_path / "covtype.data.gz"
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:100_000])
    with pytest.raises(DataError, match=r"covtype\.data\.gz is truncated .*: get it again from http"):
        load_dataset("covertype", tmp_path)


@pytest.mark.parametrize(("name", "filename"), [("covertype", "covtype.data.gz"), ("web8", "w8a.gz")])
def test_offline_without_the_file(tmp_path: Path, name: str, filename: str) -> None:
    """Tests that a set whose file is nowhere is a clear error."""
    with pytest.raises(DataError, match=f"Cannot find {filename}: it is not in data_dir .*network is down"):
        load_dataset(name, tmp_path)


def test_fetch(real_data: Path) -> None:
    """Tests that fetching returns the checked files, none for a synthetic set."""
    assert [path.name for path in fetch_dataset("adult9", real_data)] == ["a9a.gz", "a9a.t.gz"]
    assert fetch_dataset("mease-wyner") == []


def test_fetch_unknown_name() -> None:
    """Tests that only named sets can be fetched."""
    with pytest.raises(InvalidInput, match="Unknown data set 'mnist'"):
        fetch_dataset("mnist")


def test_file(tmp_path: Path) -> None:
    """Tests that a path is read as a file, as text and as a path object."""
    path = tmp_path / "a.csv"
    path.write_text("1,0\n2,1\n")
    assert len(load_dataset(path)) == len(load_dataset(str(path))) == 2


def test_file_that_is_not_there() -> None:
    """Tests that text with a known suffix is a file, not an unknown name."""
    with pytest.raises(DataError, match=r"There is no file nowhere\.csv"):
        load_dataset("nowhere.csv")


def test_case_of_names() -> None:
    """Tests that names may be written as in the paper."""
    assert load_dataset("Mease-Wyner").name == "mease-wyner"


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("covtype", "covertype"),
        ("Long-Sevedio", "long-servedio"),
        ("mease_wyner", "mease-wyner"),
        ("a9", "adult9"),
    ],
)
def test_unknown_name_suggests(name: str, close: str) -> None:
    """Tests that a mistyped name leads to the list of names and the closest."""
    with pytest.raises(
        InvalidInput, match=f"must be one of long-servedio, .*, web8, .* Did you mean '{close}'"
    ):
        load_dataset(name)


def test_unknown_name_without_suggestion() -> None:
    """Tests that a name that is like no other gets no suggestion."""
    with pytest.raises(InvalidInput, match="Unknown data set 'xyz'") as caught:
        load_dataset("xyz")
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize("name", [None, 3, b"web8"])
def test_neither_name_nor_path(name: object) -> None:
    """Tests that other objects are refused."""
    with pytest.raises(InvalidInput, match="given by name or path"):
        load_dataset(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    """Tests that the examples in the docstrings of a module hold."""
    assert doctest.testmod(importlib.import_module(f"lns.datasets.{name}")).failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_public_names_have_docstrings(name: str) -> None:
    """Tests that every public function and class of a module says what it is for."""
    module = importlib.import_module(f"lns.datasets.{name}")
    for public in module.__all__:
        value = getattr(module, public)
        if callable(value):
            assert value.__doc__, public


def test_folder_is_no_package_of_its_own() -> None:
    """Tests that nothing takes the name ``datasets`` from other packages in a process started at the root."""
    assert len(MODULES) > 10
    assert "__init__" not in MODULES
