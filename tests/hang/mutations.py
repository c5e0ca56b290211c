"""Dumps as damage, chance and malice would change them: bytes, opcodes and values."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import pickle
import pickletools
import random
import struct
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from hang.recorder import Job, encoded

Files = tuple[bytes, ...]
"""The dumps of one job, by rank."""

ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    3,
    1 << 31,
    1 << 40,
    (1 << 63) - 1,
    1 << 63,
    1 << 70,
    10**400,
    2.5,
    float("nan"),
    float("inf"),
    "",
    "7",
    "-1",
    "9" * 5000,
    "x" * 100_000,
    "\x1b]0;title\x07\x1b[2J",
    "\u202e\u2028\x00",
    "\ud800",
    "[" * 1000,
    "[0, 1, 2, 99999999999]",
    "nccl:send 0->99999999999",
    "nccl:recv 1<-?",
    "gloo:all_reduce",
    b"bytes",
    [],
    {},
    (),
    ("a", "b"),
    ("a", "b", "c"),
    [["a"]],
    [[1 << 62] * 64],
    [[-1]],
    [1] * 10_000,
    {"a": {"b": {}}},
    {1: 2},
    set(),
    frozenset({"a", "b"}),
)


def jobs() -> dict[str, Files]:
    """Small jobs of every shape that the recorder writes, each with a rank that did not come."""
    made: dict[str, Files] = {}
    for backend in ("nccl", "gloo", "xccl"):
        job = _parallel_job(backend)
        contents = [job.content(rank) for rank in range(job.world)]
        made[f"{backend} pickle"] = tuple(encoded(it, as_json=False) for it in contents)
        made[f"{backend} json"] = tuple(encoded(it, as_json=True) for it in contents)
        made[f"{backend} protocol 5"] = tuple(pickle.dumps(it, protocol=5) for it in contents)
        active = [job.content(rank, active_only=True) for rank in range(job.world)]
        made[f"{backend} active"] = tuple(encoded(it, as_json=False) for it in active)
    made["old"] = tuple(pickle.dumps(_old(it), protocol=2) for it in contents)
    for files in made.values():
        may_be_loaded(files)
    return made


def _parallel_job(backend: str) -> Job:
    """Eight ranks in two rows of four and four columns of two, sends between them, a coalesced operation."""
    job = Job(8, backend=backend)
    rows = [job.group(f"r{at}", range(4 * at, 4 * at + 4), "TP") for at in range(2)]
    columns = [job.group(f"c{at}", [at, at + 4], "DP") for at in range(4)]
    for step in range(4):
        for at, row in enumerate(rows):
            job.issue(range(4 * at, 4 * at + 4), "all_gather_into_tensor", group=row, done=True)
        for at, column in enumerate(columns):
            job.issue([at, at + 4], group=column, size=[[4], [2, 3]], done=step < 3 or at != 1)
    job.issue(range(8), "all_to_all", size=[[8], [4]], out=[[4], [8]], done=True)
    if backend != "gloo":
        job.send(0, 4, done=True)
        job.send(4, 1, sides="recv")
        job.receive_from_any(5)
    job.issue([0, 1, 2, 3, 4, 6, 7])
    return job


def _old(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Version 1.0: the bare list of entries, groups by their id."""
    return [
        {("seq_id" if key == "collective_seq_id" else key): entry[key] for key in entry if key not in _NEW}
        for entry in content["entries"]
    ]


_NEW = ("process_group", "is_p2p", "p2p_seq_id", "op_id", "input_dtypes", "output_dtypes", "thread_name")


def mutated(data: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """The same dump after one change or a few; `others` are what may be spliced in."""
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        change = chance.choice(_CHANGES)
        data = change(data, others, chance)
    return data


_Change = Callable[[bytes, Sequence[bytes], random.Random], bytes]


def _flip(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _try in range(chance.choice((1, 1, 2, 16)) if data else 0):
        changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _overwrite(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    put = chance.choice((b"\x00", b"\xff", b"\xff\xff\xff\x7f", b"\xff" * 8, chance.randbytes(4)))
    return data[:at] + put + data[at + len(put) :]


def _cut(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _leave_out(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + data[at + chance.choice((1, 2, 5, 100, 1000)) :]


def _repeat(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    part = data[at : at + chance.choice((1, 5, 100, 1000))]
    return data[:at] + part * chance.choice((2, 3, 20)) + data[at:]


def _splice(data: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    other = chance.choice(others)
    return data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other) + 1) :]


_OPCODES = tuple(op.code.encode("latin-1") for op in pickletools.opcodes)
_INSERTED = (
    *_OPCODES,
    b"cos\nsystem\n",
    b"cbuiltins\neval\n(X\x03\x00\x00\x001+1tR",
    b"\x8c\x02os\x8c\x06system\x93",
    b"Pid\n",
    b"X\xff\xff\xff\xff",
    b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"B\xff\xff\xff\x7f",
    b"\x8b\xff\xff\xff\x7f",
    b"\x95\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"]r\xff\xff\xff\xff",
    b"]r\xff\xff\xff\x07",
    b"I" + b"9" * 5000 + b"\n",
    b"L" + b"9" * 10_000 + b"L\n",
    b"(" * 10_000,
    b"]" * 10_000,
    b"}" * 10_000 + b"K\x01K\x02s",
    b"]2" + b"2a" * 5,
    b"]" + b"\x85" * 50_000,
    b"\x8f(K\x01K\x02\x90",
)


@lru_cache(maxsize=1024)
def _op_places(data: bytes) -> tuple[int, ...]:
    places = []
    with contextlib.suppress(Exception), warnings.catch_warnings():  # where it cannot read on is the end
        warnings.simplefilter("ignore")
        for _, _, place in pickletools.genops(data):
            places.append(place or 0)
    return tuple(places)


def _op_place(data: bytes, chance: random.Random) -> int:
    places = _op_places(data)
    return chance.choice(places) if places else chance.randrange(len(data) + 1)


def _swap_opcode(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    at = _op_place(data, chance)
    return data[:at] + chance.choice(_OPCODES) + data[at + 1 :]


def _insert_opcode(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    at = _op_place(data, chance)
    return data[:at] + chance.choice(_INSERTED) + data[at:]


def _swap_argument(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    at = _op_place(data, chance) + 1
    number = struct.pack(
        "<I", chance.choice((0, 1, 255, 65535, len(data), 1 << 20, (1 << 31) - 1, (1 << 32) - 1))
    )
    return data[:at] + number[: chance.choice((1, 2, 4))] + data[at + 1 :]


def _swap_values(data: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Loaded, changed and written again; where it no longer is a dump, cut."""
    content = _loaded(data)
    if content is None:
        return _cut(data, others, chance)
    content = copy.deepcopy(content)
    for _ in range(chance.choice((1, 1, 3, 10))):
        content = odd(content, chance)
    try:
        return (
            json.dumps(content).encode()
            if data[:1] in b"{["
            else pickle.dumps(content, protocol=chance.choice((2, 4)))
        )
    except (TypeError, ValueError, RecursionError):  # a value that JSON does not have
        return _cut(data, others, chance)


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name}")


@lru_cache(maxsize=1024)
def _loaded(data: bytes) -> Any:
    """The values of a dump that was not mutated yet; of others not, for this process has no limits."""
    if data not in _WHOLE:
        return None
    try:
        return json.loads(data) if data[:1] in b"{[" else _Plain(io.BytesIO(data)).load()
    except (pickle.UnpicklingError, EOFError, ValueError):
        return None


_WHOLE: set[bytes] = set()


def may_be_loaded(files: Iterable[bytes]) -> None:
    """Say that these are not mutated, so that values in them can be changed."""
    _WHOLE.update(files)


def odd(value: Any, chance: random.Random) -> Any:
    """One value somewhere inside replaced, removed, added, or put where another was."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        if chance.random() < 0.1:
            value.pop(key)
        elif chance.random() < 0.05:
            value[chance.choice(("entries", "version", 5, "x\x1b[2J"))] = chance.choice(ODD_VALUES)
        else:
            value[key] = odd(value[key], chance)
        return value
    if isinstance(value, list) and value and chance.random() < 0.9:
        at = chance.randrange(len(value))
        if chance.random() < 0.1:
            chance.shuffle(value)
        elif chance.random() < 0.1:
            value[at] = value[chance.randrange(len(value))]
        else:
            value[at] = odd(value[at], chance)
        return value
    return _nested(chance) if chance.random() < 0.02 else copy.deepcopy(chance.choice(ODD_VALUES))


def _nested(chance: random.Random) -> Any:
    value: Any = []
    for _ in range(chance.choice((10, 100, 400))):
        value = {"a": value} if chance.random() < 0.5 else [value]
    return value


_CHANGES: tuple[_Change, ...] = (
    _flip,
    _overwrite,
    _cut,
    _leave_out,
    _repeat,
    _splice,
    _swap_opcode,
    _swap_opcode,
    _insert_opcode,
    _swap_argument,
    _swap_values,
    _swap_values,
    _swap_values,
)
