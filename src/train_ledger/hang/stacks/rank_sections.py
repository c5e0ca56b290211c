"""Does one file hold the stacks of several ranks?

Two forms do. The pages and periodic dumps of torch.distributed.debug (torch 2.13: _frontend.py and
_debug_handlers.py there): a heading with the rank and the address of its server, then what that answered – a
stack, or an error. And our own, `train-ledger stacks --json --full`, as one host sends it to another.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import msgspec

from train_ledger.answer import Unreadable
from train_ledger.hang.dumps.group_table import MOST_RANKS
from train_ledger.hang.dumps.pickles import RefusedError
from train_ledger.hang.stacks.stack_formats import Thread, frame, threads_in

__all__ = ["OwnStacks", "RankStack", "of_debug_server", "of_ourselves", "plain_stacks", "says_several"]


@dataclass(frozen=True, slots=True)
class RankStack:
    """All threads of one rank's process at one moment."""

    rank: int
    pid: int | None
    host: str | None
    threads: tuple[Thread, ...]


_HEADING = re.compile(
    r"^[ \t]*(?:=== Rank (?P<rank>\d{1,9}): (?P<address>\S*) ===|"
    r"<h2>Rank (?P<page_rank>\d{1,9}): (?P<page_address>[^<\s]*)</h2>)[ \t]*$",
    re.MULTILINE,
)
_OWN = re.compile(rb'\s*\{\s*"schema"\s*:')
_FAILED = re.compile(r"(?:Error: |<p>Failed to fetch: status=)(\d{1,9})")
_SUMMARY = re.compile(r"^  Rank (\d{1,9}): (.*)$", re.MULTILINE)


def says_several(beginning: bytes) -> bool:
    """Whether a file that begins so holds several ranks."""
    text = beginning.decode("utf-8", "replace")
    return _OWN.match(beginning) is not None or _HEADING.search(text) is not None or "PARTIAL DATA:" in text


def of_debug_server(data: bytes, file: str) -> tuple[list[RankStack], list[Unreadable]]:
    """The stack of each rank's section, and which servers gave none, why."""
    text = data.decode("utf-8", "replace")
    headings = [*_HEADING.finditer(text)]
    ends = [*(it.start() for it in headings), len(text)]
    reasons = dict(_SUMMARY.findall(text[: ends[0]]))
    stacks, unread = [], []
    for heading, end in zip(headings, ends[1:], strict=True):
        rank = int(heading["rank"] or heading["page_rank"])
        body = text[heading.end() : end]
        stack = _of_section(rank, heading["address"] or heading["page_address"] or "", body)
        if isinstance(stack, RankStack):
            stacks.append(stack)
        else:
            why = reasons.get(str(rank))
            unread.append(Unreadable(f"{file}, rank {rank}", f"{stack}: {why}" if why else stack))
    return stacks, unread


def _of_section(rank: int, address: str, body: str) -> RankStack | str:
    if rank >= MOST_RANKS:
        return f"the number of its section is no rank: {MOST_RANKS} or more"
    if failed := _FAILED.match(body.lstrip()):
        return f"its debug server gave no stack (status {failed[1]})"
    _, is_page, answered = body.partition("<pre>")
    content = html.unescape(answered.partition("</pre>")[0]) if is_page else body
    try:
        pid, threads = threads_in(content.encode("utf-8", "replace"))
    except RefusedError as error:
        return str(error)
    if not any(thread.frames for thread in threads):
        return "no stack in its section"
    return RankStack(rank, pid, _host(address), threads)


def _host(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


class _OwnThread(msgspec.Struct):
    name: str
    is_main: bool
    frames: list[tuple[str, int, str]]
    active: bool | None = None
    holds_gil: bool = False


class _OwnStack(msgspec.Struct):
    rank: int
    threads: list[_OwnThread]
    pid: int | None = None
    host: str | None = None


class _OwnUnread(msgspec.Struct):
    file: str
    why: str


class _Own(msgspec.Struct):
    stacks: list[_OwnStack]
    unreadable: list[_OwnUnread] = []
    job: dict[str, str] = {}
    host: str | None = None


@dataclass(frozen=True, slots=True)
class OwnStacks:
    """What `train-ledger stacks --json --full` said of one host; `job` names the job of its ranks."""

    stacks: tuple[RankStack, ...]
    unread: tuple[Unreadable, ...] = ()
    job: Mapping[str, str] = field(default_factory=dict)
    host: str | None = None


def of_ourselves(data: bytes) -> OwnStacks:
    """The stacks in our own JSON; raises RefusedError for any other."""
    try:
        said = msgspec.json.decode(data, type=_Own)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise RefusedError(
            f"no stacks as `train-ledger stacks --json --full` writes them: {error}"
        ) from error
    if beyond := [it.rank for it in said.stacks if not 0 <= it.rank < MOST_RANKS]:
        raise RefusedError(f"{beyond[0]} is no rank: from 0 to {MOST_RANKS - 1} is")
    stacks = tuple(RankStack(it.rank, it.pid, it.host or said.host, _threads(it)) for it in said.stacks)
    unread = tuple(Unreadable(it.file, it.why) for it in said.unreadable)
    return OwnStacks(stacks, unread, said.job, said.host)


def _threads(stack: _OwnStack) -> tuple[Thread, ...]:
    return tuple(
        Thread(it.name, it.is_main, tuple(frame(*one) for one in it.frames), it.active, it.holds_gil)
        for it in stack.threads
    )


def plain_stacks(stacks: Iterable[RankStack]) -> list[dict[str, Any]]:
    """The stacks as JSON values, as `of_ourselves` reads them."""
    return [
        {
            "rank": stack.rank,
            "pid": stack.pid,
            "host": stack.host,
            "threads": [
                {
                    "name": thread.name,
                    "is_main": thread.is_main,
                    "active": thread.active,
                    "holds_gil": thread.holds_gil,
                    "frames": [[it.file, it.line, it.function] for it in thread.frames],
                }
                for thread in stack.threads
            ],
        }
        for stack in stacks
    ]
