"""Who is each rank: its host, its GPU?"""

from __future__ import annotations

from typing import Any

from train_ledger.facts import Event
from train_ledger.run_dir import RunDir, parsed_json, read_small
from train_ledger.slow.table.files import RankFiles
from train_ledger.sources import SignalDecoder

__all__ = ["first_identity", "identities_of", "identity_in"]

_HEAD_BYTES = 8192


def identities_of(run_dir: RunDir) -> dict[int, dict[str, Any]]:
    """What ranks.jsonl says, the newest line of each rank; nothing where it cannot be read."""
    try:
        content = read_small(run_dir.ranks_jsonl)
    except OSError:
        return {}
    found: dict[int, dict[str, Any]] = {}
    for text in content.splitlines():
        try:
            line = parsed_json(text)
        except ValueError:
            continue
        if isinstance(line, dict) and isinstance(line.get("rank"), int):
            found[line["rank"]] = {**line, "attempt": _attempt(line.get("attempt"))}
    return found


def _attempt(told: object) -> int:
    return told if isinstance(told, int) else 0


def first_identity(files: RankFiles, rank: int) -> dict[str, Any]:
    """What the run_start at the head of a rank's files says; {} where there is none."""
    return identity_in(files.read(0, _HEAD_BYTES), rank)


def identity_in(data: bytes, rank: int) -> dict[str, Any]:
    """What the last run_start of these lines says of the rank; {} where there is none.

    >>> told = identity_in(b'{"t": 1, "rank": 3, "event": "run_start", "host": "n1", "gpu": 3}', 3)
    >>> told["host"], told["gpu"], told["attempt"]
    ('n1', 3, 0)
    """
    end = data.rfind(b'"run_start"')
    if end < 0:
        return {}
    start = data.rfind(b"\n", 0, end) + 1
    stop = data.find(b"\n", end)
    fact = SignalDecoder().decode(data[start : stop if stop >= 0 else len(data)], rank=rank)
    if not isinstance(fact, Event) or fact.name != "run_start":
        return {}
    host = {} if fact.host is None else {"host": fact.host}
    return {**fact.details, **host, "attempt": fact.attempt}
