"""Somebody to be woken, who finds what to do."""

from ops.preflight.made import told
from train_ledger.config import Config, Notify
from train_ledger.ops.preflight.roster import roster_checks

RUN = {
    "contacts": {"on call": "+1 555"},
    "restart_command": "sbatch train.sh",
    "exclude_file": "/etc/excluded",
}
TOLD = Config(notify=Notify(urls=("slack://x",)))


def test_contacts_runbook_receivers_and_a_page_that_rang():
    found = told(roster_checks(RUN, TOLD, page_came=True, was_rung=True))
    assert {found[it] for it in ("contacts", "runbook", "receivers", "page path")} == {"pass"}


def test_nobody_to_call_nothing_to_run_nobody_to_tell():
    found = told(roster_checks({}, Config(), page_came=True, was_rung=False))
    assert [found[it] for it in ("contacts", "runbook", "receivers")] == ["fail"] * 3
    assert "exclude_file" in found.said("runbook")


def test_a_role_that_nobody_has_wakes_nobody():
    run = {**RUN, "contacts": {"on call": "+1 555", "second line": ""}}
    found = told(roster_checks(run, TOLD, page_came=True, was_rung=True))
    assert found["contacts"] == "fail"
    assert "nobody as second line" in found.said("contacts")


def test_a_command_is_a_receiver():
    assert (
        told(roster_checks(RUN, Config(notify=Notify(command=("page",))), True, True))["receivers"] == "pass"
    )


def test_a_page_that_came_to_the_drill_alone_has_rung_nobody():
    assert told(roster_checks(RUN, TOLD, True, was_rung=False))["page path"] == "not_possible"
    assert told(roster_checks(RUN, TOLD, False, was_rung=True))["page path"] == "fail"
    assert told(roster_checks(RUN, TOLD, None, was_rung=False))["page path"] == "not_possible"


def test_without_a_run_it_is_not_known_who_is_on_duty():
    assert told(roster_checks(None, Config(), None, False))["contacts"] == "not_possible"
