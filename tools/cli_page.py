"""Writes docs/cli.md from the command line itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import typer
from page import DOCS, write_or_check
from typer.testing import CliRunner

from train_ledger.cli import app

PAGE = DOCS / "cli.md"
_HEAD = """# Commands

<!-- Written by tools/cli_page.py from the command line; change it there. -->

What `train-ledger VERB --help` says. Exit status of all: 0 nothing wrong, 1 trouble found, 2 wrong usage or
unreadable input, 3 cannot tell. Answers for scripts: `--json`.
"""


def page() -> str:
    """The page as it should be."""
    return "\n".join([_HEAD, *_sections(typer.main.get_command(app), ())])


def _sections(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    for name, member in sorted(command.commands.items()):
        if hasattr(member, "commands"):
            yield from _sections(member, (*path, name))
            continue
        verb = " ".join((*path, name))
        told = CliRunner().invoke(
            app, [*path, name, "--help"], prog_name="train-ledger", env={"COLUMNS": "100", "TERM": "dumb"}
        )
        yield f"## {verb}\n\n```text\n{told.stdout.strip()}\n```\n"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page(), sys.argv[1:]))
