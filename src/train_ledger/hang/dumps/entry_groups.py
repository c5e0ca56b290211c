"""Which entries of a dump belong to one process group?

Groups go by name and description, before version 1.4 by an id of their process. A group that several
backends serve ("cpu:gloo,cuda:nccl") is several: each backend counts for itself.
"""

from __future__ import annotations

from typing import Any

from train_ledger.hang.dumps.entry import text
from train_ledger.hang.dumps.held import Key

__all__ = ["MAX_GROUPS", "entries_by_group"]

MAX_GROUPS = 4096

_Entries = list[dict[Any, Any]]


def entries_by_group(entries: _Entries) -> tuple[dict[Key, _Entries], bool]:
    """The entries of each group in the order of issue; and whether they name it by its id alone."""
    groups: dict[Any, _Entries] = {}
    keys = [entry.get("process_group") for entry in entries]
    if list in {*map(type, keys)}:
        keys = [tuple(key) if type(key) is list else key for key in keys]
    for key, entry in zip(keys, entries, strict=True):
        try:
            groups[key].append(entry)
        except KeyError:
            if len(groups) < MAX_GROUPS:
                groups[key] = [entry]
    if len(groups) > 1:
        groups.pop(None, None)  # where others name their group, it lost its name
    if None in groups:
        return _by_id(groups[None]), True
    named: dict[Key, _Entries] = {}
    for key, of_group in groups.items():
        for backend, part in _by_backend(of_group):
            named.setdefault((*_names(key), backend), []).extend(part)
    return named, False


def _names(listed: Any) -> tuple[str, str]:
    if isinstance(listed, tuple) and len(listed) == 2:
        return text(listed[0]), text(listed[1])
    return text(listed), ""


def _by_id(entries: _Entries) -> dict[Key, _Entries]:
    groups: dict[Key, _Entries] = {}
    for entry in entries:
        groups.setdefault((text(entry.get("pg_id", 0)), "", ""), []).append(entry)
    return groups


def _by_backend(entries: _Entries) -> list[tuple[str, _Entries]]:
    """Apart where there are several; an entry that tells none goes with the first."""
    backend_of = {name: _backend(name) for name in {entry.get("profiling_name") for entry in entries}}
    backends = {backend for backend in backend_of.values() if backend}
    if len(backends) < 2:
        return [("", entries)]
    parts: dict[str, _Entries] = {backend: [] for backend in sorted(backends)}
    first = next(iter(parts))
    for entry in entries:
        parts[backend_of[entry.get("profiling_name")] or first].append(entry)
    return list(parts.items())


def _backend(name: Any) -> str:
    backend, colon, _ = text(name).partition(":")
    return backend if colon else ""
