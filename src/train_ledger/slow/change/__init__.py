"""Since when do steps take longer, and which part of them?"""

from __future__ import annotations

from train_ledger.slow.change.course import sampled, since_when
from train_ledger.slow.change.parts import PARTS, changes_of, series_of
from train_ledger.slow.change.point import FEWEST, Change, change

__all__ = ["FEWEST", "PARTS", "Change", "change", "changes_of", "sampled", "series_of", "since_when"]
