"""How are many ranks named in few words?"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["rank_ranges", "ranks_in_brief", "ranks_in_words"]


def rank_ranges(ranks: Iterable[int]) -> str:
    """Ranks in ascending order, runs drawn together.

    >>> rank_ranges([7, 0, 1, 2, 4, 5, 6])
    '0-2,4-7'
    """
    runs: list[tuple[int, int]] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], rank)
        else:
            runs.append((rank, rank))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def ranks_in_words(ranks: Iterable[int], member: str = "rank") -> str:
    """The same as a phrase; `member` is what one of them is called.

    >>> ranks_in_words([3]), ranks_in_words([3, 7]), ranks_in_words([])
    ('rank 3', 'ranks 3,7', 'no rank')
    """
    some = set(ranks)
    if not some:
        return f"no {member}"
    return f"{member} {min(some)}" if len(some) == 1 else f"{member}s {rank_ranges(some)}"


def ranks_in_brief(ranks: Iterable[int], member: str = "rank", *, longest: int = 120) -> str:
    """The same, cut after some ranges and then with their number where it is longer than `longest`.

    >>> ranks_in_brief(range(0, 100, 2), longest=20)
    '50 ranks 0,2,4,6,8,…'
    """
    some = set(ranks)
    whole = ranks_in_words(some, member)
    if len(whole) <= longest:
        return whole
    counted = f"{len(some)} {whole}"
    return f"{counted[: longest - 1].rpartition(',')[0]},…"
