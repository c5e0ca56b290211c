"""How does the process that holds a foreign library get its steps, and when does it end?

`HelperProcess` starts it and talks to it: the first line of stdin are the settings, each further one
`[step, unix seconds, {field: number}]`, the last one `"end"`. A byte on stdout says that a line was taken.
What the library raises ends the process, and its last line on stderr tells the person why.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import math
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

from train_ledger.signals.telling.helper_process import ABSENT

__all__ = ["Steps", "library", "say_why", "tagged"]

_LINGER_S = 300.0
_LOOK_S = 1.0


class Steps:
    """The settings, and then the steps one by one; each counts as taken when the next one is asked for.

    From the end on – the last line, or the training's process is gone – the library has `_LINGER_S` seconds
    to send what it has, whatever it does.
    """

    def __init__(self) -> None:
        sys.excepthook = lambda _, error, __: say_why(error)
        self._lines = sys.stdin.buffer
        self._acknowledgements = os.dup(1)
        self._nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(self._nowhere, 1)  # what the library prints is nobody's answer
        self._parent = os.getppid()
        threading.Thread(target=self._watch_parent, daemon=True).start()
        self.settings: dict[str, Any] = json.loads(self._lines.readline() or b"{}")

    def __iter__(self) -> Iterator[tuple[int, float, Mapping[str, float]]]:
        for line in self._lines:
            content = json.loads(line)
            if content == "end":
                break
            step, t, fields = content
            yield step, t, _numbers(fields)
            self._acknowledge()
        else:
            os.dup2(self._nowhere, 2)
        self._end_soon()

    def _acknowledge(self) -> None:
        try:
            os.write(self._acknowledgements, b".")
        except OSError:  # the training is gone; what it had sent is written all the same
            os.dup2(self._nowhere, 2)

    def _watch_parent(self) -> None:
        while os.getppid() == self._parent:
            time.sleep(_LOOK_S)
        self._end_soon()

    def _end_soon(self) -> None:
        # By a thread of faulthandler's, in C: a library that holds the interpreter's lock is ended, too.
        faulthandler.dump_traceback_later(_LINGER_S, exit=True)


def say_why(error: BaseException | None) -> None:
    """The last line on stderr, whole: another thread may end the process while this one still writes."""
    why = traceback.format_exception_only(error)[-1].strip() if error is not None else "its thread ended"
    with contextlib.suppress(OSError):  # the training is gone
        os.write(2, f"{why}\n".encode(errors="replace"))


def library(*names: str) -> Any:
    """The first of these modules that is installed; where none is, the process ends and says so."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                raise
    packages = " or ".join(dict.fromkeys(name.partition(".")[0] for name in names))
    print(f"it is not installed (pip install {packages})", file=sys.stderr, flush=True)
    raise SystemExit(ABSENT)


def tagged(fields: Mapping[str, float]) -> dict[str, float]:
    """The numbers by the names that panels show: a field of ours in the section `train`.

    >>> tagged({"loss": 2.5, "eval/loss": 2.25})
    {'train/loss': 2.5, 'eval/loss': 2.25}
    """
    return {name if "/" in name else f"train/{name}": value for name, value in fields.items()}


def _numbers(fields: Mapping[str, Any]) -> dict[str, float]:
    """Without the words of a line; an integer may be larger than any float."""
    numbers = {}
    for name, value in fields.items():
        if isinstance(value, int | float):
            try:
                numbers[name] = value if abs(value) < 1 << 53 else float(value)
            except OverflowError:
                numbers[name] = math.inf if value > 0 else -math.inf
    return numbers
