"""Could every rule, panel and inhibition ever say something, on what these exporters really export?"""

from __future__ import annotations

from train_ledger.ops.lint.checks import Finding, LintAnswer, lint
from train_ledger.ops.lint.documents import DocumentError, Documents, generated, of_folder
from train_ledger.ops.lint.exported import Exported, ScrapeError, exported_by, fetched, read_scrape
from train_ledger.ops.lint.reading import lines

__all__ = [
    "DocumentError",
    "Documents",
    "Exported",
    "Finding",
    "LintAnswer",
    "ScrapeError",
    "exported_by",
    "fetched",
    "generated",
    "lines",
    "lint",
    "of_folder",
    "read_scrape",
]
