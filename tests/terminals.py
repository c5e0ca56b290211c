"""A terminal that a program is run in, and what a person would see there."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence

__all__ = ["Screen", "Terminal", "train_ledger"]

_SEQUENCE = re.compile(r"\x1b\[(?P<private>\??)(?P<numbers>[\d;]*)(?P<kind>[A-Za-z])")


class Screen:
    """What stands on a screen of so many columns and rows after bytes were written to it."""

    def __init__(self, columns: int, rows: int) -> None:
        self.size = (columns, rows)
        self.modes: set[str] = {"25"}
        self._cells = [[" "] * columns for _ in range(rows)]
        self._main = self._cells
        self._at = [0, 0]
        self._half = b""

    @property
    def lines(self) -> list[str]:
        return ["".join(row).rstrip() for row in self._cells]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).rstrip()

    @property
    def shows_cursor(self) -> bool:
        return "25" in self.modes

    @property
    def is_alternate(self) -> bool:
        return "1049" in self.modes

    def resize(self, columns: int, rows: int) -> None:
        self.size = (columns, rows)
        self._cells = self._blank()

    def _blank(self) -> list[list[str]]:
        return [[" "] * self.size[0] for _ in range(self.size[1])]

    def write(self, data: bytes) -> None:
        text = (self._half + data).decode(errors="replace")
        self._half = b""
        place = 0
        while place < len(text):
            if text[place] == "\x1b":
                found = _SEQUENCE.match(text, place)
                if found is None:  # the rest of it is still to come
                    self._half = text[place:].encode()
                    return
                self._obey(found["private"], found["numbers"], found["kind"])
                place = found.end()
            else:
                self._put(text[place])
                place += 1

    def _put(self, character: str) -> None:
        columns, rows = self.size
        row, column = self._at
        if character == "\r":
            self._at = [row, 0]
        elif character == "\n":
            self._down()
        elif character >= " ":
            if column >= columns:
                self._down()
                row, column = self._at[0], 0
            if row < rows:
                self._cells[row][column] = character
            self._at = [row, column + 1]

    def _down(self) -> None:
        self._at[0] += 1
        if self._at[0] >= self.size[1]:
            self._cells.append([" "] * self.size[0])
            del self._cells[0]
            self._at[0] = self.size[1] - 1

    def _obey(self, private: str, numbers: str, kind: str) -> None:
        given = [int(it) if it else 0 for it in numbers.split(";")]
        if private:
            self._mode(numbers, on=kind == "h")
        elif kind == "H":
            self._at = [max(0, given[0] - 1), max(0, (given[1] if len(given) > 1 else 1) - 1)]
        elif kind == "A":
            self._at[0] = max(0, self._at[0] - max(1, given[0]))
        elif kind == "K":
            self._cells[self._at[0]] = [" "] * self.size[0]
        elif kind == "J":
            self._cells = self._blank()
        else:
            assert kind == "m", f"this terminal does not know {kind!r}"

    def _mode(self, numbers: str, *, on: bool) -> None:
        if numbers == "1049":
            self._main, self._cells = (self._cells, self._blank()) if on else (self._main, self._main)
        (self.modes.add if on else self.modes.discard)(numbers)


class Terminal:
    """A program in a terminal of its own; `screen` is what stands there, `said` all that was written,
    `fd` the side of it where a person sits.

    Its standard output goes elsewhere where that is named. It is ended with the context.
    """

    def __init__(
        self,
        command: Sequence[str],
        columns: int = 80,
        rows: int = 24,
        environment: Mapping[str, str] | None = None,
        stdout: int | None = None,
    ) -> None:
        self.screen = Screen(columns, rows)
        self.said = b""
        self.fd, its = pty.openpty()
        self._size(its, columns, rows)
        self.process = subprocess.Popen(
            command,
            stdin=its,
            stdout=its if stdout is None else stdout,
            stderr=its,
            env=_environment(environment or {}),
            preexec_fn=_lead,
        )
        os.close(its)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.fd)

    @staticmethod
    def _size(terminal: int, columns: int, rows: int) -> None:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(columns, rows)
        self._size(self.fd, columns, rows)

    def type(self, keys: bytes) -> None:
        os.write(self.fd, keys)

    def read(self, timeout_s: float = 0.1) -> bool:
        """Take what was written meanwhile; False at the end."""
        if not select.select([self.fd], [], [], timeout_s)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # nobody has it open any more
            return False
        self.said += data
        self.screen.write(data)
        return bool(data)

    def until(self, holds: Callable[[], object], timeout_s: float = 60.0) -> None:
        """Fails, and shows the screen, where it does not hold within a time that is ample."""
        deadline = time.monotonic() + timeout_s
        while not holds():
            alive = self.read()
            assert alive or holds(), f"it ended:\n{self.screen.text}"
            assert time.monotonic() < deadline, f"in vain:\n{self.screen.text}"

    def end(self, timeout_s: float = 60.0) -> int:
        """The exit status, when all was read."""
        deadline = time.monotonic() + timeout_s
        while self.read():
            assert time.monotonic() < deadline, f"did not end:\n{self.screen.text}"
        return self.process.wait(timeout_s)


def _lead() -> None:
    """The terminal is the new session's own, so that its keys are signals."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    asking = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "TERM")
    inherited = {name: value for name, value in os.environ.items() if name not in asking}
    return {**inherited, "TERM": "xterm-256color", **own}


def train_ledger(*arguments: object) -> list[str]:
    """The command, by this interpreter."""
    return [sys.executable, "-m", "train_ledger", *map(str, arguments)]
