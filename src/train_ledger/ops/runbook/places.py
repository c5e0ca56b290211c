"""What stands for RUN, HOST and RANK in a command?

What is known comes from the journal: the newest verdict names hosts and ranks, else the newest alerts do.
Nothing is invented: a word that nothing tells stays as it is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from train_ledger.ledger import journal
from train_ledger.ops.hosts import is_host
from train_ledger.run_dir import RunDir

__all__ = ["Places", "filled", "places_of", "unfilled"]

_MOST = 4
"""Hosts or ranks for which a command is written out; beyond that the first ones will do."""

_LONGEST_RANK = 9
_WANTED = ("host", "rank")
_BLOCK = re.compile(r"^( *)```sh\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`((?:train-ledger|ssh|curl) [^`\n]+)`")


@dataclass(frozen=True, slots=True)
class Places:
    """The run's path, and the hosts and ranks in question; empty or None where nothing tells.

    `not_read` says why the journal could not be asked.
    """

    run: str | None = None
    hosts: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    not_read: str | None = None


def places_of(run_dir: RunDir, alert: str | None = None) -> Places:
    """What the journal of a run names: the newest verdict, else the newest incident with this alert.

    A journal that cannot be read is told, and keeps nobody from what is to be done.
    """
    run = str(run_dir.path)
    try:
        entries = journal.read(run_dir.journal).entries
    except journal.JournalError as error:
        return Places(run, not_read=str(error))
    for entry in reversed(entries):
        if entry.get("kind") == "verdict" and isinstance(entry.get("diagnosis"), dict):
            hosts, ranks = _hosts(entry["diagnosis"].get("hosts")), _ranks(entry["diagnosis"].get("ranks"))
            if hosts or ranks:
                return Places(run, hosts, ranks)
        if labels := [*_labels(entry, alert)]:
            named = [[it.get(name) for it in labels] for name in _WANTED]
            return Places(run, _hosts(named[0]), _ranks(named[1]))
    return Places(run)


def _labels(entry: Mapping[str, Any], alert: str | None) -> Iterator[Mapping[str, Any]]:
    """The labels of the alerts that an incident's entry holds and that name a host or a rank."""
    record = entry.get("record")
    members = record.get("members") if isinstance(record, dict) else None
    for member in members if isinstance(members, list) else ():
        found = member.get("alert") if isinstance(member, dict) else None
        if not isinstance(found, dict) or alert not in (None, found.get("name")):
            continue
        labels = found.get("labels")
        if isinstance(labels, dict) and not labels.keys().isdisjoint(_WANTED):
            yield labels


def _hosts(told: object) -> tuple[str, ...]:
    """Names that ssh would take for no option."""
    names = told if isinstance(told, list) else []
    return tuple(dict.fromkeys(it for it in names if isinstance(it, str) and is_host(it)))


def _ranks(told: object) -> tuple[int, ...]:
    numbers = told if isinstance(told, list) else []
    texts = (str(it) for it in numbers if isinstance(it, str | int) and not isinstance(it, bool))
    numerals = (it for it in texts if it.isascii() and it.isdigit() and len(it) < _LONGEST_RANK)
    return tuple(dict.fromkeys(map(int, numerals)))


def filled(text: str, places: Places) -> str:
    """The Markdown of a section with the commands in it written out for these places.

    >>> filled("`ssh HOST uptime`", Places(hosts=("node7",)))
    '`ssh node7 uptime`'
    """
    blocks = _BLOCK.sub(lambda block: _block(block[1], block[2].splitlines(), places), text)
    return _INLINE.sub(lambda span: f"`{next(_commands(span[1], places))}`", blocks)


def unfilled(text: str) -> tuple[str, ...]:
    """Which of RUN, HOST and RANK still stand in it, for want of a place.

    >>> unfilled("`ssh HOST uptime`")
    ('HOST',)
    """
    return tuple(word for word in ("RUN", "HOST", "RANK") if _has(text, word))


def _block(indent: str, lines: Sequence[str], places: Places) -> str:
    commands = [command for line in lines for command in _commands(line, places)]
    return "\n".join([f"{indent}```sh", *commands, f"{indent}```"])


def _commands(line: str, places: Places) -> Iterator[str]:
    """A line for each host, or each rank, that it is about."""
    words: Iterable[tuple[str, Iterable[object]]] = (("HOST", places.hosts), ("RANK", places.ranks))
    lines = [line if places.run is None else _put(line, "RUN", places.run)]
    for word, values in words:
        known = [str(value) for value in values][:_MOST]
        if known:
            lines = [
                made
                for each in lines
                for made in ([_put(each, word, value) for value in known] if _has(each, word) else [each])
            ]
    yield from lines


def _has(line: str, word: str) -> bool:
    return re.search(rf"\b{word}\b", line) is not None


def _put(line: str, word: str, value: str) -> str:
    return re.sub(rf"\b{word}\b", lambda _: shlex.quote(value), line)
