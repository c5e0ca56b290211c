"""Writes docs/runbook.md, so that the site has the runbook which every alert links to.

python tools/runbook_page.py            writes it
python tools/runbook_page.py --check    says by its exit status whether it is current
"""

from __future__ import annotations

import sys

from page import DOCS, write_or_check

from train_ledger.ops.runbook import RUNBOOK

PAGE = DOCS / "runbook.md"
_HEAD = "# Runbook\n"
_SAYS = "\n<!-- Written by tools/runbook_page.py from src/train_ledger/ops/runbook; change it there. -->\n"


def page() -> str:
    """The whole page."""
    return RUNBOOK.read_text(encoding="utf-8").replace(_HEAD, _HEAD + _SAYS, 1)


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page(), sys.argv[1:]))
