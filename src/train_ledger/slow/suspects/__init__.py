"""Why are steps slow: which of the suspects, by which figure?"""

from __future__ import annotations

from train_ledger.slow.suspects.cards import Cards
from train_ledger.slow.suspects.tree import Beside, suspects
from train_ledger.slow.suspects.view import Onset, View, seconds_in_words

__all__ = ["Beside", "Cards", "Onset", "View", "seconds_in_words", "suspects"]
