"""Writes docs/cli.md from the command line itself."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from train_ledger.cli import app

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
_HEAD = """# Commands

<!-- Written by tools/cli_page.py from the command line; change it there. -->

What `train-ledger VERB --help` says. Exit status of all: 0 nothing wrong, 1 trouble found, 2 wrong usage or unreadable
input, 3 cannot tell. Answers for scripts: `--json`.
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


def main() -> int:
    """Write the page, or with --check say whether it is current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        return 0 if PAGE.read_text(encoding="utf-8") == page() else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
