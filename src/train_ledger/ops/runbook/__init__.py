"""What does a person do about an alert?"""

from __future__ import annotations

from train_ledger.ops.runbook.book import LANGUAGES, RUNBOOK, Book, Section, language_of, runbook
from train_ledger.ops.runbook.card import CardLine, card
from train_ledger.ops.runbook.places import Places, filled, places_of, unfilled

__all__ = [
    "LANGUAGES",
    "RUNBOOK",
    "Book",
    "CardLine",
    "Places",
    "Section",
    "card",
    "filled",
    "language_of",
    "places_of",
    "runbook",
    "unfilled",
]
