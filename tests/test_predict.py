"""Tests of ``lns predict``, and of reading rows with and without labels."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from run_cases import train, write_csv
from scipy import sparse

import lns
from lns.datasets.files import read_rows
from lns.errors import DataError


def table(text):
    """The rows of a table."""
    return list(csv.DictReader(io.StringIO(text)))


def test_a_table_of_classes_and_scores(run, mail_run):
    """Tests standard output against the model in Python; the error goes to standard error."""
    folder, data = mail_run
    code, out, err = run("predict", folder, data)
    rows = read_rows(data, 2, ("no", "yes"))
    model = lns.load_model(folder)
    lines = table(out)
    assert code == 0
    assert [line["row"] for line in lines] == [str(k + 1) for k in range(80)]
    assert [line["prediction"] for line in lines] == model.predict(rows.X).tolist()
    assert np.array([line["score"] for line in lines], dtype=float) == pytest.approx(
        model.decision_function(rows.X)
    )
    given, wanted = ([line[key] for line in lines] for key in ("prediction", "label"))
    wrong = 100 * np.mean(np.array(given) != np.array(wanted))
    assert err == (
        f"lns: 80 rows: {given.count('no')} no, {given.count('yes')} yes; "
        f"{wrong:.2f} % differ from the labels of the file\n"
    )


def test_a_file_without_labels(run, mail_run, tmp_path):
    """Tests that the same rows without their label column get the same classes, and no error is counted."""
    folder, data = mail_run
    with_labels = table(run("predict", folder, data)[1])
    bare = tmp_path / "bare.csv"
    bare.write_text("".join(line.rpartition(",")[0] + "\n" for line in data.read_text().splitlines()))
    code, out, err = run("predict", folder, bare)
    assert code == 0
    for line in with_labels:
        del line["label"]
    assert table(out) == with_labels
    assert "differ" not in err


def test_a_table_in_a_file(run, mail_run, tmp_path):
    """Tests --out: the table there, a summary on standard output."""
    folder, data = mail_run
    expected = run("predict", folder, data)[1]
    code, out, err = run("predict", folder, data, "--out", tmp_path / "p.csv")
    assert (code, err) == (0, "")
    assert (tmp_path / "p.csv").read_text() == expected
    assert out.startswith("80 rows: ")
    assert str(tmp_path / "p.csv") in out


def test_json(run, mail_run, tmp_path):
    """Tests the JSON object, with and without --out."""
    folder, data = mail_run
    values = json.loads(run("predict", folder, data, "--json")[1])
    assert values["classes"] == ["no", "yes"]
    assert values["examples"] == 80 == sum(values["predicted"]) == len(values["scores"])
    assert values["predictions"].count("no") == values["predicted"][0]
    short = json.loads(run("predict", folder, data, "--json", "--out", tmp_path / "p.csv")[1])
    assert short == {key: values[key] for key in values if key not in ("predictions", "scores")}


def test_a_data_set_by_name(run, finished_run):
    """Tests that a named set is not scaled twice, and that the model may be given by its file."""
    data = lns.load_dataset("long-servedio")
    model = lns.load_model(finished_run)
    values = json.loads(run("predict", finished_run / "model.json", "long-servedio", "--json")[1])
    expected = (model.predict(data.X, scaled=True) != data.y).mean()
    assert values["error"] == pytest.approx(expected)
    assert values["classes"] == [-1, 1]


def test_whole_numbers_stay_whole(run, tmp_path):
    """Tests that labels 0 and 1 beside fractions come back as 0 and 1."""
    data = write_csv(tmp_path / "d.csv", [(k / 10, -k / 7, k % 2) for k in range(40)])
    folder = train(tmp_path / "r", str(data), "--rows", "40")
    lines = table(run("predict", folder, data)[1])
    assert {line["label"] for line in lines} == {"0", "1"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", "words\n1\n2\n", "has one"),
        ("x.csv", "words,links,more,label\n1,2,3,no\n", "has 3 features but the model was trained with 2"),
        ("x.csv", "links,words\n1,2\n", "Feature 1 of"),
        ("x.csv", "words,links,label\n1,2,maybe\n", "label values 'maybe', which are neither 'no' nor 'yes'"),
        ("x.csv", "words,links\n1,oops\n", "holds text"),
        ("x.txt", "1,2\n", "Unknown data set"),
    ],
)
def test_wrong_files_are_one_line(run, mail_run, tmp_path, name, content, message):
    """Tests that each mistake is named."""
    (tmp_path / name).write_text(content)
    code, out, err = run("predict", mail_run[0], tmp_path / name if name != "x.txt" else "x.txt")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_a_named_set_with_other_features_is_refused(run, mail_run):
    """Tests the check of the number of features."""
    code, _, err = run("predict", mail_run[0], "mease-wyner")
    assert code == 2
    assert "mease-wyner has 20 features but the model was trained with 2" in err


def test_a_place_that_cannot_be_written_to(run, mail_run, tmp_path):
    """Tests the message about --out."""
    code, _, err = run("predict", *mail_run, "--out", tmp_path / "no" / "p.csv")
    assert (code, err.count("\n")) == (2, 1)
    assert "cannot be written" in err


# ---- rows ------------------------------------------------------------------------------------------------

X = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]])


def in_every_format(folder, labels):
    """The same rows in every format, with these labels or without any."""
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    columns = {"a": X[:, 0], "b": X[:, 1]} | ({} if labels is None else {"label": labels})
    parquet.write_table(pyarrow.table(columns), folder / "x.parquet")
    np.savez(folder / "x.npz", X=X, **({} if labels is None else {"y": labels}))
    last = [""] * 3 if labels is None else [f",{label}" for label in labels]
    (folder / "x.csv").write_text("".join(f"{a},{b}{c}\n" for (a, b), c in zip(X, last, strict=True)))
    first = [0] * 3 if labels is None else labels
    lines = (f"{label} 1:{a} 2:{b}\n" for label, (a, b) in zip(first, X, strict=True))
    (folder / "x.svm").write_text("".join(lines))
    return [folder / name for name in ("x.parquet", "x.npz", "x.csv", "x.svm")]


@pytest.mark.parametrize("labels", [None, [1, 2, 1]], ids=["without labels", "with labels"])
def test_every_format_can_come_without_labels(tmp_path, labels):
    """Tests the raw features, and the labels as signs or none."""
    for path in in_every_format(tmp_path, labels):
        rows = read_rows(path, 2, (1, 2))
        dense = rows.X.toarray() if sparse.issparse(rows.X) else rows.X
        assert dense.tolist() == X.tolist()
        assert (None if rows.y is None else rows.y.tolist()) == (None if labels is None else [-1, 1, -1])


def test_zero_is_a_label_where_it_is_a_class(tmp_path):
    """Tests a file in LIBSVM format that holds one class only."""
    path = tmp_path / "x.svm"
    path.write_text("0 1:1 2:3\n0 2:1\n")
    assert read_rows(path, 2, (0, 1)).y.tolist() == [-1, -1]
    assert read_rows(path, 2, (-1, 1)).y is None


def test_one_feature_without_labels(tmp_path):
    """Tests that a file of one column is enough for a model of one feature, also with quotes."""
    path = tmp_path / "x.csv"
    path.write_text("a\n1\n2\n")
    assert read_rows(path, 1, (0, 1)).X.tolist() == [[1], [2]]
    path.write_text('a\n"1"\n"2"\n')
    rows = read_rows(path, 1, (0, 1))
    assert (rows.X.tolist(), rows.y, rows.names) == ([[1], [2]], None, ("a",))


def test_training_needs_labels(tmp_path, mail_run):
    """Tests that a training file with a known scaling is refused without labels."""
    from lns.datasets.files import read_file

    data = lns.load_dataset(mail_run[1])
    path = tmp_path / "x.csv"
    path.write_text("1,2\n3,4\n")
    with pytest.raises(DataError, match="has no labels"):
        read_file(path, scaling=data.scaling, classes=data.classes)
