"""Tests of the report: what it says, that it stands alone, that everybody can read it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
import urllib.error
import urllib.request
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from run_cases import events, train, write_csv

from lns.errors import InvalidInput
from lns.report import live
from lns.report.charts import thin
from lns.report.numbers import alike, class_name, count, duration, percent, plain, tick_texts, ticks
from lns.report.page import render
from lns.report.story import Story

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """The elements of a page, with a check that they are nested well."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.words = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)

    def all(self, tag):
        """The attributes of every element of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self):
        """What can be read."""
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def page(finished_run):
    """The report of the finished run."""
    return Page(render(Story(finished_run)))


# ---- what it says ----------------------------------------------------------------------------------------


def test_the_figures_are_those_of_the_run(page, finished_run):
    """Tests the numbers a person looks for first."""
    end = events(finished_run)[-1]
    assert f"{100 * end['test_error']:.2f} %" in page.text
    assert f"Objective {plain(end['objective'], 5)}" in page.text
    assert f"Flagged {end['flagged']}" in page.text
    assert f"{100 * end['flip_recall']:.1f} %" in page.text
    assert "stopped by the limit of rounds" in page.text


def test_every_part_is_there(page):
    """Tests headings of all that was asked for."""
    for title in (
        "Objective over time", "Objective over rounds", "Accepted moves by kind of neighbourhood",
        "Sizes of the sub-QUBOs", "Where the time went", "Margins of the training examples",
        "The most suspicious training rows", "Weights on their grids", "Options", "Data and versions",
    ):  # fmt: skip
        assert title in page.text
    assert "The chip" not in page.text


def test_the_most_suspicious_rows_are_listed(page, finished_run):
    """Tests the table against the file."""
    first = json.loads((finished_run / "margins.json").read_text())["suspicious"][0]
    shown = f"{first['margin']:.3f}".replace("-", "−")
    assert f"1 {count(first['row'])} +1 {shown} yes {'yes' if first['flipped'] else 'no'}" in page.text


def test_moves_are_counted_by_kind(finished_run):
    """Tests that tried moves are all neighbourhoods, and accepted ones belong to accepted rounds."""
    story = Story(finished_run)
    rounds = [event for event in events(finished_run) if event["event"] == "round"]
    assert sum(len(one.moves) for one in story.rounds) == sum(len(one["neighbourhoods"]) for one in rounds)
    for one in story.rounds:
        outcomes = {move.outcome for move in one.moves}
        assert outcomes <= {one.outcome, "reject"}
        assert one.outcome in outcomes


def test_a_chip_has_a_picture(tmp_path, monkeypatch):
    """Tests a run on the emulator: chains drawn, calls in figures."""
    monkeypatch.setenv("LNS_CACHE_DIR", str(tmp_path / "cache"))
    folder = train(tmp_path / "r", "--solver", "emulator", "--topology", "chimera:4")
    page = Page(render(Story(folder)))
    assert "chimera:4 with its largest round" in page.text
    assert "broken chains" in page.text
    (picture,) = (one for one in page.all("svg") if one.get("class") == "chip")
    assert "of its qubits form" in picture["aria-label"]


def test_names_cannot_break_the_page(tmp_path):
    """Tests that file, column and class names with markup stay text."""
    evil = "<script>alert(1)</script>"
    rows = [(k, k % 3, "<b>" if k % 2 else "&amp;") for k in range(40)]
    data = write_csv(tmp_path / "a<i>'\".csv", rows, f"{evil},y<z,label")
    page = Page(render(Story(train(tmp_path / "r", str(data), "--rows", "40"))))
    assert len(page.all("script")) == 1
    assert not page.all("b")
    assert evil in page.text


def test_a_run_that_has_not_begun_has_a_page(finished_run, tmp_path):
    """Tests a folder with nothing but its configuration."""
    (tmp_path / "config.json").write_text((finished_run / "config.json").read_text())
    assert "Nothing has been found yet." not in Page(render(Story(tmp_path))).text
    assert "has not said that it has ended" in Page(render(Story(tmp_path))).text


def test_long_runs_are_thinned(finished_run, tmp_path):
    """Tests that 5,000 rounds and 5,000 features give a page of moderate size."""
    for name in ("config.json", "margins.json"):
        (tmp_path / name).write_text((finished_run / name).read_text())
    model = json.loads((finished_run / "model.json").read_text())
    model["weights"] = np.linspace(-1, 1, 5000).tolist()
    model["training"]["weight_grid"] = {"bits": 4, "lo": [-1.0] * 5000, "hi": [1.0] * 5000}
    (tmp_path / "model.json").write_text(json.dumps(model))
    start, *rounds, end = events(finished_run)
    with (tmp_path / "events.jsonl").open("w") as stream:
        stream.write(json.dumps(start) + "\n")
        for k in range(5000):
            stream.write(
                json.dumps({**rounds[k % 3], "round": k, "seconds": k / 10, "outcome": "best"}) + "\n"
            )
        stream.write(json.dumps(end) + "\n")
    text = render(Story(tmp_path))
    assert len(text) < 700_000
    assert "5,000" in Page(text).text


# ---- that it stands alone, and that everybody can read it ------------------------------------------------


def test_nothing_comes_from_elsewhere(page, finished_run):
    """Tests that no element, style or script names another file or host."""
    text = render(Story(finished_run))
    for element, attributes in page.elements:
        for name in ("src", "href", "data", "action", "poster", "srcset"):
            if attributes.get(name):
                assert attributes[name].startswith(("#", "data:,")), (element, name)
    assert "http://" not in text
    assert "https://" not in text
    assert not re.search(r"@import|url\(", text)


def test_pictures_are_described_in_words(page):
    """Tests that every picture has a label with facts, or is hidden from those who cannot see it."""
    pictures = page.all("svg")
    assert len(pictures) > 5
    for one in pictures:
        if one.get("aria-hidden") != "true":
            assert one["role"] == "img"
            assert re.search(r"\d", one["aria-label"])


def test_landmarks_headings_and_captions(page):
    """Tests the structure that keyboards and screen readers use."""
    assert page.all("html") == [{"lang": "en"}]
    for name in ("header", "nav", "main", "footer", "h1"):
        assert len(page.all(name)) == 1
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    assert len(page.all("table")) == len(page.all("caption"))
    assert all(one.get("scope") == "col" for one in page.all("th"))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for link in page.all("a"):
        assert link["href"].removeprefix("#") in ids
    assert page.all("a")[0]["class"] == "skip"


def test_dark_mode_print_and_still_pages_are_styled(finished_run):
    """Tests that the style speaks of each."""
    text = render(Story(finished_run))
    for query in ("prefers-color-scheme: dark", "prefers-reduced-motion", "@media print", "max-width"):
        assert query in text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_a_browser_shows_it_without_complaint(run, finished_run, tmp_path):
    """Tests the page in a real browser: no error of the script, no element wider than a narrow window."""
    path = tmp_path / "r.html"
    assert run("report", finished_run, "-o", path)[0] == 0
    probe = "<script>document.title = document.documentElement.scrollWidth + ' of ' + innerWidth</script>"
    path.write_text(path.read_text().replace("</body>", probe + "</body>"))
    done = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
         "--window-size=500,900", "--dump-dom", path.as_uri()],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    width, window = re.search(r"<title>(\d+) of (\d+)</title>", done.stdout).groups()
    assert int(width) <= int(window)
    assert "Uncaught" not in done.stderr


# ---- the command -----------------------------------------------------------------------------------------


def test_the_command_says_where_the_page_is(run, mail_run, tmp_path):
    """Tests the default place is the folder, and -o."""
    folder, _ = mail_run
    code, out, err = run("report", folder, "-o", tmp_path / "x.html")
    assert (code, out, err) == (0, f"{tmp_path / 'x.html'}\n", "")
    assert (tmp_path / "x.html").read_text().startswith("<!DOCTYPE html>")
    assert not (folder / "report.html").exists()


def test_the_command_opens_a_browser(run, finished_run, tmp_path, monkeypatch):
    """Tests --open, with a browser and without one."""
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    path = tmp_path / "x.html"
    assert run("report", finished_run, "--open", "-o", path)[::2] == (0, "")
    assert opened == [path.as_uri()]
    monkeypatch.setattr("webbrowser.open", lambda url: False)
    code, _, err = run("report", finished_run, "--open", "-o", path)
    assert code == 0
    assert "open it yourself" in err or f"open {path} yourself" in err


def test_a_place_that_cannot_be_written_to(run, finished_run, tmp_path):
    """Tests the remedy."""
    code, _, err = run("report", finished_run, "-o", tmp_path / "no" / "x.html")
    assert (code, err.count("\n")) == (2, 1)
    assert "Name another place with -o" in err


# ---- live ------------------------------------------------------------------------------------------------


def fetch(url, **headers):
    """Status and content of an address."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


def test_a_live_page_grows_and_says_when_it_is_over(finished_run, tmp_path, capfd):
    """Tests that the page asks for its next version while the run is going on, and no longer."""
    lines = (finished_run / "events.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "config.json").write_text((finished_run / "config.json").read_text())
    (tmp_path / "events.jsonl").write_text("".join(lines[:2]))
    with live.serving(tmp_path) as server:
        assert server.address in capfd.readouterr().err
        status, text = fetch(server.address)
        assert status == 200
        assert 'data-every="3"' in text
        assert "running" in Page(text).text
        (tmp_path / "events.jsonl").write_text("".join(lines))
        timer = threading.Timer(0.2, lambda: last.append(fetch(server.address)[1]))
        last = []
        timer.start()
    timer.join()
    assert "data-every" not in last[0]
    assert "finished" in Page(last[0]).text
    with pytest.raises(OSError):  # noqa: PT011  the place is closed
        urllib.request.urlopen(server.address, timeout=5)


def test_only_this_machine_is_served(finished_run):
    """Tests the address it listens at, and that foreign names and other pages are refused."""
    with live.serving(finished_run) as server:
        server.asked = -1e9
        assert server.server_address[0] == "127.0.0.1"
        assert fetch(server.address, Host="evil.example:80")[0] == 403
        assert fetch(server.address + "model.json")[0] == 404
        assert fetch(server.address.replace("127.0.0.1", "localhost"))[0] == 200
        server.asked = -1e9  # nobody is watching: no need to wait


def test_a_taken_port_is_one_sentence(finished_run):
    """Tests the remedy."""
    with live.serving(finished_run) as server:
        port = server.server_address[1]
        with (
            pytest.raises(InvalidInput, match=f"--port {port} cannot be used"),
            live.serving(finished_run, port),
        ):
            pass
    with pytest.raises(InvalidInput, match="--port 99999 cannot be used"), live.serving(finished_run, 99_999):
        pass


def test_a_run_can_be_watched(run, tmp_path):
    """Tests `lns train --live`: the address on standard error, the JSON alone on standard output."""
    code, out, err = run(
        "train", "--rows", "300", "--max-rounds", "2", "--out", tmp_path / "r", "--live", "--json"
    )
    assert code == 0
    assert json.loads(out)["rounds"] == 2
    assert re.search(r"http://127\.0\.0\.1:\d+/ until it ends", err)


# ---- numbers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (percent(0.1234), "12.3 %"), (percent(0.0), "0.0 %"), (percent(0.0001), "< 0.1 %"),
        (percent(0.9999), "> 99.9 %"), (percent(1.0), "100.0 %"), (percent(0.00123, 2), "0.12 %"),
        (plain(0.098550), "0.09855"), (plain(1234567.0), "1.235e6"), (plain(-0.5), "−0.5"), (plain(0), "0"),
        (plain(1e-6), "1e−6"), (plain(12.0), "12"), (plain(120.0, 2), "120"), (plain(-np.inf), "−∞"),
        (duration(0.44), "0.4 s"), (duration(12.3), "12 s"), (duration(200), "3 min 20 s"),
        (duration(180), "3 min"), (duration(7500), "2 h 5 min"), (count(-1234), "−1,234"),
        (class_name(1), "+1"), (class_name(-1.0), "−1"), (class_name("ham"), "ham"), (class_name(2.0), "2"),
        (" ".join(alike([12.05, -9.9, 0.0])), "12.05 −9.90 0.00"), (" ".join(alike([0.0])), "0"),
        (" ".join(tick_texts(ticks(0, 1))), "0.0 0.2 0.4 0.6 0.8 1.0"),
        (" ".join(tick_texts(ticks(-30, 40, 6))), "−20 0 20 40"),
        (" ".join(tick_texts(ticks(0.4439, 0.4446, 4))), "0.4440 0.4442 0.4444 0.4446"),
    ],
)  # fmt: skip
def test_numbers_are_written_for_people(got, expected):
    """Tests formats at their edges."""
    assert got.replace("\N{NO-BREAK SPACE}", " ") == expected


def test_thinning_keeps_the_ends():
    """Tests that the first and the last point stay."""
    points = [(float(k), 0.0) for k in range(1001)]
    few = thin(points, 10)
    assert (few[0], few[-1], len(few)) == (points[0], points[-1], 10)
    assert thin(points[:5], 10) == points[:5]
