"""What threads does the text of one process's stack hold?

py-spy's JSON, py-spy's text, faulthandler's text (which torch.distributed.debug prints too) and gdb's
(pstack's), told apart by their content. Frames come innermost first in all of them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from train_ledger.hang.dumps.pickles import RefusedError
from train_ledger.hang.stacks.frames import Frame

__all__ = ["Thread", "frame", "threads_in"]


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread of a process; `frames` innermost first, `active` None where the format does not say."""

    name: str
    is_main: bool
    frames: tuple[Frame, ...]
    active: bool | None = None
    holds_gil: bool = False


@functools.lru_cache(maxsize=1 << 16)
def frame(file: str, line: int, function: str) -> Frame:
    """The frame, as one object for all ranks that stand in it."""
    return Frame(file, line, function)


def threads_in(data: bytes) -> tuple[int | None, tuple[Thread, ...]]:
    """The process id, where it is told, and the threads; none for what is no stack.

    Raises RefusedError for JSON that is not py-spy's.
    """
    if b"\x1b[" in data:
        data = _COLOUR.sub(b"", data)
    if data.lstrip()[:1] == b"[" and not _GDB_NOISE.match(data):
        return _of_py_spy_json(data)
    text = data.decode("utf-8", "replace")
    lines = text.splitlines()
    if "most recent call first" in text:
        return None, tuple(_of_faulthandler(lines))
    if not _PROCESS.search(text) and _GDB_FRAME_ANYWHERE.search(text):
        return _of_gdb(lines)
    return _of_first_process(text)


_COLOUR = re.compile(rb"\x1b\[[0-9;]{0,16}m")
"""py-spy writes in colours to a terminal, which `ssh -t` and `kubectl exec -t` are."""


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
    """Of the first process alone: with --subprocesses the children of a rank follow, which are no ranks."""
    try:
        listed = msgspec.json.decode(data, type=list[_JsonThread])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise RefusedError(f"no stack as py-spy writes it: {error}") from error
    pid = listed[0].pid if listed else None
    threads = tuple(
        Thread(
            name=thread.thread_name or f"thread {thread.thread_id:#x}",
            is_main=thread.thread_name == "MainThread" or thread.os_thread_id == thread.pid,
            frames=tuple(frame(it.filename, it.line, _function(it.name)) for it in thread.frames),
            active=thread.active,
            holds_gil=thread.owns_gil,
        )
        for thread in listed
        if thread.pid == pid
    )
    return pid, threads


def _function(name: str) -> str:
    """Without symbols py-spy names the address, another in each process; gdb says "??"."""
    return "??" if _ADDRESS.fullmatch(name) else name


_ADDRESS = re.compile(r"0x[0-9a-f]+")
_PROCESS = re.compile(r"^(?:Python process|Process) (\d{1,18}):?", re.MULTILINE)
_PY_SPY_THREAD = re.compile(r"Thread (?P<id>\S+)(?: \((?P<how>[^)]*)\))?(?:: \"(?P<name>.*)\")?\s*\Z")
_PLACE = re.compile(r"(?P<file>.+?)(?::(?P<line>\d{1,18}))?\Z")


def _of_first_process(text: str) -> tuple[int | None, tuple[Thread, ...]]:
    starts = list(_PROCESS.finditer(text))
    own = text[: starts[1].start()] if len(starts) > 1 else text
    return int(starts[0][1]) if starts else None, tuple(_of_py_spy_text(own.splitlines()))


_Parsed = tuple[re.Match[str], list[Frame]]


def _threads(
    lines: Sequence[str], head: Callable[[str], re.Match[str] | None], body: Callable[[str], Frame | None]
) -> list[_Parsed]:
    """The heads of threads, each with the frames that follow it."""
    found: list[_Parsed] = []
    for line in lines:
        if match := head(line):
            found.append((match, []))
        elif found and (parsed := body(line)):
            found[-1][1].append(parsed)
    return found


def _of_py_spy_text(lines: Sequence[str]) -> Iterator[Thread]:
    for head, frames in _threads(lines, _PY_SPY_THREAD.match, _py_spy_frame):
        how = head["how"] or ""
        name = head["name"] or f"thread {head['id']}"
        yield Thread(name, name == "MainThread", tuple(frames), "active" in how, "gil" in how)


def _py_spy_frame(line: str) -> Frame | None:
    """Of "    all_reduce (torch/distributed.py:3245)"; linear in the line, whatever stands in it."""
    function, bracket, place = line.rstrip().rpartition(" (")
    found = _PLACE.match(place.removesuffix(")"))
    if not (bracket and found and place.endswith(")") and line.startswith("    ")):
        return None
    return frame(found["file"], int(found["line"] or 0), _function(function[4:]))


_FAULT_THREAD = re.compile(
    r"(?P<current>Current thread|Thread) (?P<id>0x[0-9a-f]+)(?: \[(?P<name>.{0,256}?)\])? "
    r"\(most recent call first\)"
)
_FAULT_FRAME = re.compile(r'\s*File "(?P<file>.*)", line (?P<line>\d{1,18}|\?\?\?) in (?P<function>.*)')


def _fault_frame(line: str) -> Frame | None:
    found = _FAULT_FRAME.match(line)
    if not found:
        return None
    number = int(found["line"]) if found["line"].isdigit() else 0
    return frame(found["file"], number, found["function"].strip())


def _of_faulthandler(lines: Sequence[str]) -> Iterator[Thread]:
    """faulthandler lists the newest thread first, so the main thread comes last."""
    heads = _threads(lines, _FAULT_THREAD.search, _fault_frame)
    for index, (head, frames) in enumerate(heads):
        is_main = index == len(heads) - 1
        name = head["name"] or f"thread {head['id']}"
        yield Thread("MainThread" if is_main else name, is_main, tuple(frames))


_GDB_NOISE = re.compile(rb"\s*\[(?:New LWP|New Thread|Thread debugging|Inferior|Switching)")
_GDB_FRAME_ANYWHERE = re.compile(r"^#\d+ +(?:0x[0-9a-f]+ in )?\S", re.MULTILINE)
_GDB_THREAD = re.compile(r"Thread (?P<number>\d{1,9}) \(.{0,80}?LWP (?P<lwp>\d{1,18})\b(?P<rest>.*)")
_GDB_FRAME = re.compile(r"#\d{1,9} +(?:0x[0-9a-f]+ in )?(?P<function>[^ (][^(]*?(?:\(anonymous[^(]*?)?)? ?\(")
_GDB_NAME = re.compile(r'"(?P<name>[^"]{0,64})"')


def _of_gdb(lines: Sequence[str]) -> tuple[int | None, tuple[Thread, ...]]:
    """gdb numbers the main thread 1; where a single stack has no head, it is that of one thread."""
    heads = _threads(lines, _GDB_THREAD.match, _gdb_frame)
    if not heads:
        frames = tuple(it for line in lines if (it := _gdb_frame(line)))
        return None, (Thread("MainThread", True, frames),) if frames else ()
    pid = next((int(head["lwp"]) for head, _ in heads if head["number"] == "1"), None)
    return pid, tuple(_gdb_thread(head, frames) for head, frames in heads)


def _gdb_thread(head: re.Match[str], frames: Sequence[Frame]) -> Thread:
    is_main = head["number"] == "1"
    named = _GDB_NAME.search(head["rest"])
    name = named["name"] if named else f"LWP {head['lwp']}"
    return Thread("MainThread" if is_main else name, is_main, tuple(frames))


def _gdb_frame(line: str) -> Frame | None:
    """Of "#1  0x… in ncclGroupEnd () from /usr/lib/libnccl.so.2" or "#2  f (a=1) at callproc.c:943"."""
    found = _GDB_FRAME.match(line)
    if not found:
        return None
    rest = line[found.end() :]
    _, is_library, library = rest.rpartition(") from ")
    _, is_source, source = rest.rpartition(") at ")
    function = (found["function"] or "??").strip()
    if is_library:
        return frame(library.strip(), 0, function)
    place = _PLACE.match(source.strip()) if is_source else None
    return frame(place["file"], int(place["line"] or 0), function) if place else frame("", 0, function)
