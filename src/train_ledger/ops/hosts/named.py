"""Which hosts does a person mean?

Names separated by commas, ranges in brackets as Slurm and pdsh write them, or a file with one a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from train_ledger.run_dir import read_small

__all__ = ["HostsError", "hosts_in", "is_host"]

_MOST_HOSTS = 100_000
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,252}")
_RANGES = re.compile(r"(?P<before>[^\[\],]*)\[(?P<ranges>[0-9,-]+)\](?P<after>[^\[\],]*)")
_ENTRY = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_COMMAS = re.compile(r"[,\s]*")
_MOST_BYTES = 16 << 20


class HostsError(Exception):
    """A list of hosts cannot be used; the text says which part of it."""


def is_host(name: str) -> bool:
    """Whether it can be a host's name; one that begins with a dash would be an option of ssh.

    >>> is_host("node-01.example.org"), is_host("-oProxyCommand=x"), is_host("a b")
    (True, False, False)
    """
    return _NAME.fullmatch(name) is not None


def hosts_in(text: str) -> tuple[str, ...]:
    """The hosts in "a,b,node[01-16]" or in the file of "@FILE", each once, in their order.

    Raises HostsError for what is no name, and for more than a hundred thousand.

    >>> hosts_in("login,node[08-10,12]")
    ('login', 'node08', 'node09', 'node10', 'node12')
    """
    lines = _lines_of(Path(text[1:])) if text.startswith("@") else [text]
    found: dict[str, None] = {}
    for line in lines:
        for entry in _entries(line):
            for host in _expanded(entry.strip()):
                if not is_host(host):
                    raise HostsError(f"{host[:80]!r} is no name of a host")
                found[host] = None
                if len(found) > _MOST_HOSTS:
                    raise HostsError(f"more than {_MOST_HOSTS} hosts")
    if not found:
        raise HostsError(f"no host in {text[:80]!r}")
    return tuple(found)


def _lines_of(path: Path) -> Iterable[str]:
    """The first word of each line: the rest of one of a hostfile says how many slots a host has."""
    try:
        lines = read_small(path, limit_bytes=_MOST_BYTES).decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise HostsError(f"{path}: {error.strerror or error}") from error
    words = (line.partition("#")[0].split() for line in lines)
    return [some[0] for some in words if some]


def _entries(line: str) -> Iterator[str]:
    """What stands between the commas outside of brackets; all of the line is one of these or a comma."""
    at = _gap(line, 0)
    while at < len(line):
        entry = _ENTRY.match(line, at)
        if entry is None:
            raise HostsError(f"{line[at : at + 80]!r}: a bracket that is not paired")
        yield entry[0]
        at = _gap(line, entry.end())


def _gap(line: str, at: int) -> int:
    found = _COMMAS.match(line, at)
    return found.end() if found else at


def _expanded(entry: str) -> Iterator[str]:
    found = _RANGES.fullmatch(entry)
    if not found:
        yield entry
        return
    for part in found["ranges"].split(","):
        first, _, last = part.partition("-")
        last = last or first
        if not (first.isdecimal() and last.isdecimal() and len(first) < 9 and len(last) < 9):
            raise HostsError(f"{entry[:80]!r}: {part!r} is no range of numbers")
        for number in range(int(first), min(int(last), int(first) + _MOST_HOSTS) + 1):
            yield f"{found['before']}{number:0{len(first)}d}{found['after']}"
