"""How is the history of a run kept beside it, so that the next look at it need not read everything?

One file with all arrays, and where its reader stood in each of the run's files. What is damaged, of other
fields or of another run is not used, and that is said: it is made again from the run's own files.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from train_ledger.ledger.history.fields import CURVES, GPU_STRIPS, STRIPS
from train_ledger.ledger.history.history import History, Mark
from train_ledger.ledger.history.rows import Rows
from train_ledger.run_dir import read_small, write_atomically
from train_ledger.sources import FilesMemory

__all__ = ["HistoryUnusableError", "read_history", "write_history"]

_MAGIC = b"train-ledger history 1\n"
_DIGEST_BYTES = 32
_LENGTH_BYTES = 8
_LARGEST_BYTES = 1 << 30
_LARGEST_CELLS = 1 << 26
_FARTHEST = 1 << 61
"""Of steps and seconds: sums and differences of two of them are numbers of 64 bits still."""

_KINDS = {"f": np.dtype("<f8"), "i": np.dtype("<i8")}


class HistoryUnusableError(Exception):
    """What was kept cannot be used; the text says which file and why."""


class _Array(msgspec.Struct, frozen=True):
    name: str
    kind: str
    shape: tuple[int, ...]


class _Axis(msgspec.Struct, frozen=True):
    base: Annotated[int, msgspec.Meta(ge=-_FARTHEST, le=_FARTHEST)]
    width: Annotated[int, msgspec.Meta(ge=1, le=_FARTHEST)]
    names: tuple[str, ...] = ()


class _Header(msgspec.Struct, frozen=True):
    run: str
    fields: tuple[tuple[str, ...], ...]
    files: FilesMemory
    curves: dict[int, _Axis]
    strips: _Axis
    strips_attempt: int
    gpus: _Axis
    arrays: tuple[_Array, ...]
    marks: tuple[Mark, ...] = ()
    left_out: int = 0


_FIELDS = (CURVES, STRIPS, GPU_STRIPS)


def write_history(path: Path, run: str, history: History, files: FilesMemory) -> None:
    """Keep a history, and where its reader stands (`files`); `run` says which run it is of.

    Raises OSError where the file cannot be written, and UnicodeEncodeError where a file's name is no text.
    """
    history.settle()
    named = dict(_arrays(history))
    header = _Header(
        run=run,
        fields=_FIELDS,
        files=files,
        curves={number: _Axis(bins.base, bins.width) for number, bins in history.curves.items()},
        strips=_axis(history.strips),
        strips_attempt=history.strips_attempt,
        gpus=_axis(history.gpus),
        arrays=tuple(_Array(name, it.dtype.kind, it.shape) for name, it in named.items()),
        marks=tuple(history.marks),
        left_out=history.left_out,
    )
    head = msgspec.json.encode(header)
    body = b"".join(np.ascontiguousarray(it, _KINDS[it.dtype.kind]).tobytes() for it in named.values())
    data = len(head).to_bytes(_LENGTH_BYTES, "little") + head + body
    write_atomically(path, _MAGIC + hashlib.sha256(data).digest() + data)


def _axis(rows: Rows) -> _Axis:
    return _Axis(rows.base, rows.width, tuple(rows.names))


def _arrays(history: History) -> Iterator[tuple[str, NDArray[Any]]]:
    for number, bins in history.curves.items():
        for name, array in bins.arrays().items():
            yield f"curves {number} {name}", array
    for name, rows in (("strips", history.strips), ("gpus", history.gpus)):
        shown = (slice(None), slice(len(rows.names)), slice(rows.columns))
        yield f"{name} total", rows.total[shown]
        yield f"{name} count", rows.count[shown]


def read_history(path: Path, run: str, history: History) -> FilesMemory | None:
    """Put into `history` what was kept; where its reader stood, or None where nothing was kept.

    Raises HistoryUnusableError where something was kept that cannot be used; then it is as new.
    """
    try:
        content = read_small(path, limit_bytes=_LARGEST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HistoryUnusableError(f"{path}: {error.strerror}; the history is made again") from error
    try:
        header, arrays = _parsed(content)
        if header.run != run:
            raise ValueError("it is another run's")
        _put(history, header, arrays)
    except (ValueError, KeyError, msgspec.MsgspecError, RecursionError) as error:
        history.forget()
        raise HistoryUnusableError(f"{path}: {error}; the history is made again") from error
    return header.files


def _parsed(content: bytes) -> tuple[_Header, dict[str, NDArray[Any]]]:
    start = len(_MAGIC) + _DIGEST_BYTES
    data = content[start:]
    if not content.startswith(_MAGIC):
        raise ValueError("it is no history of this version")
    if hashlib.sha256(data).digest() != content[len(_MAGIC) : start]:
        raise ValueError("it is damaged")
    end = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    header = msgspec.json.decode(data[_LENGTH_BYTES:end], type=_Header)
    if header.fields != _FIELDS:
        raise ValueError("it has other fields")
    return header, dict(_unpacked(header.arrays, data[end:]))


def _unpacked(arrays: tuple[_Array, ...], body: bytes) -> Iterator[tuple[str, NDArray[Any]]]:
    place = 0
    for array in arrays:
        cells = math.prod(array.shape)
        if array.kind not in _KINDS or min(array.shape, default=0) < 0 or cells > _LARGEST_CELLS:
            raise ValueError(f"{array.name} has the shape {array.shape}")
        size = cells * _KINDS[array.kind].itemsize
        yield array.name, np.frombuffer(body[place : place + size], _KINDS[array.kind]).reshape(array.shape)
        place += size
    if place != len(body):
        raise ValueError("it is cut short")


def _put(history: History, header: _Header, arrays: dict[str, NDArray[Any]]) -> None:
    history.forget()
    for number, axis in header.curves.items():
        own = f"curves {number} "
        kept = {name.removeprefix(own): it for name, it in arrays.items() if name.startswith(own)}
        history.put_curves(number, kept, base=axis.base, width=axis.width)
    history.strips_attempt = header.strips_attempt
    for name, rows, axis in (("strips", history.strips, header.strips), ("gpus", history.gpus, header.gpus)):
        total, count = arrays[f"{name} total"], arrays[f"{name} count"]
        rows.put(axis.names, total, count, base=axis.base, width=axis.width)
    history.put_marks(header.marks)
    history.left_out = header.left_out
