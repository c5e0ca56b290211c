"""Was every collective of this step seen, by the process groups' own count?

Each group numbers its collectives; to read the number costs less than a microsecond and waits for nothing.
gloo numbers what is sent and received as well, NCCL does not.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["Sequence"]


class Sequence:
    """The sequence numbers of all process groups of this rank, and what was seen of each since the last look.

    Groups are known by their id: whoever destroys one is not to find that it was kept.
    """

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self._seen: dict[int, int] = {}
        self._pairs: dict[int, int] = {}

    def saw(self, group: Any) -> None:
        """A collective was issued through Python."""
        key = id(group)
        self._seen[key] = self._seen.get(key, 0) + 1

    def saw_pair(self, group: Any) -> None:
        """Something was sent or received."""
        key = id(group)
        self._pairs[key] = self._pairs.get(key, 0) + 1

    def unexplained(self, group: Any) -> int:
        """How many collectives the group has issued, ever, beyond those seen since the last look."""
        return (_number(group) or 0) - self._seen.get(id(group), 0)

    def explain(self, group: Any, number: int) -> None:
        """So many that were not seen are known of all the same."""
        key = id(group)
        self._seen[key] = self._seen.get(key, 0) + max(0, number)

    def forget(self) -> None:
        """Begin anew."""
        self._last, self._seen, self._pairs = {}, {}, {}

    def all_seen(self) -> bool | None:
        """Whether each group's collectives since the last call were seen; None where there are no groups.

        To make a group is to wait for its members where nobody sees it: with one that is new, False.
        """
        groups = _groups()
        seen, pairs = self._seen, self._pairs
        if seen or pairs:
            self._seen, self._pairs = {}, {}
        if not groups:
            self._last = {}
            return None
        last, whole = self._last, True
        if len(last) > len(groups):  # of groups that are gone
            self._last = last = {key: last[key] for group in groups if (key := id(group)) in last}
        for group in groups:
            number = _number(group)
            if number is None:
                continue
            key = id(group)
            before = last.get(key)
            if number == before:
                continue
            last[key] = number
            issued = -1 if before is None else number - before
            known = seen.get(key, 0)
            whole = whole and (0 <= issued <= known or issued == known + pairs.get(key, 0))
        return whole


def _number(group: Any) -> int | None:
    """None for a backend that does not count."""
    try:
        return int(group._get_sequence_number_for_group())
    except (RuntimeError, AttributeError, TypeError):
        return None


def _groups() -> list[Any]:
    world = getattr(sys.modules.get("torch.distributed.distributed_c10d"), "_world", None)
    try:
        return list(getattr(world, "pg_map", ()))
    except RuntimeError:  # changed by another thread while it was copied
        return []
