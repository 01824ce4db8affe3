"""``python -m lns``."""

from __future__ import annotations

import sys

from lns.cli import main

if __name__ == "__main__":
    sys.exit(main())
