"""Which code makes the results of a run: its commit, and the versions of what it stands on."""

from __future__ import annotations

import platform
import subprocess
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import lns
from lns.errors import InvalidInput

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "cleanlab")
EXTRA = ("cleanlab", "matplotlib")  # what the extra 'paper' adds


def check_packages() -> None:
    """Make sure that everything is installed that will be needed, if only after hours.

    Raises
    ------
    InvalidInput
        If something is not.
    """
    missing = [name for name in EXTRA if find_spec(name) is None]
    if missing:
        raise InvalidInput(f'lns paper needs {" and ".join(missing)}: pip install "qlns[paper]".')


@cache
def packages() -> dict[str, str]:
    """Versions of the packages that results depend on; one that is not installed is left out."""
    found = {}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def versions() -> dict[str, str]:
    """The same, with those of Python and of this project."""
    return {"python": platform.python_version(), "qlns": lns.__version__, **packages()}


def commit(home: Path) -> str | None:
    """The commit that a package is from, marked if the checkout was changed since.

    None if the folder of the package is not in a checkout, or in one that does not track it: a virtual
    environment inside another project.
    """
    # The state of the whole checkout: some subpackages are links to folders beside the package.
    questions = (
        ["ls-files", "--error-unmatch", "--", "__init__.py"],
        ["rev-parse", "HEAD"],
        ["status", "--porcelain", "--untracked-files=no"],
    )
    try:
        _, head, changes = (
            subprocess.run(
                ["git", *words], cwd=home, capture_output=True, text=True, timeout=10, check=True
            ).stdout.strip()
            for words in questions
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return head + (" with changes" if changes else "")
