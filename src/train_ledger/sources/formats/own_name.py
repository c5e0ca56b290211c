"""Under which name does a number of a log pass that train_ledger.fields does not know?"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["own_name"]

_OTHER = re.compile(r"[^a-z0-9]+")
_LONGEST = 80


def own_name(text: str) -> str:
    """The log's own name in lower case, other characters as `_`; empty where nothing is left of it.

    >>> own_name("Train/Loss (avg)"), own_name("rewards/chosen"), own_name("(%)")
    ('train_loss_avg', 'rewards_chosen', '')
    """
    return _named(text[:_LONGEST])


@lru_cache(4096)
def _named(text: str) -> str:
    return _OTHER.sub("_", text.lower()).strip("_")
