"""What was found, missed, and paged for nothing."""

from __future__ import annotations

from dataclasses import replace

from train_ledger.config import Alerts
from train_ledger.dash.backtest import PastAlert, PastIncident
from train_ledger.dash.backtest.outcome import Outcome, outcome_of, totals

PAGE = PastAlert("TrainingStepStalled", "page", {"run": "r42"}, 100.0, "stands", 400.0, False, 100.0, 100.0)
HANG = PastIncident(5.0, "hang", 300.0)


def held(*alerts: PastAlert, incidents: tuple[PastIncident, ...] = (HANG,)) -> Outcome:
    return outcome_of(incidents, alerts, Alerts())


def told(outcome: Outcome) -> list[tuple[str | None, float | None]]:
    return [(it.found_by, it.detection_s) for it in outcome.found]


def test_an_incident_is_found_by_the_first_page_that_fired_while_it_lasted() -> None:
    later = replace(PAGE, name="TrainingProcessGone", fired_t=120.0, notified_t=400.0, known_t=400.0)
    outcome = held(later, PAGE)
    assert told(outcome) == [("TrainingStepStalled", 95.0)]
    assert (outcome.missed, outcome.false_pages) == ((), ())


def test_a_page_before_it_or_after_its_end_is_for_nothing() -> None:
    early = replace(PAGE, fired_t=1.0, notified_t=1.0, known_t=1.0, resolved_t=3.0)
    late = replace(PAGE, fired_t=311.0, notified_t=311.0, known_t=311.0)
    outcome = held(early, late)
    assert told(outcome) == [(None, None)]
    assert outcome.false_pages == (early, late)


def test_a_page_that_was_inhibited_or_is_for_the_record_tells_nobody() -> None:
    silent = replace(PAGE, inhibited=True, notified_t=None, known_t=None)
    recorded = replace(PAGE, level="record", notified_t=None, known_t=None)
    outcome = held(silent, recorded)
    assert (told(outcome), outcome.pages) == ([(None, None)], ())


def test_who_was_told_of_an_earlier_one_knows_at_once() -> None:
    second = PastIncident(200.0, "hang", 300.0)
    assert told(held(PAGE, incidents=(HANG, second)))[1] == ("TrainingStepStalled", 0.0)


def test_a_page_is_right_only_for_a_kind_that_it_is_about() -> None:
    loss = replace(HANG, kind="nonfinite_loss")
    outcome = held(PAGE, incidents=(loss,))
    assert (told(outcome), outcome.false_pages) == ([(None, None)], (PAGE,))


def test_who_was_paged_for_the_gpu_knows_why_the_run_stands() -> None:
    gpu = {"run": "r42", "host": "node1", "gpu": "3"}
    xid = PastIncident(90.0, "xid", 2000.0, {"host": "node1", "gpu": "3"})
    stall = PastIncident(5.0, "stall", 300.0)
    page = replace(PAGE, name="GpuXidError", labels=gpu)
    assert told(held(page, incidents=(stall, xid))) == [("GpuXidError", 95.0), ("GpuXidError", 10.0)]
    outcome = held(page, incidents=(stall,))
    assert (told(outcome), outcome.false_pages) == ([(None, None)], (page,))


def test_a_stall_page_in_the_time_of_an_xid_is_about_it_too() -> None:
    xid = PastIncident(90.0, "xid", 2000.0, {"host": "node1", "gpu": "3"})
    outcome = held(PAGE, incidents=(xid,))
    assert (told(outcome), outcome.false_pages) == ([("TrainingStepStalled", 10.0)], ())


def test_a_page_that_names_another_gpu_is_not_about_it() -> None:
    xid = PastIncident(90.0, "xid", 2000.0, {"host": "node1", "gpu": "3"})
    page = replace(PAGE, name="GpuXidError", labels={"run": "r42", "host": "node1", "gpu": "4"})
    outcome = held(page, incidents=(xid,))
    assert (told(outcome), outcome.false_pages) == ([(None, None)], (page,))


def test_at_the_edge_of_a_threshold_neither_a_page_nor_its_absence_is_a_fault() -> None:
    edge = PastIncident(5.0, "stall", 300.0, clear=False)
    assert held(incidents=(edge,)).found == ()
    assert told(held(PAGE, incidents=(edge,))) == [("TrainingStepStalled", 95.0)]


def test_the_figures_of_several_runs_add_up() -> None:
    figures = totals([held(PAGE), held(), held(PAGE, incidents=())], 72.0)
    assert figures == {
        "runs": 3,
        "hours": 72.0,
        "incidents": 2,
        "found": 1,
        "missed": 1,
        "detection_median_s": 95.0,
        "detection_max_s": 95.0,
        "pages": 2,
        "false_pages": 1,
    }
