"""Tests of shell completion."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from lns.commands.completion import SHELLS
from lns.datasets.load import DATASETS


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_a_script(run, shell):
    """Tests that commands and options are in it."""
    code, out, err = run("completion", shell)
    assert (code, err) == (0, "")
    for word in ("train", "predict", "time-limit"):
        assert word in out


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["tr"], {"train"}),
        (["train", "--time"], {"--time-limit"}),
        (["train", "--backend", ""], {"local", "ray"}),
        (["train", "--solver", "em"], {"emulator"}),
        (["train", "cover"], {"covertype"}),
        (["completion", "z"], {"zsh"}),
    ],
    ids=" ".join,
)
def test_bash_completes(run, words, expected, tmp_path):
    """Tests the script in a real bash."""
    script = run("completion", "bash")[1]
    line = " ".join(f"'{word}'" for word in ["lns", *words])
    ask = f'COMP_WORDS=({line}); COMP_CWORD={len(words)}; _shtab_lns; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert set(done.stdout.split()) == expected


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_files_beside_names(run, tmp_path):
    """Tests that a data set may be a name or a file."""
    (tmp_path / "mine.csv").touch()
    script = run("completion", "bash")[1]
    ask = 'COMP_WORDS=(lns train m); COMP_CWORD=2; _shtab_lns; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert set(done.stdout.split()) == {"mine.csv", *(name for name in DATASETS if name.startswith("m"))}
