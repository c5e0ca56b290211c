"""What to mend first."""

from __future__ import annotations

import dataclasses

import pytest

from train_ledger.ledger.costs import costs, given

from .made import ACCOUNTS, recovery


def _saved(found: object) -> dict[str, float | None]:
    return {it.measure.split(" ")[0]: it.saved_s for it in found.priorities}  # type: ignore[attr-defined]


def test_the_seeds_table_in_its_order() -> None:
    rows = costs().priorities
    assert [it.measure.split(" ")[0] for it in rows] == ["alert", "exclude", "one", "checkpoint", "where"]
    cost = {it.measure.split(" ")[0]: it.cost for it in rows}
    assert cost["alert"] == pytest.approx(300_000, rel=0.01)
    assert 50_000 <= (cost["exclude"] or 0) <= 100_000
    assert cost["one"] == pytest.approx(44_000, rel=0.01)
    assert cost["where"] is None


def test_of_a_run_counts_what_its_own_recoveries_took_too_long() -> None:
    saved = _saved(costs(ACCOUNTS))
    assert saved["alert"] == (700 - 100) + (600 - 540) + (2400 - 540)
    assert saved["exclude"] == 540  # of the one that an XID ended
    assert saved["one"] == 2000


def test_a_run_that_was_never_interrupted_would_have_saved_nothing() -> None:
    quiet = dataclasses.replace(ACCOUNTS, interruptions=(), recoveries=(), mtbi_s=None)
    saved = _saved(costs(quiet))
    assert (saved["alert"], saved["exclude"]) == (0, 0)
    assert saved["checkpoint"] is None  # M was not measured, so nothing can be said


def test_what_was_not_seen_is_not_counted_as_nothing() -> None:
    unseen = dataclasses.replace(ACCOUNTS, recoveries=(recovery("xid 79"),))
    saved = _saved(costs(unseen))
    assert (saved["alert"], saved["exclude"]) == (None, None)


def test_a_run_that_saves_at_youngs_interval_gains_nothing_from_it() -> None:
    saved = _saved(costs(ACCOUNTS, given=given("price=2")))
    assert saved["checkpoint"] == pytest.approx(0, abs=86_400 * 0.01)


def test_a_stall_that_no_restart_ended_is_not_told_as_nothing_to_save() -> None:
    stood = {**ACCOUNTS.seconds, "stalled": 612.0}
    own = dataclasses.replace(ACCOUNTS, recoveries=(), interruptions=(), seconds=stood)
    alert = next(it for it in costs(own).priorities if it.measure.startswith("alert"))
    assert (alert.saved_s, alert.counted) == (
        None,
        "not told: it stood for 10 min 12 s, and no restart ended that",
    )
