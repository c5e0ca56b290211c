"""A page of docs/ that is written by a tool from what the code says.

python tools/NAME_page.py            writes it
python tools/NAME_page.py --check    says by its exit status whether it is current
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = ["DOCS", "write_or_check"]

DOCS = Path(__file__).parents[1] / "docs"


def write_or_check(path: Path, text: str, arguments: Sequence[str]) -> int:
    """Write the page, or with --check say whether it is current: 0, or 1 where it is not."""
    if list(arguments) != ["--check"]:
        path.write_text(text, encoding="utf-8")
        return 0
    return 0 if path.exists() and path.read_text(encoding="utf-8") == text else 1
