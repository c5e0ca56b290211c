"""What stack does a file hold?

Three formats, told apart by their content: py-spy's JSON, py-spy's text, and faulthandler's text (which
torch.distributed.debug prints too). Frames come innermost first in all of them.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from train_ledger.answer import Unreadable
from train_ledger.hang.dump_files import host_of, listed, rank_of, shown, why_no_rank
from train_ledger.hang.frames import Frame
from train_ledger.hang.pickles import RefusedError, open_regular

__all__ = ["RankStack", "Thread", "read"]

_FILE_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread of a process; `frames` innermost first, `active` None where the format does not say."""

    name: str
    is_main: bool
    frames: tuple[Frame, ...]
    active: bool | None = None
    holds_gil: bool = False


@dataclass(frozen=True, slots=True)
class RankStack:
    """All threads of one rank's process at one moment."""

    rank: int
    pid: int | None
    host: str | None
    threads: tuple[Thread, ...]


def read(paths: Iterable[Path]) -> tuple[dict[int, RankStack], list[Unreadable]]:
    """The stacks in files and folders by rank, and what could not be read.

    Of several files of one rank the newest counts, and py-spy's before faulthandler's of about the same time.
    """
    stacks: dict[int, RankStack] = {}
    unreadable = []
    named = [*paths]
    files = {path: why for path, why in listed(named).items() if path in named or _may_hold_one(path)}
    for path in sorted(files, key=_age):
        try:
            stack = _read(path, files[path])
        except RefusedError as error:
            unreadable.append(Unreadable(shown(path), str(error)))
        except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
            unreadable.append(Unreadable(shown(path), getattr(error, "strerror", None) or str(error)))
        else:
            stacks[stack.rank] = stack
    return dict(sorted(stacks.items())), unreadable


def _may_hold_one(path: Path) -> bool:
    """Every rank keeps an empty rank_N.txt open, for its last stack should it be killed by a signal."""
    if path.suffix == ".txt" and os.path.isfile(path):
        return _size(path) != 0
    return not os.path.isdir(path)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


_ABOUT_THE_SAME_S = 30.0


def _age(path: Path) -> tuple[float, str]:
    try:
        more_telling_s = _ABOUT_THE_SAME_S if path.suffix == ".json" else 0.0
        return path.stat().st_mtime + more_telling_s, str(path)
    except (OSError, ValueError):
        return 0.0, str(path)


def _read(path: Path, why: str | None) -> RankStack:
    if why:
        raise RefusedError(why)
    rank = rank_of(path.name)
    if rank is None:
        raise RefusedError(why_no_rank(path.name, "a stack's name ends in its rank, as rank_5.txt"))
    with open_regular(path) as file:
        data = file.read(_FILE_BYTES + 1).removeprefix(codecs.BOM_UTF8)
    if len(data) > _FILE_BYTES:
        raise RefusedError(f"refused: more than {_FILE_BYTES >> 20} MiB, too long for a stack")
    pid, threads = _parse(data)
    if not threads:
        raise RefusedError("no stack in it" if data.strip() else "empty file")
    return RankStack(rank, pid, host_of(path.name), threads)


def _parse(data: bytes) -> tuple[int | None, tuple[Thread, ...]]:
    if data.lstrip()[:1] == b"[":
        return _of_py_spy_json(data)
    text = data.decode("utf-8", "replace")
    if "most recent call first" in text:
        return None, tuple(_of_faulthandler(text.splitlines()))
    pid = _PROCESS.search(text)
    return int(pid[1]) if pid else None, tuple(_of_py_spy_text(text.splitlines()))


class _JsonFrame(msgspec.Struct):
    name: str
    filename: str
    line: int = 0


class _JsonThread(msgspec.Struct):
    pid: int
    frames: list[_JsonFrame]
    thread_id: int = 0
    thread_name: str | None = None
    os_thread_id: int | None = None
    active: bool = True
    owns_gil: bool = False


def _of_py_spy_json(data: bytes) -> tuple[int | None, tuple[Thread, ...]]:
    try:
        listed = msgspec.json.decode(data, type=list[_JsonThread])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise RefusedError(f"no stack as py-spy writes it: {error}") from error
    threads = tuple(
        Thread(
            name=thread.thread_name or f"thread {thread.thread_id:#x}",
            is_main=thread.thread_name == "MainThread" or thread.os_thread_id == thread.pid,
            frames=tuple(Frame(it.filename, it.line, it.name) for it in thread.frames),
            active=thread.active,
            holds_gil=thread.owns_gil,
        )
        for thread in listed
    )
    return listed[0].pid if listed else None, threads


_PROCESS = re.compile(r"^Process (\d+):", re.MULTILINE)
_PY_SPY_THREAD = re.compile(r"Thread (?P<id>\S+)(?: \((?P<how>[^)]*)\))?(?:: \"(?P<name>.*)\")?\s*\Z")
_PLACE = re.compile(r"(?P<file>.+?)(?::(?P<line>\d{1,18}))?\Z")


def _of_py_spy_text(lines: Sequence[str]) -> Iterator[Thread]:
    head: re.Match[str] | None = None
    frames: list[Frame] = []
    for line in [*lines, "Thread end"]:
        if found := _PY_SPY_THREAD.match(line):
            if head:
                yield _py_spy_thread(head, frames)
            head, frames = found, []
        elif frame := _py_spy_frame(line):
            frames.append(frame)


def _py_spy_frame(line: str) -> Frame | None:
    """Of "    all_reduce (torch/distributed.py:3245)"; linear in the line, whatever stands in it."""
    function, bracket, place = line.rstrip().rpartition(" (")
    found = _PLACE.match(place.removesuffix(")"))
    if not (bracket and found and place.endswith(")") and line.startswith("    ")):
        return None
    return Frame(found["file"], int(found["line"] or 0), function[4:])


def _py_spy_thread(head: re.Match[str], frames: Sequence[Frame]) -> Thread:
    how = head["how"] or ""
    name = head["name"] or f"thread {head['id']}"
    return Thread(name, name == "MainThread", tuple(frames), "active" in how, "gil" in how)


_FAULT_THREAD = re.compile(
    r"(?P<current>Current thread|Thread) (?P<id>0x[0-9a-f]+)(?: \[(?P<name>.{0,256}?)\])? "
    r"\(most recent call first\)"
)
_FAULT_FRAME = re.compile(r'\s*File "(?P<file>.*)", line (?P<line>\d{1,18}|\?\?\?) in (?P<function>.*)')


def _of_faulthandler(lines: Sequence[str]) -> Iterator[Thread]:
    """faulthandler lists the newest thread first, so the main thread comes last."""
    heads: list[tuple[str, list[Frame]]] = []
    for line in lines:
        if found := _FAULT_THREAD.search(line):
            heads.append((found["name"] or f"thread {found['id']}", []))
        elif heads and (found := _FAULT_FRAME.match(line)):
            number = int(found["line"]) if found["line"].isdigit() else 0
            heads[-1][1].append(Frame(found["file"], number, found["function"].strip()))
    for index, (name, frames) in enumerate(heads):
        is_main = index == len(heads) - 1
        yield Thread("MainThread" if is_main else name, is_main, tuple(frames))
