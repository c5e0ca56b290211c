"""Does everything that a long run needs hold, before it starts?

Records and criteria of the thirteen items, as pure functions of what was measured. Who measures and drills is
chaos.preflight.
"""

from __future__ import annotations

from train_ledger.ops.preflight.bandwidth import bandwidth_checks
from train_ledger.ops.preflight.base import Base, base_checks, drill_base, own_base
from train_ledger.ops.preflight.configuration import configuration_checks
from train_ledger.ops.preflight.faults import OWN_STORE_VARIABLE, Launched, SlowFound, fault_checks
from train_ledger.ops.preflight.figures import RankFigures, read_figures, read_steps
from train_ledger.ops.preflight.hardware import clock_checks, gpu_checks
from train_ledger.ops.preflight.items import ITEMS, Item, answer_of, chosen
from train_ledger.ops.preflight.logs import log_checks, places
from train_ledger.ops.preflight.memory import memory_checks
from train_ledger.ops.preflight.own_run import OwnRun, read_own_run
from train_ledger.ops.preflight.paging import PageDrilled, Scraped, page_checks
from train_ledger.ops.preflight.recorder import HangDrilled, recorder_checks
from train_ledger.ops.preflight.records import (
    Check,
    ItemAnswer,
    Preflight,
    PreflightError,
    failed,
    not_possible,
    passed,
)
from train_ledger.ops.preflight.restoring import layout_checks, restore_checks
from train_ledger.ops.preflight.roster import roster_checks
from train_ledger.ops.preflight.scraping import scraped_by
from train_ledger.ops.preflight.showing import as_object, as_page, as_terminal

__all__ = [
    "ITEMS",
    "OWN_STORE_VARIABLE",
    "Base",
    "Check",
    "HangDrilled",
    "Item",
    "ItemAnswer",
    "Launched",
    "OwnRun",
    "PageDrilled",
    "Preflight",
    "PreflightError",
    "RankFigures",
    "Scraped",
    "SlowFound",
    "answer_of",
    "as_object",
    "as_page",
    "as_terminal",
    "bandwidth_checks",
    "base_checks",
    "chosen",
    "clock_checks",
    "configuration_checks",
    "drill_base",
    "failed",
    "fault_checks",
    "gpu_checks",
    "layout_checks",
    "log_checks",
    "memory_checks",
    "not_possible",
    "own_base",
    "page_checks",
    "passed",
    "places",
    "read_figures",
    "read_own_run",
    "read_steps",
    "recorder_checks",
    "restore_checks",
    "roster_checks",
    "scraped_by",
]
