"""How does a long list of ranks come to the reading process's parent once, not with every dump?

The group table of each dump of a world of 16,384 ranks lists them all: 100 kB of text that is the same in all
of them. A reader sends such a text with the first dump and its number with the others.
"""

from __future__ import annotations

import msgspec

from train_ledger.hang.dumps.dump import Dump

__all__ = ["ListsReceived", "ListsSent"]

_WORTH_A_NUMBER = 64
_MOST_REMEMBERED = 64 << 20
_MARK = "#"
"""No list of ranks holds one."""


class ListsSent:
    """The sending side: a worker's, for all its dumps."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._room = _MOST_REMEMBERED

    def shortened(self, dump: Dump) -> tuple[Dump, tuple[str, ...]]:
        """The dump with numbers for its long lists, and those lists that were not sent before."""
        known = len(self._places)
        config = {name: (desc, self._shorter(ranks)) for name, (desc, ranks) in dump.config.items()}
        return msgspec.structs.replace(dump, config=config), tuple(self._places)[known:]

    def _shorter(self, ranks: str) -> str:
        if len(ranks) < _WORTH_A_NUMBER or (ranks not in self._places and len(ranks) > self._room):
            return ranks
        if ranks not in self._places:
            self._places[ranks] = len(self._places)
            self._room -= len(ranks)
        return f"{_MARK}{self._places[ranks]}"


class ListsReceived:
    """The receiving side, one for each worker; `shared` holds each text once, whoever sent it."""

    def __init__(self, shared: dict[str, str]) -> None:
        self._lists: list[str] = []
        self._shared = shared

    def restored(self, dump: Dump, lists: tuple[str, ...]) -> Dump:
        """The dump as it was before `shortened`. Raises ValueError for a number that was never sent."""
        self._lists += (self._kept(ranks) for ranks in lists)
        config = {name: (desc, self._whole(ranks)) for name, (desc, ranks) in dump.config.items()}
        return msgspec.structs.replace(dump, config=config)

    def _whole(self, ranks: str) -> str:
        if not ranks.startswith(_MARK):
            return self._kept(ranks)
        place = int(ranks.removeprefix(_MARK))
        if not 0 <= place < len(self._lists):
            raise ValueError(f"list {place} of {len(self._lists)}")
        return self._lists[place]

    def _kept(self, ranks: str) -> str:
        return self._shared.setdefault(ranks, ranks)
