"""What was not read, in words?"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["not_read_in_words"]


def not_read_in_words(counts: Mapping[str, int], where: Mapping[str, str]) -> tuple[str, ...]:
    """One phrase a reason.

    >>> not_read_in_words({"torn": 2, "too_long": 1}, {"torn": "signals/rank_00000.jsonl:9"})
    ('1 × too_long', '2 × torn (signals/rank_00000.jsonl:9)')
    """
    return tuple(
        f"{number} × {reason} ({where[reason]})" if reason in where else f"{number} × {reason}"
        for reason, number in sorted(counts.items())
    )
