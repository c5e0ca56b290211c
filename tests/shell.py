"""A shell in which commands of the documentation are typed as they stand there."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from waiting import wait_until

__all__ = ["Shell", "blocks", "commands", "indented"]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_ENDS_WITHIN_S = 120.0


def blocks(text: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page: (language, text)."""
    return _FENCE.findall(text)


def indented(text: str) -> list[str]:
    """The indented blocks of a page, which are shell in ours; none of what is fenced."""
    found: list[list[str]] = [[]]
    for line in _FENCE.sub("", text).splitlines():
        if line.startswith("    ") and (found[-1] or not line.startswith("     ")):
            found[-1].append(line[4:])
        elif found[-1]:
            found.append([])
    return ["\n".join(lines) for lines in found if lines]


def commands(block: str) -> Iterator[str]:
    """The commands of a block, one a line; a line that ends with a backslash goes on."""
    for line in block.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line


class Shell:
    """A shell in which one command is typed after the other; ours comes first on its PATH."""

    def __init__(self, folder: Path, *, first: Path | None = None, environ: Mapping[str, str] = {}) -> None:
        ours = [str(it) for it in (first, Path(sys.executable).parent) if it]
        self.folder = folder
        self.status = 0
        self._process = subprocess.Popen(
            ["bash", "-m"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={
                **os.environ,
                "PATH": ":".join([*ours, os.environ["PATH"]]),
                "OMP_NUM_THREADS": "1",
                **environ,
            },
            text=True,
            start_new_session=True,
        )
        self._typed = 0

    def type(self, command: str) -> str:
        """What the command said, once it has ended or gone into the background; `status` is its status."""
        self._typed += 1
        said, over = self.folder / f"said_{self._typed}", self.folder / f"over_{self._typed}"
        assert self._process.stdin is not None
        self._process.stdin.write(
            f"{{ {command}\n}} > {said} 2>&1\necho $? > {over}.new; mv {over}.new {over}\n"
        )
        self._process.stdin.flush()
        wait_until(over.exists, _ENDS_WITHIN_S, f"for: {command}")
        self.status = int(over.read_text())
        return said.read_text()

    def close(self) -> None:
        """End whatever a failed test left behind."""
        # A launcher's ranks have sessions of their own, and outlive a launcher that is killed.
        left = psutil.Process(self._process.pid).children(recursive=True)
        for process in [*left, self._process]:
            with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                process.kill()
        psutil.wait_procs(left, timeout=20)
        self._process.wait(timeout=20)
