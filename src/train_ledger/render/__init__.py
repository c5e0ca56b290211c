"""How does an answer look? One look for all.

`as_text` for a terminal, `as_json` for a script, `as_html` for one file to send on. Whatever came from a log
is made harmless on the way.
"""

from __future__ import annotations

from train_ledger.render.fact_line import OF_EVERY_FACT, fact_line
from train_ledger.render.frame import Made
from train_ledger.render.harmless import harmless
from train_ledger.render.html import as_html
from train_ledger.render.json import as_json
from train_ledger.render.lost import is_felt, still_slow
from train_ledger.render.picture import Picture
from train_ledger.render.ranks import rank_ranges, ranks_in_brief, ranks_in_words
from train_ledger.render.report import Report
from train_ledger.render.stacks import StackGroup, report_of_stacks, standing_apart
from train_ledger.render.text import as_text, wants_colour
from train_ledger.render.words import duration, moment, place_in_code, verdict

__all__ = [
    "OF_EVERY_FACT",
    "Made",
    "Picture",
    "Report",
    "StackGroup",
    "as_html",
    "as_json",
    "as_text",
    "duration",
    "fact_line",
    "harmless",
    "is_felt",
    "moment",
    "place_in_code",
    "rank_ranges",
    "ranks_in_brief",
    "ranks_in_words",
    "report_of_stacks",
    "standing_apart",
    "still_slow",
    "verdict",
    "wants_colour",
]
