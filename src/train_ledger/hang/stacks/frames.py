"""Which frame of a stack is the user's own?

Frames of torch, of the standard library and of installed packages are the road, not the place. The first
frame outside of them is where a person looks.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

__all__ = ["Frame", "parse_frame", "user_frame"]


@dataclass(frozen=True, slots=True)
class Frame:
    """One call: the file as the interpreter names it, the line, the function."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{PurePosixPath(self.file).name}:{self.line} {self.function}"

    @property
    def name(self) -> str:
        """The function without its class, which only some tools print."""
        return self.function.rpartition(".")[2] if "::" not in self.function else self.function

    @property
    def is_torch(self) -> bool:
        return "/torch/" in self.file or self.file.startswith("torch/")

    @property
    def is_monitor(self) -> bool:
        """A frame of our own monitor, which stands between the job and torch and is neither."""
        return "train_ledger/signals/" in self.file

    @property
    def is_native(self) -> bool:
        """A frame of C: of a library or a source file of it, or without any file, as a debugger has them."""
        return not self.file or _NATIVE.search(self.file) is not None

    @property
    def is_interpreter(self) -> bool:
        """Standard library, frozen modules, native code, and what has no file."""
        if self.file.startswith("<frozen") or not self.file or self.is_native:
            return True
        if not self.file.startswith("/"):  # py-spy's text shortens paths
            return PurePosixPath(self.file).parts[0].removesuffix(".py") in sys.stdlib_module_names
        return _STANDARD_LIBRARY.search(self.file) is not None and not self.is_installed

    @property
    def is_installed(self) -> bool:
        return "site-packages/" in self.file or "dist-packages/" in self.file


_STANDARD_LIBRARY = re.compile(r"/python3(?:\.\d+)?(?:\.zip)?/")
_NATIVE = re.compile(r"\.so(?:\.|$)|\.(?:c|cc|cpp|cxx|cu|h|hpp|S|rs|f90)$|(?:^|/)python\d(?:\.\d+)?$")
_PLACED = re.compile(r"(.*):(\d+) (.*)", re.DOTALL)


def parse_frame(text: str) -> Frame:
    """The frame in "file:line function", as dumps keep it."""
    found = _PLACED.fullmatch(text)
    return Frame(found[1], int(found[2]), found[3]) if found else Frame(text, 0, "")


def user_frame(frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame of the user's own code; of an installed package where there is no other.

    `frames` come innermost first. None where all of them belong to torch or the interpreter.
    """
    outside = [it for it in frames if not it.is_torch and not it.is_interpreter and not it.is_monitor]
    return next((frame for frame in outside if not frame.is_installed), outside[0] if outside else None)
