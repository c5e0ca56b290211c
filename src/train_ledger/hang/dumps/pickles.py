"""How is a dump loaded without running anything that it says?

Flight Recorder dumps are pickles of plain values, or JSON. A pickle is a program, and a folder of dumps is
shared between users and machines, so every global and every persistent id is refused. Sizes are not
trusted either: the process that calls this runs under limits (see `worker`).
"""

from __future__ import annotations

import codecs
import json
import os
import pickle
import re
import stat
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

__all__ = ["Loaded", "RefusedError", "load", "open_regular"]


class RefusedError(Exception):
    """A file is not read, or not further; the text says why in words for a person."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The content of one file; `cut` says how much of a truncated file was saved, None for a whole one."""

    content: Any
    cut: str | None = None


_BAD_PICKLE = (
    pickle.UnpicklingError,
    EOFError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    ImportError,
    RecursionError,
    struct.error,
)
"""What the standard unpickler raises on bytes that are no pickle (its documentation says: among others)."""


class _PlainUnpickler(pickle.Unpickler):
    """Unpickles plain values alone."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise _asks_for(module, name)

    def persistent_load(self, pid: Any) -> NoReturn:
        raise RefusedError(
            "refused: it holds a persistent id; a Flight Recorder dump holds plain values alone"
        )


class _SalvagingUnpickler(pickle._Unpickler):
    """The same in Python, slower, whose stack can be looked at after the bytes ran out."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise _asks_for(module, name)

    def persistent_load(self, pid: Any) -> NoReturn:
        raise RefusedError(
            "refused: it holds a persistent id; a Flight Recorder dump holds plain values alone"
        )

    def unfinished(self) -> Any:
        """The outermost value, with everything that was complete when the bytes ran out.

        The levels are the dump, its keys and values, and its entries; an entry that is open is left out.
        """
        levels: list[list[Any]] = [*self.metastack, self.stack]  # type: ignore[attr-defined]
        if len(levels) > 3:
            del levels[3:]
            del levels[2][-1:]
        while len(levels) > 1:
            items = levels.pop()
            _put(levels[-1][-1] if levels[-1] else None, items)
        return levels[0][0] if levels[0] else None


def _asks_for(module: str, name: str) -> RefusedError:
    return RefusedError(f"refused: this pickle asks to call {module[:80]}.{name[:80]}; nothing of it was run")


def _put(container: Any, items: list[Any]) -> None:
    if isinstance(container, list):
        container.extend(item for item in items if item)
    elif isinstance(container, dict):
        pairs = zip(items[::2], items[1::2], strict=False)
        container.update({key: value for key, value in pairs if isinstance(key, str | int)})


def load(path: Path) -> Loaded:
    """The plain values in a dump, pickle or JSON by its first byte.

    Raises RefusedError for what is no dump, OSError where the file cannot be read, and MemoryError where it
    asks for more than this process may have.
    """
    with open_regular(path) as file:
        first = file.read(len(codecs.BOM_UTF8) + 1).removeprefix(codecs.BOM_UTF8)[:1]
        if not first:
            raise RefusedError("empty file: the dump was created but never written")
        file.seek(0)
        if first == b"\x80":
            return _load_pickle(file)
        if first in b"{[ \t\r\n":
            return _load_json(file.read().removeprefix(codecs.BOM_UTF8))
    raise RefusedError("no Flight Recorder dump: neither a pickle nor JSON")


def open_regular(path: Path) -> BinaryIO:
    """The file opened for reading, without waiting for the other end of a pipe.

    Raises RefusedError for what is no regular file, OSError where it cannot be opened.
    """
    file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise RefusedError("no regular file")
    return file


def _load_pickle(file: BinaryIO) -> Loaded:
    try:
        return Loaded(_PlainUnpickler(file).load())
    except _BAD_PICKLE as error:
        if not _ran_out(error):
            raise RefusedError(f"damaged pickle: {str(error)[:160]}") from error
    file.seek(0)
    return _salvage_pickle(file)


def _ran_out(error: BaseException) -> bool:
    return isinstance(error, EOFError | struct.error) or "truncated" in str(error)


def _salvage_pickle(file: BinaryIO) -> Loaded:
    unpickler = _SalvagingUnpickler(file)
    try:
        unpickler.load()
    except _BAD_PICKLE as error:
        if not _ran_out(error):
            raise RefusedError(f"damaged pickle: {str(error)[:160]}") from error
    content = unpickler.unfinished()
    if not isinstance(content, dict):
        raise RefusedError("truncated: cut before the first value")
    return Loaded(content, cut=_cut_words(content))


def _cut_words(content: dict[Any, Any]) -> str:
    entries = content.get("entries")
    count = len(entries) if isinstance(entries, list) else 0
    return f"truncated: {count} entries before the cut were saved; what came after is unknown"


def _load_json(data: bytes) -> Loaded:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RefusedError(f"damaged JSON: {error.reason} at byte {error.start}") from error
    try:
        return Loaded(json.loads(text))
    except RecursionError as error:
        raise RefusedError("damaged JSON: nested too deeply") from error
    except ValueError as error:
        saved = _salvage_json(text)
        if saved is None:
            raise RefusedError(f"no Flight Recorder dump: {str(error)[:160]}") from error
        return Loaded(saved, cut=_cut_words(saved))


_ENTRIES = re.compile(r'"entries"\s*:\s*\[')


def _salvage_json(text: str) -> dict[str, Any] | None:
    """The whole entries before the cut; None where there is no list of entries at all."""
    found = _ENTRIES.search(text)
    if not found:
        return None
    decoder, at = json.JSONDecoder(), found.end()
    entries: list[Any] = []
    while True:
        at = _skip(text, at)
        try:
            entry, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return {"entries": entries}
        entries.append(entry)


_GAP = re.compile(r"[\s,]*")


def _skip(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at
