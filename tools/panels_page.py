"""Writes docs/panels.md from the table of panels.

python tools/panels_page.py            writes it
python tools/panels_page.py --check    says by its exit status whether it is current
"""

from __future__ import annotations

import sys
from pathlib import Path

from train_ledger.config import Alerts
from train_ledger.dash.grafana import panels_md

PAGE = Path(__file__).parents[1] / "docs" / "panels.md"


def main(arguments: list[str]) -> int:
    """Write the page, or say whether it is current."""
    text = panels_md(Alerts())
    if arguments == ["--check"]:
        return 0 if PAGE.exists() and PAGE.read_text() == text else 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
