"""Every event that real logs tell of has its meaning in the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from train_ledger.facts import Event
from train_ledger.fields import EVENT_MEANINGS, LOG_EVENT_MEANINGS
from train_ledger.sources import read_facts

LOGS = Path(__file__).parents[3] / "shared" / "data" / "logs"
pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason="real logs are not here")


def test_every_event_of_real_logs_is_in_the_table() -> None:
    names = {fact.name for fact in read_facts([LOGS]) if isinstance(fact, Event)}
    assert {"run_start", "stack"} <= names
    assert names <= EVENT_MEANINGS.keys() | LOG_EVENT_MEANINGS.keys()
