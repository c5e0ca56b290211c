"""How sure is it that the ranks which fell by themselves are the cause?

What a rank raised is its own word. It decides where one rank alone raised, and all others either lost it or
were ended because of it: then nothing runs any more that could tell another story.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from train_ledger.answer import Confidence
from train_ledger.hang.knowledge import RankKnowledge, is_consequence, was_ended

__all__ = ["is_over", "sure_of_fall"]

_WAITED = ("timeout", "timed out")
"""Who gave up waiting may have waited for one that only hung."""


def sure_of_fall(
    known: Mapping[int, RankKnowledge], fallen: Collection[int], world: Collection[int]
) -> Confidence:
    """
    High: one raised, and every other is known to have lost it, or was ended from outside.
    Medium: all that fell say why, or there is but one. Low: several fell without a word.
    """
    told = all(_says_why(known.get(rank)) for rank in fallen)
    if not told and len(fallen) != 1:
        return "low"
    others = {*world, *known}.difference(fallen)
    lost = all(it is not None and _lost_a_peer(it) for it in map(known.get, others))
    raised = [str(it.exception).lower() for rank in fallen if (it := known.get(rank))]
    waited = any(word in said for said in raised for word in _WAITED)
    return "high" if told and len(fallen) == 1 and others and lost and not waited else "medium"


def is_over(rank: RankKnowledge) -> bool:
    """Whether nothing of this rank runs any more, as far as is known: there is nobody left to ask."""
    return rank.gone or rank.ended or rank.exception is not None or rank.signal is not None


def _says_why(rank: RankKnowledge | None) -> bool:
    return rank is not None and (rank.no_memory or rank.exception is not None)


def _lost_a_peer(rank: RankKnowledge) -> bool:
    return was_ended(rank) or (rank.exception is not None and is_consequence(rank.exception))
