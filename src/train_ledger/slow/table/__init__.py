"""What did each rank tell of each of its newest steps?"""

from __future__ import annotations

from train_ledger.slow.table.folding import table_of_facts
from train_ledger.slow.table.layout import Layout, Place, layout_of
from train_ledger.slow.table.reading import Until, read_table
from train_ledger.slow.table.rows import FIELDS
from train_ledger.slow.table.step_table import StepTable

__all__ = [
    "FIELDS",
    "Layout",
    "Place",
    "StepTable",
    "Until",
    "layout_of",
    "read_table",
    "table_of_facts",
]
