"""What was found wrong with a run, before it is told to a person?"""

from __future__ import annotations

from typing import NamedTuple

from train_ledger.answer import Diagnosis
from train_ledger.render import Picture

__all__ = ["Found"]


class Found(NamedTuple):
    """A diagnosis, and what is drawn beside it.

    `lost_s` is how long nothing was done, where that is known better than by the state.
    """

    diagnosis: Diagnosis
    picture: Picture | None = None
    lost_s: float | None = None
