"""Writes docs/panels.md from the table of panels.

python tools/panels_page.py            writes it
python tools/panels_page.py --check    says by its exit status whether it is current
"""

from __future__ import annotations

import sys

from page import DOCS, write_or_check

from train_ledger.config import Alerts
from train_ledger.dash.grafana import panels_md

PAGE = DOCS / "panels.md"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, panels_md(Alerts()), sys.argv[1:]))
