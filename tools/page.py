"""A page of docs/ that is written by a tool from what the code says.

python tools/NAME_page.py            writes it
python tools/NAME_page.py --check    says by its exit status whether it is current
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["DOCS", "WORDS", "table", "write_or_check"]

DOCS = Path(__file__).parents[1] / "docs"
WORDS = Path(__file__).parent / "pages"
"""What is written by hand of pages that are made: prose, and meanings without their values."""


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    r"""A table in Markdown.

    >>> print(table(("a", "b"), [("x|y", "z")]), end="")
    | a | b |
    | --- | --- |
    | x\|y | z |
    """
    head = tuple(head)
    lines = [head, ("---",) * len(head), *(tuple(row) for row in rows)]
    return "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines)


def write_or_check(path: Path, text: str, arguments: Sequence[str]) -> int:
    """Write the page, or with --check say whether it is current: 0, or 1 where it is not."""
    if list(arguments) != ["--check"]:
        path.write_text(text, encoding="utf-8")
        return 0
    return 0 if path.exists() and path.read_text(encoding="utf-8") == text else 1
