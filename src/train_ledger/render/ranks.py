"""How are many ranks named in few words?

Ranks of a mesh lie in strides: every eighth of a thousand is said, not listed. Where a few are missing out of
many, these are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

__all__ = ["rank_ranges", "ranks_in_brief", "ranks_in_words"]

_FEWEST_OF_STRIDE = 6
_LONG = 40
"""Letters of a list beyond which it may be shorter to say who does not belong to it."""

_Run = tuple[int, int, int]
"""First, last, and how far they lie apart."""


def rank_ranges(ranks: Iterable[int]) -> str:
    """Ranks in ascending order, runs drawn together.

    >>> rank_ranges([7, 0, 1, 2, 4, 5, 6])
    '0-2,4-7'
    """
    return ",".join(_in_digits(first, last) for first, last, _ in _runs(ranks))


def _runs(ranks: Iterable[int]) -> list[_Run]:
    runs: list[_Run] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], rank, 1)
        else:
            runs.append((rank, rank, 1))
    return runs


def _in_digits(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def ranks_in_words(ranks: Iterable[int], member: str = "rank") -> str:
    """The same as a phrase; `member` is what one of them is called.

    >>> ranks_in_words([3]), ranks_in_words([3, 7]), ranks_in_words([])
    ('rank 3', 'ranks 3,7', 'no rank')
    >>> ranks_in_words(range(4, 1024, 8))
    'ranks 4-1020 every 8th'
    >>> ranks_in_words(set(range(8, 1024)) - set(range(13, 1024, 8)))
    'ranks 8-1023 without 13-1021 every 8th'
    """
    some = set(ranks)
    if not some:
        return f"no {member}"
    if len(some) == 1:
        return f"{member} {min(some)}"
    told = _told(some)
    if len(told) > _LONG:
        first, last = min(some), max(some)
        others = set(range(first, last + 1)) - some if last - first < 2 * len(some) else set()
        without = f"{first}-{last} without {_told(others)}"
        told = without if others and len(without) < len(told) else told
    return f"{member}s {told}"


def _told(ranks: Iterable[int]) -> str:
    return ",".join(
        f"{_in_digits(first, last)} every {_ordinal(apart)}" if apart > 1 else _in_digits(first, last)
        for first, last, apart in _strides(_runs(ranks))
    )


def _strides(runs: list[_Run]) -> Iterator[_Run]:
    """Of single ranks that lie equally far apart one run, where they are many."""
    at = 0
    while at < len(runs):
        end = _end_of_stride(runs, at)
        if end - at >= _FEWEST_OF_STRIDE:
            yield runs[at][0], runs[end - 1][0], runs[at + 1][0] - runs[at][0]
            at = end
        else:
            yield runs[at]
            at += 1


def _end_of_stride(runs: list[_Run], at: int) -> int:
    """Behind the last of the runs from `at` on that are single ranks as far apart as the first two."""
    end = at
    while end < len(runs) and runs[end][0] == runs[end][1]:
        if end >= at + 2 and runs[end][0] - runs[end - 1][0] != runs[at + 1][0] - runs[at][0]:
            break
        end += 1
    return end


def _ordinal(number: int) -> str:
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def ranks_in_brief(ranks: Iterable[int], member: str = "rank", *, longest: int = 120) -> str:
    """The same, cut after some ranges and then with their number where it is longer than `longest`.

    >>> ranks_in_brief([0, 2, 3, 5, 8, 9, 11, 14, 17, 18, 23], longest=20)
    '11 ranks 0,2-3,5,…'
    """
    some = set(ranks)
    whole = ranks_in_words(some, member)
    if len(whole) <= longest:
        return whole
    counted = f"{len(some)} {member}s {rank_ranges(some)}"
    return f"{counted[: longest - 1].rpartition(',')[0]},…"
