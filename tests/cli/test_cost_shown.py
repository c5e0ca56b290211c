"""What a page of costs shows is what is known, and no more."""

from __future__ import annotations

from dataclasses import replace

from train_ledger.cli.cost_shown import report_of_costs
from train_ledger.ledger.accounts import PARTS
from train_ledger.ledger.costs import Costs, costs
from train_ledger.render.bars import Bars


def recoveries(found: Costs) -> dict[str, str]:
    """What stands behind each bar of a recovery."""
    rows = [row for section in report_of_costs(found).sections for row in section.rows]
    (drawn,) = [row for row in rows if isinstance(row, Bars) and row.kinds == PARTS]
    return {bar.name: bar.told for bar in drawn.bars}


def test_a_recovery_of_which_a_part_was_not_observed_has_no_length() -> None:
    found = costs()
    lengths = {**dict.fromkeys(PARTS, 60.0), "load": None}
    seen = replace(found, hang=replace(found.hang, in_run=lengths))
    assert recoveries(seen)["this run"] == "not observed"
    whole = replace(found, hang=replace(found.hang, in_run=dict.fromkeys(PARTS, 60.0)))
    assert recoveries(whole)["this run"] == "6 min 0 s"
    assert [*recoveries(found)] == ["without", "with alert"]
