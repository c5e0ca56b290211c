"""What was named where dumps were meant, and what is typed instead?

The folder above the dumps, a folder of stacks or of logs: at three in the morning the wrong one is named.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from train_ledger.answer import NextCommand
from train_ledger.hang.dumps.dump_files import first_in, rank_of

__all__ = ["meant_instead"]

_LOOKED_INTO = 100
_SHOWN = 3
_BEGINS_DUMP = (b"\x80", b"{")
_BEGINS_STACK = (b"[", b"Process ", b"Thread ", b"Current thread ", b"Fatal Python error")
_LOGS = frozenset({"stdout.log", "stderr.log"})


def meant_instead(unread: Sequence[str]) -> Iterator[NextCommand]:
    """Commands that read what lies in the files and folders that were no dumps, `unread`."""
    told = {it.command: it for name in unread[:_LOOKED_INTO] if (it := _meant(Path(name)))}
    yield from list(told.values())[:_SHOWN]


def _meant(path: Path) -> NextCommand | None:
    try:
        if path.is_dir():
            return _of_folder(path)
        return _stacks(path.parent) if rank_of(path.name) is not None and _is_stack(path) else None
    except (OSError, ValueError):
        return None


def _of_folder(folder: Path) -> NextCommand | None:
    if (folder / "comm_traces").is_dir():
        return NextCommand("that is a run directory", f"train-ledger hang --run {_quoted(folder)}")
    if _holds_logs(folder, 3):
        return NextCommand("there are logs of ranks", f"train-ledger hang --logs {_quoted(folder)}")
    files = [
        it for it in sorted(first_in(folder, _LOOKED_INTO)) if rank_of(it.name) is not None and it.is_file()
    ]
    if any(_begins(it, _BEGINS_DUMP) for it in files if it.suffix != ".jsonl"):  # as signals are
        return NextCommand("there may be dumps in it", f"train-ledger hang {_quoted(folder)}")
    return _stacks(folder) if any(map(_is_stack, files)) else None


def _stacks(folder: Path) -> NextCommand:
    return NextCommand("there are stacks of ranks", f"train-ledger stacks --from {_quoted(folder)}")


def _is_stack(file: Path) -> bool:
    return file.is_file() and _begins(file, _BEGINS_STACK)


def _begins(file: Path, beginnings: tuple[bytes, ...]) -> bool:
    with open(file, "rb") as opened:
        return opened.read(32).startswith(beginnings)


def _holds_logs(folder: Path, deep: int) -> bool:
    """Whether it is torchrun's --log-dir or lies in it: RUN_ID/attempt_N/RANK/stderr.log."""
    some = sorted(first_in(folder, _LOOKED_INTO))
    if any(it.name in _LOGS for it in some):
        return True
    return deep > 0 and any(_holds_logs(it, deep - 1) for it in some[:_SHOWN] if it.is_dir())


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
