"""Where does an answer go: terminal, script, file?"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
from io import BufferedWriter
from pathlib import Path

from train_ledger.answer import Diagnosis, HangAnswer, exit_code
from train_ledger.cli.asked import made
from train_ledger.cli.leave import BadInputError
from train_ledger.cli.progress import clear_bar
from train_ledger.render import Picture, Report, as_html, as_json, as_text, wants_colour
from train_ledger.run_dir import write_atomically

__all__ = [
    "answered",
    "is_written_into",
    "open_other",
    "show",
    "show_report",
    "terminal_width",
    "write_document",
    "write_file",
    "write_page",
]

_WIDEST = 120


def answered(
    answer: HangAnswer | Diagnosis,
    *,
    json: bool,
    html: Path | None,
    verb: str,
    title: str,
    at: float | None = None,
    currency: str = "",
    picture: Picture | None = None,
) -> int:
    """Show an answer in the form that was asked for, with what is drawn beside it; its exit status."""
    if html is not None:
        write_page(html, answer, verb, title=title, at=at, currency=currency, picture=picture)
    if json:
        show(as_json(answer))
    else:
        show_report(answer, currency=currency, picture=picture)
    return exit_code(answer)


def write_file(path: Path, data: bytes) -> None:
    """Put an answer into the file that was named for it: a regular one as a whole, by a rename.

    What is there and is something else – /dev/stdout, a FIFO, a device – is written into. Raises
    BadInputError for a folder, and where the file's own folder is missing, and OSError as the system does.
    """
    try:
        _write(path, data)
    except OSError as error:  # that of a write names no file
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_page(
    path: Path,
    answer: HangAnswer | Diagnosis | Report,
    verb: str,
    *,
    title: str = "",
    at: float | None = None,
    currency: str = "",
    picture: Picture | None = None,
) -> None:
    """Put an answer into a file as a page that says by which command it was made; raises as write_file.

    `at` is the time as known at which it was asked for; None: now.
    """
    how = made(verb, at)
    page = as_html(answer, title=title, currency=currency, picture=picture, made=how)
    write_file(path, page.encode())


def write_document(path: Path, report: Report, markdown: str, verb: str, *, title: str = "") -> None:
    """Put a report into a file, as a page where its name ends so, else as Markdown; raises as write_file."""
    if path.suffix.lower() in (".html", ".htm"):
        write_page(path, report, verb, title=title)
    else:
        write_file(path, markdown.encode())


def _write(path: Path, data: bytes) -> None:
    try:
        status = path.stat()
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise BadInputError(f"{path}: there is no folder {path.parent}; make it first") from None
        write_atomically(path, data)
        return
    if stat.S_ISDIR(status.st_mode):
        raise BadInputError(f"{path}: is a folder, but a file is wanted")
    if is_written_into(status):
        with open_other(path) as file:
            file.write(data)
    else:
        write_atomically(path.resolve(), data, mode=stat.S_IMODE(status.st_mode))


def is_written_into(status: os.stat_result) -> bool:
    """Whether it is no regular file, or what our own output is redirected to: a rename would part the two."""
    ours = any(os.path.samestat(status, os.fstat(stream)) for stream in (1, 2))
    return ours or not stat.S_ISREG(status.st_mode)


def open_other(path: Path) -> BufferedWriter:
    """What is there and is no regular file, or is our own output, to be written into.

    Raises BadInputError for a FIFO that nobody reads, which would keep us waiting.
    """
    sys.stdout.flush()
    mine = [stream for stream in (1, 2) if os.path.samestat(path.stat(), os.fstat(stream))]
    try:
        fd = os.dup(mine[0]) if mine else os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise BadInputError(f"{path}: nobody reads it") from None
        raise
    if not mine:
        os.set_blocking(fd, True)
    return open(fd, "wb")


def show_report(
    report: HangAnswer | Diagnosis | Report, *, currency: str = "", picture: Picture | None = None
) -> None:
    """For a person, as the terminal allows."""
    width, colour = terminal_width(), wants_colour(sys.stdout)
    show(as_text(report, width=width, colour=colour, currency=currency, picture=picture))


def terminal_width() -> int | None:
    """Columns to wrap prose to; None where no terminal shows it, so that each point stays one line."""
    return min(shutil.get_terminal_size().columns, _WIDEST) if sys.stdout.isatty() else None


def show(text: str) -> None:
    """`text` on standard output at once, ended by exactly one newline."""
    clear_bar()
    try:
        print(text.removesuffix("\n"), flush=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from error
