"""How are a million equal lines written down without their number being lost?

The first few as they are; of those that follow only how many they were, in one line every few seconds while
the burst goes on. `kernel_log` reads that line as so many faults.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from train_ledger.sources.hardware.kernel_message import KernelMessage
from train_ledger.sources.logs.kernel_log import more_such_lines

__all__ = ["Bursts"]

_FIRST = 3
_SUMMARY_S = 10.0
_QUIET_S = 60.0
_MOST_KINDS = 1000
_XID = re.compile(r"S?Xid \((?:PCI:)?([0-9A-Fa-f:.]{1,20})[^)]{0,40}\): (\d{1,6})")
_VARYING = re.compile(r"0x[0-9A-Fa-f]+|\b[0-9A-Fa-f]{6,}\b|\d+")


@dataclass(slots=True)
class _Kind:
    written: int = 0
    left_out: int = 0
    last: KernelMessage | None = None
    last_s: float = 0.0
    told_s: float = 0.0


class Bursts:
    """Lines of one kind are those of the same GPU and XID, else those that differ in their numbers alone."""

    def __init__(self) -> None:
        self._kinds: dict[str, _Kind] = {}

    def pass_on(self, messages: Iterable[KernelMessage], now_s: float) -> list[KernelMessage]:
        """What is to be written of these, at this moment of a clock that does not jump."""
        passed: list[KernelMessage] = []
        for message in messages:
            kind = self._kind(message.text)
            if kind.last is not None and now_s - kind.last_s >= _QUIET_S:
                passed += _told(kind, now_s)
                kind.written = 0
            kind.last, kind.last_s = message, now_s
            if kind.written < _FIRST:
                kind.written += 1
                passed.append(message)
            else:
                kind.told_s = kind.told_s if kind.left_out else now_s
                kind.left_out += 1
        return passed + list(self._due(now_s))

    def rest(self) -> list[KernelMessage]:
        """What was left out and not told yet: nobody will ask any more."""
        return [it for kind in self._kinds.values() for it in _told(kind, 0.0)]

    def _kind(self, text: str) -> _Kind:
        name = _name(text)
        if name not in self._kinds and len(self._kinds) >= _MOST_KINDS:
            name = ""  # as many kinds at once are one flood
        return self._kinds.setdefault(name, _Kind())

    def _due(self, now_s: float) -> Iterator[KernelMessage]:
        for name, kind in list(self._kinds.items()):
            if kind.left_out and now_s - kind.told_s >= _SUMMARY_S:
                yield from _told(kind, now_s)
            if not kind.left_out and now_s - kind.last_s >= _QUIET_S:
                del self._kinds[name]


def _told(kind: _Kind, now_s: float) -> Iterator[KernelMessage]:
    if kind.left_out and kind.last is not None:
        yield KernelMessage(kind.last.t, more_such_lines(kind.last.text, kind.left_out))
        kind.left_out, kind.told_s = 0, now_s


def _name(text: str) -> str:
    match = _XID.search(text)
    front, rest = (f"{match[1]} {match[2]}", text[match.end() :]) if match else ("", text)
    return f"{front} {_VARYING.sub('#', rest[:400])}"
