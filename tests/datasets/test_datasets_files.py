"""Tests of the readers of users' files."""

from __future__ import annotations

import builtins
import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from lns.datasets import csvfile, svmlight, text
from lns.datasets.csvfile import read_csv, read_integers
from lns.datasets.files import read_file
from lns.datasets.svmlight import read_svmlight
from lns.errors import DataError, InvalidInput


def _write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


# ---- svmlight


@pytest.mark.parametrize("name", ["a.svm", "a.svm.gz", "a.libsvm", "a.svmlight", "A.SVM"])
def test_svmlight(tmp_path: Path, name: str) -> None:
    """Tests that every suffix of the format is read, sparse and with indices from 1."""
    data = read_file(_write(tmp_path, name, "+1 1:0.5 3:2\n-1 2:1\n+1\n"))
    assert data.X.toarray().tolist() == [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    assert data.y.tolist() == [1, -1, 1]
    assert data.name == name


def test_svmlight_details(tmp_path: Path) -> None:
    """Tests comments, empty lines, tabs, Windows line ends, unsorted indices and a missing last newline."""
    content = "# made by hand\r\n1 2:1\t1:1 # note\r\n\r\n2 3:1e0\r\n2 1:0 2:1"
    table = read_svmlight(_write(tmp_path, "a.svm", content))
    assert table.X.toarray().tolist() == [[1, 1, 0], [0, 0, 1], [0, 1, 0]]
    assert table.labels.tolist() == [1, 2, 2]
    assert table.X.nnz == 4


def test_svmlight_from_zero(tmp_path: Path) -> None:
    """Tests that indices count from 0 if index 0 occurs."""
    table = read_svmlight(_write(tmp_path, "a.svm", "1 0:7\n2 1:8\n"))
    assert table.X.toarray().tolist() == [[7, 0], [0, 8]]


def test_svmlight_number_of_features(tmp_path: Path) -> None:
    """Tests that a given number of features fixes the width, up to the largest index and not below."""
    path = _write(tmp_path, "a.svm", "1 3:1\n2 1:1\n")
    assert read_svmlight(path, 5).X.shape == (2, 5)
    assert read_svmlight(path, 3).X.shape == (2, 3)
    with pytest.raises(DataError, match="has feature 3 but may have at most 2"):
        read_svmlight(path, 2)


@pytest.mark.parametrize(
    "line",
    [
        "1 2:x",
        "1 3",
        "1 3:1:2",
        "1 :3",
        "1 3:",
        "1 3: 4",
        "one 1:1",
        "1 qid:3 1:1",
        "1 1.5:2",
        "1 -1:2",
        "1 1:2-3",
    ],
)
def test_svmlight_names_the_bad_line(tmp_path: Path, line: str) -> None:
    """Tests that a line that breaks the format is named by its number and text."""
    path = _write(tmp_path, "a.svm", f"1 1:1\n\n{line}\n-1 1:1\n")
    with pytest.raises(
        DataError, match=r"Line 3 of .*a\.svm is not of the form 'label index:value \.\.\.'"
    ) as caught:
        read_svmlight(path)
    assert repr(line) in str(caught.value)


def test_svmlight_errors_do_not_cancel(tmp_path: Path) -> None:
    """Tests that a number too many in one line does not make up for one too few in another."""
    with pytest.raises(DataError, match="Line 1"):
        read_svmlight(_write(tmp_path, "a.svm", "1 3:1:2\n1 3\n"))


def test_svmlight_refuses_an_index_twice(tmp_path: Path) -> None:
    """Tests that a feature may occur once in an example."""
    with pytest.raises(DataError, match=r"Example 2 of .* has feature 4 twice"):
        read_svmlight(_write(tmp_path, "a.svm", "1 4:1\n-1 4:1 5:1 4:2\n"))


def test_svmlight_accepts_the_same_index_in_the_next_line(tmp_path: Path) -> None:
    """Tests that a feature may end one example and begin the next."""
    assert read_svmlight(_write(tmp_path, "a.svm", "1 4:1\n-1 4:1 5:1\n")).X.nnz == 3


def test_svmlight_refuses_nan(tmp_path: Path) -> None:
    """Tests that a missing value is named by column and example."""
    with pytest.raises(DataError, match=r"Column 2 of .* missing or infinite value in example 2"):
        read_svmlight(_write(tmp_path, "a.svm", "1 1:1\n-1 2:nan\n"))


@pytest.mark.parametrize("content", ["", "\n\n", "# nothing\n"])
def test_svmlight_refuses_no_examples(tmp_path: Path, content: str) -> None:
    """Tests that a file without examples is refused."""
    with pytest.raises(DataError, match="has no examples"):
        read_svmlight(_write(tmp_path, "a.svm", content))


rows = st.lists(
    st.tuples(
        st.sampled_from([-1, 1]),
        st.dictionaries(st.integers(1, 30), st.floats(-1e3, 1e3, allow_subnormal=False), max_size=6),
    ),
    min_size=1,
    max_size=12,
)


@given(rows=rows, size=st.integers(1, 64))
def test_svmlight_round_trip(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, dict[int, float]]], size: int
) -> None:
    """Tests that what is written is read back, wherever the blocks of lines end."""
    lines = [f"{y} " + " ".join(f"{i}:{x!r}" for i, x in entries.items()) for y, entries in rows]
    path = _write(tmp_path_factory.mktemp("svm"), "a.svm", "\n".join(lines) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(svmlight, "blocks", lambda stream: text.blocks(stream, size))
        table = read_svmlight(path, 31 if not any(entries for _, entries in rows) else None)
    assert table.labels.tolist() == [y for y, _ in rows]
    dense = table.X.toarray()
    for row, (_, entries) in enumerate(rows):
        for i, x in entries.items():
            assert dense[row, i - 1] == x


# ---- csv


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize("header", ["", "age,size,class\n"])
def test_csv(tmp_path: Path, name: str, header: str) -> None:
    """Tests that a table is read with and without a header, the last column being the label."""
    data = read_file(_write(tmp_path, name, header + "1,10,0\n3,20,1\n2,30,1\n"))
    assert data.X.tolist() == [[0, 0], [1, 0.5], [0.5, 1]]
    assert data.y.tolist() == [-1, 1, 1]
    assert data.classes == (0, 1)


@pytest.mark.parametrize("name", ["label", "y", "target", "Target", " Y"])
def test_csv_label_by_name(tmp_path: Path, name: str) -> None:
    """Tests that a column with a label's name is the label, wherever it stands."""
    table = read_csv(_write(tmp_path, "a.csv", f"{name},b\n5,1\n6,2\n"))
    assert table.labels.tolist() == [5, 6]
    assert table.X.tolist() == [[1], [2]]


def test_csv_label_beats_y(tmp_path: Path) -> None:
    """Tests that y is a feature beside a column called label."""
    assert read_csv(_write(tmp_path, "a.csv", "x,y,label\n1,2,3\n4,5,6\n")).labels.tolist() == [3, 6]


@pytest.mark.parametrize("header", ["", "a,b\n"])
def test_csv_text_labels(tmp_path: Path, header: str) -> None:
    """Tests that labels may be text, with and without a header: the first in the alphabet is -1."""
    data = read_file(_write(tmp_path, "a.csv", header + '1,yes\n2,"no"\n3,yes\n'))
    assert data.y.tolist() == [1, -1, 1]
    assert data.classes == ("no", "yes")


def test_csv_details(tmp_path: Path) -> None:
    """Tests a byte order mark, Windows line ends, blanks, empty lines, quotes and no last newline."""
    table = read_csv(_write(tmp_path, "a.csv", '\ufeff"a, b",y\r\n 1 , 2 \r\n\r\n"3",4\r\n-.5e1,+2'))
    assert table.X.tolist() == [[1], [3], [-5]]
    assert table.labels.tolist() == [2, 4, 2]


def test_csv_huge_integers(tmp_path: Path) -> None:
    """Tests that integers beyond 64 bits are read as floating point."""
    assert read_csv(_write(tmp_path, "a.csv", f"1,0\n{10**30},1\n")).X.tolist() == [[1], [1e30]]


def test_csv_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a table read in many blocks equals the table."""
    values = np.arange(300).reshape(100, 3) % 7
    path = _write(tmp_path, "a.csv", "a,b,c\n" + "\n".join(",".join(map(str, row)) for row in values))
    monkeypatch.setattr(csvfile, "blocks", lambda stream: text.blocks(stream, 17))
    table = read_csv(path)
    np.testing.assert_array_equal(np.column_stack([table.X, table.labels]), values)


def test_csv_names_text_column(tmp_path: Path) -> None:
    """Tests that a text column is named, with value and line."""
    with pytest.raises(DataError, match=r"Column 'colour' of .* holds text \('red' in line 3\)"):
        read_csv(_write(tmp_path, "a.csv", "size,colour,y\n1,2,0\n2,red,1\n"))


def test_csv_names_text_column_beside_text_labels(tmp_path: Path) -> None:
    """Tests that a text column is named also where labels are text and stand before it."""
    with pytest.raises(DataError, match=r"Column 'colour' of .* holds text \('red' in line 2\)"):
        read_csv(_write(tmp_path, "a.csv", "size,y,colour\n1,no,red\n2,yes,blue\n"))


def test_csv_counts_columns_without_header(tmp_path: Path) -> None:
    """Tests that without a header a text column is given by its number."""
    with pytest.raises(DataError, match=r"Column 2 of .* holds text \('b' in line 2\)"):
        read_csv(_write(tmp_path, "a.csv", "1,2,0\n1,b,1\n"))


@pytest.mark.parametrize("field", ["", " "])
def test_csv_missing_field(tmp_path: Path, field: str) -> None:
    """Tests that an empty field is named by column and line."""
    with pytest.raises(DataError, match=r"Column 'a' of .* has a missing value in line 3"):
        read_csv(_write(tmp_path, "a.csv", f"a,b,y\n1,2,0\n{field},3,1\n"))


def test_csv_missing_field_in_the_first_row(tmp_path: Path) -> None:
    """Tests that a row with an empty field is not taken for a header."""
    with pytest.raises(DataError, match=r"Column 2 of .* has a missing value in line 1"):
        read_csv(_write(tmp_path, "a.csv", "1,,0\n1,2,1\n"))


@pytest.mark.parametrize("value", ["nan", "NaN", "inf", "-inf"])
def test_csv_not_finite(tmp_path: Path, value: str) -> None:
    """Tests that NaN and infinity are named by column and example."""
    with pytest.raises(DataError, match=r"Column 'b' of .* missing or infinite value in example 2"):
        read_csv(_write(tmp_path, "a.csv", f"a,b,y\n1,2,0\n1,{value},1\n"))


@pytest.mark.parametrize(("line", "found"), [("1,2", 2), ("1,2,3,4", 4)])
def test_csv_ragged(tmp_path: Path, line: str, found: int) -> None:
    """Tests that a line with too few or too many columns is named."""
    with pytest.raises(DataError, match=rf"Line 3 of .* has {found} columns where 3 are expected"):
        read_csv(_write(tmp_path, "a.csv", f"a,b,y\n1,2,0\n{line}\n"))


def test_csv_digit_separators_are_text(tmp_path: Path) -> None:
    """Tests that 1_000 is text, with numeric and with text labels."""
    for labels in ("01", "np"):
        with pytest.raises(DataError, match=r"Column 'a' of .* holds text \('1_000' in line 3\)"):
            read_csv(_write(tmp_path, "a.csv", f"a,y\n1,{labels[0]}\n1_000,{labels[1]}\n"))


def test_csv_one_column(tmp_path: Path) -> None:
    """Tests that a file with another separator is not read as labels alone."""
    with pytest.raises(DataError, match="at least two columns separated by commas"):
        read_csv(_write(tmp_path, "a.csv", "1;2\n3;4\n"))


@pytest.mark.parametrize("content", ["", "\n", "a,y\n"])
def test_csv_no_examples(tmp_path: Path, content: str) -> None:
    """Tests that an empty file and a header alone are refused."""
    with pytest.raises(DataError, match="has no examples"):
        read_csv(_write(tmp_path, "a.csv", content))


def test_csv_not_text(tmp_path: Path) -> None:
    """Tests that binary content is refused."""
    with pytest.raises(DataError, match="not text in UTF-8"):
        read_csv(_write(tmp_path, "a.csv", b"\xff\xfe\x00,\x01\n"))


def test_integers(tmp_path: Path) -> None:
    """Tests that a table of integers is read column-major as int16."""
    table = read_integers(_write(tmp_path, "a.data.gz", "1,-2\n32767,-32768\n"), 2)
    assert table.dtype == np.int16
    assert table.flags.f_contiguous
    assert table.tolist() == [[1, -2], [32767, -32768]]


@pytest.mark.parametrize("value", ["32768", "-32769", "1.5"])
def test_integers_out_of_range(tmp_path: Path, value: str) -> None:
    """Tests that values beyond 16 bits are refused."""
    with pytest.raises(DataError, match="not integers of 16 bits"):
        read_integers(_write(tmp_path, "a.data", f"1,2\n{value},3\n"), 2)


def test_integers_wrong_columns(tmp_path: Path) -> None:
    """Tests that another number of columns is refused and named."""
    with pytest.raises(DataError, match=r"Line 1 of .* has 2 columns where 55 are expected"):
        read_integers(_write(tmp_path, "a.data", "1,2\n"), 55)


# ---- npz


def test_npz_dense(tmp_path: Path) -> None:
    """Tests that X and y of an archive are read."""
    np.savez(tmp_path / "a.npz", X=np.array([[1, 4], [3, 2]]), y=np.array([[False], [True]]))
    data = read_file(tmp_path / "a.npz")
    assert data.X.tolist() == [[0, 1], [1, 0]]
    assert data.y.tolist() == [-1, 1]


@pytest.mark.parametrize("prefix", ["", "X_"])
def test_npz_sparse(tmp_path: Path, prefix: str) -> None:
    """Tests that the parts of a CSR matrix are read and stay sparse."""
    X = sparse.random(20, 6, 0.3, format="csr", random_state=0)
    parts = {prefix + part: getattr(X, part) for part in ("data", "indices", "indptr", "shape")}
    np.savez(tmp_path / "a.npz", y=np.arange(20) % 2, **parts)
    data = read_file(tmp_path / "a.npz")
    assert data.is_sparse
    np.testing.assert_allclose(data.X.toarray(), X.toarray() / X.toarray().max(axis=0), rtol=1e-6)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.eye(2)}, "must hold the labels as an array y but has X"),
        ({"y": np.arange(2)}, "must hold X, or data, indices, indptr and shape, but has y"),
        ({"X": np.eye(2), "y": np.arange(3)}, r"has 2 rows but y has the shape \(3,\)"),
        ({"X": np.ones(2), "y": np.arange(2)}, "must be a table of numbers"),
        ({"X": np.array([["a"], ["b"]]), "y": np.arange(2)}, "must be a table of numbers"),
        ({"X": np.ones((0, 2)), "y": np.ones(0)}, "has no examples"),
        ({"X": np.array([[1.0, np.nan]]), "y": np.ones(1)}, "Column 2 of .* missing or infinite"),
        ({"X": np.array([[None]]), "y": np.ones(1)}, "not a numpy archive without objects"),
        (
            {"data": [1.0], "indices": [9], "indptr": [0, 1], "shape": [1, 2], "y": [1]},
            "do not form a CSR matrix",
        ),
    ],
)
def test_npz_refuses(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    """Tests that archives without the right arrays are refused."""
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataError, match=message):
        read_file(tmp_path / "a.npz")


def test_npz_single_array(tmp_path: Path) -> None:
    """Tests that an array under the name of an archive is refused."""
    with (tmp_path / "a.npz").open("wb") as stream:
        np.save(stream, np.eye(2))
    with pytest.raises(DataError, match="is a single array"):
        read_file(tmp_path / "a.npz")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not really", b"text"])
def test_npz_damaged(tmp_path: Path, content: bytes) -> None:
    """Tests that what is no archive is refused."""
    with pytest.raises(DataError, match="not a numpy archive"):
        read_file(_write(tmp_path, "a.npz", content))


# ---- parquet


def test_parquet(tmp_path: Path) -> None:
    """Tests that numbers and truth values are features and text can be the label."""
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = arrow.table({"a": [1, 3, 2], "y": ["n", "p", "p"], "b": [True, False, False]})
    parquet.write_table(table, tmp_path / "a.parquet")
    data = read_file(tmp_path / "a.parquet")
    assert data.X.tolist() == [[0, 1], [1, 0], [0.5, 0]]
    assert data.y.tolist() == [-1, 1, 1]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": ["u", "v"], "y": [0, 1]}, "Column 'a' of .* holds string, not numbers"),
        ({"a": [1.0, None], "y": [0, 1]}, "Column 'a' of .* missing or infinite value in example 2"),
        ({"a": [1, None], "y": [0, 1]}, "Column 'a' of .* missing or infinite value in example 2"),
        ({"a": [1, 2], "y": [0, None]}, "A label of .* is missing"),
        ({"y": [0, 1]}, "at least two columns but has 1"),
        ({"a": [], "y": []}, "has no examples"),
    ],
)
def test_parquet_refuses(tmp_path: Path, columns: dict[str, list[object]], message: str) -> None:
    """Tests that text features and missing values are refused and named."""
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(arrow.table(columns), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=message):
        read_file(tmp_path / "a.parquet")


def test_parquet_damaged(tmp_path: Path) -> None:
    """Tests that what is no Parquet file is refused."""
    pytest.importorskip("pyarrow")
    with pytest.raises(DataError, match="not a Parquet file, or is damaged"):
        read_file(_write(tmp_path, "a.parquet", "text"))


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that without pyarrow the error says which extra to install."""
    real = builtins.__import__

    def fake(name: str, *args: object, **kwargs: object) -> object:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", fake)
    with pytest.raises(ImportError, match=r'pip install "qlns\[parquet\]"'):
        read_file(_write(tmp_path, "a.parquet", "text"))


# ---- any file


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("000", "exactly two label values but has 1: 0"),
        ("012", "exactly two label values but has 3: 0, 1, 2"),
    ],
)
def test_two_classes_only(tmp_path: Path, labels: str, message: str) -> None:
    """Tests that one and three classes are refused, with their values."""
    with pytest.raises(DataError, match=message):
        read_file(_write(tmp_path, "a.csv", "".join(f"{i},{label}\n" for i, label in enumerate(labels))))


def test_many_classes_are_not_all_listed(tmp_path: Path) -> None:
    """Tests that the message about a column that is no label stays short."""
    with pytest.raises(DataError, match=r"has 100: 0, 1, 2, 3, 4, 5, 6, 7, \.\.\."):
        read_file(_write(tmp_path, "a.csv", "".join(f"1,{i}\n" for i in range(100))))


def test_missing_label(tmp_path: Path) -> None:
    """Tests that a row without a label is refused."""
    with pytest.raises(DataError, match=r"A label of .* is missing"):
        read_file(_write(tmp_path, "a.csv", "a,y\n1,p\n2,\n3,n\n"))


def test_training_scaling_and_classes(tmp_path: Path) -> None:
    """Tests that further rows get the scaling, the width and the classes of the training file."""
    train = read_file(_write(tmp_path, "train.svm", "3 1:4 2:2\n7 1:1\n"))
    new = read_file(_write(tmp_path, "new.svm", "7 1:2\n"), scaling=train.scaling, classes=train.classes)
    assert new.X.toarray().tolist() == [[0.5, 0]]
    assert new.y.tolist() == [1]


def test_unknown_class_in_further_rows(tmp_path: Path) -> None:
    """Tests that a label that training did not know is refused."""
    with pytest.raises(DataError, match="label values 9, which are neither 3 nor 7"):
        read_file(_write(tmp_path, "a.svm", "9 1:2\n"), classes=(3, 7))


def test_unknown_suffix(tmp_path: Path) -> None:
    """Tests that another suffix is refused with the list of known ones."""
    with pytest.raises(InvalidInput, match=r"must end with \.svm, .*\.parquet\. Got '.*a\.xlsx' instead"):
        read_file(_write(tmp_path, "a.xlsx", ""))


def test_no_file(tmp_path: Path) -> None:
    """Tests that a missing file is named."""
    with pytest.raises(DataError, match=r"There is no file .*a\.csv"):
        read_file(tmp_path / "a.csv")


@pytest.mark.parametrize("keep", [5, 60])
def test_truncated_gzip(tmp_path: Path, keep: int) -> None:
    """Tests that a truncated file is said to be truncated, in one sentence."""
    path = _write(tmp_path, "a.csv.gz", "".join(f"{i * 7919 % 1000},{i % 2}\n" for i in range(100)))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match=r"a\.csv\.gz is truncated or damaged .*: get it again\.$"):
        read_file(path)


def test_damaged_gzip(tmp_path: Path) -> None:
    """Tests that a gzip file with a wrong byte is said to be damaged."""
    path = _write(tmp_path, "a.csv.gz", "".join(f"{i * 7919 % 1000},{i % 2}\n" for i in range(100)))
    content = bytearray(path.read_bytes())
    content[-6] ^= 0xFF  # the stored CRC-32
    path.write_bytes(content)
    with pytest.raises(DataError, match="truncated or damaged"):
        read_file(path)
