"""Where does an answer go: terminal, script, file?"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from train_ledger.answer import Diagnosis, HangAnswer, exit_code
from train_ledger.render import Report, as_html, as_json, as_text, wants_colour
from train_ledger.run_dir import write_atomically

__all__ = ["answered", "show", "show_report"]

_WIDEST = 120


def answered(
    answer: HangAnswer | Diagnosis, *, json: bool, html: Path | None, title: str, currency: str = ""
) -> int:
    """Show an answer in the form that was asked for; its exit status."""
    if html is not None:
        write_atomically(html, as_html(answer, title=title, currency=currency).encode())
    if json:
        show(as_json(answer))
    else:
        show_report(answer, currency=currency)
    return exit_code(answer)


def show_report(report: HangAnswer | Diagnosis | Report, *, currency: str = "") -> None:
    """For a person, as the terminal allows."""
    show(as_text(report, width=_terminal_width(), colour=wants_colour(sys.stdout), currency=currency))


def _terminal_width() -> int | None:
    """Columns to wrap prose to; None where no terminal shows it, so that each point stays one line."""
    return min(shutil.get_terminal_size().columns, _WIDEST) if sys.stdout.isatty() else None


def show(text: str) -> None:
    """`text` on standard output at once, ended by exactly one newline."""
    print(text.removesuffix("\n"), flush=True)
