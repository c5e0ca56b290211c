"""Every command of ours that the documentation shows is one: its verb is there, and so are its options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from train_ledger.cli import app

ROOT = Path(__file__).parents[1]
PAGES = [
    path.relative_to(ROOT)
    for path in (
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "deploy").rglob("*.md")),
        ROOT / "bench" / "README.md",
    )
    if path.name != "CHANGELOG.md"
]
_COMMAND: Any = typer.main.get_command(app)
NotOneError: Any = typer.BadParameter.__base__
"""What typer's parser raises for whatever is used wrongly; typer has no name of its own for it."""

_FENCED = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"^ *(?:\$ |srun .*)?(train-ledger [a-z].*)", re.MULTILINE)
_INLINE = re.compile(r"(?<!`)`(train-ledger\s[a-z][^`]*)`")
_ENDS = re.compile(r"\s{2,}|\s#|\s[|>&;]|…")
"""Behind a command: what a line says of it, or what goes on."""


def shown(text: str) -> Iterator[str]:
    """The commands that a page shows, on lines of their own and within a sentence."""
    for found in (*_LINE.finditer(text), *_INLINE.finditer(_FENCED.sub("", text))):
        yield _ENDS.split(re.sub(r"\s*\n\s*|\\\n *", " ", found[1]))[0]


def parsed(command: str) -> None:
    """Raises NotOneError for a verb or an option that is none, or an option without its value."""
    found = _COMMAND
    words = shlex.split(command)[1:]
    while hasattr(found, "commands"):
        verb = words.pop(0)
        if verb not in found.commands:
            raise NotOneError(f"no verb {verb}")
        found = found.commands[verb]
        if not words:
            return
    found.make_parser(typer.Context(found)).parse_args(list(words))


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_verbs_and_options_are_there(page: Path) -> None:
    for command in shown((ROOT / page).read_text(encoding="utf-8")):
        try:
            parsed(command)
        except (NotOneError, ValueError) as error:
            pytest.fail(f"{page}: {command}: {error}")


def test_they_are_seen_wherever_they_stand() -> None:
    text = (
        "    train-ledger top RUN  #\n\nand `train-ledger\nslow RUN`\n\n```\ntrain-ledger lint > out\n```\n"
    )
    assert list(shown(text)) == ["train-ledger top RUN", "train-ledger lint", "train-ledger slow RUN"]


@pytest.mark.parametrize(
    "wrong", ["train-ledger topp RUN", "train-ledger top --onec RUN", "train-ledger slow --since"]
)
def test_one_that_is_none_is_told(wrong: str) -> None:
    with pytest.raises(NotOneError):
        parsed(wrong)
