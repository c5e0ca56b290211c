"""What the README shows, for whoever has what it should look like."""

from __future__ import annotations

import re
from pathlib import Path

from shell import blocks

__all__ = ["CHINESE", "DEMO", "FRAMEWORKS", "HANG", "LOOP", "README", "ROOT", "not_said"]

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")
DEMO, HANG = (text for kind, text in blocks(README) if kind == "text")
LOOP, FRAMEWORKS = (text for kind, text in blocks(README) if kind == "python")


def not_said(shown: str, said: str) -> list[str]:
    """The lines of a block that shows an output in short, and which no line of the output is like."""
    lines = {_unnumbered(line) for line in said.splitlines()}
    return [line for line in shown.splitlines() if line.strip() and _unnumbered(line) not in lines]


def _unnumbered(line: str) -> str:
    """A line without what is another one each night: times, names, numbers, and the room that these take.

    >>> _unnumbered("  culprit: rank 3 on node001") == _unnumbered("culprit:  rank 12 on host-7")
    True
    """
    line = re.sub(r"(?<=--run )\S+|\bon [\w.-]+$|\b(r42|run)(?=:)", "", line)
    return re.sub(r"(?:[-\s]|\d+(?:\.\d+)?)+", " ", line).strip()
