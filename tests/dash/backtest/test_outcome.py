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


def test_only_its_own_alerts_find_what_names_them() -> None:
    loss = replace(HANG, kind="nonfinite_loss", alerts=frozenset({"TrainingLossNotFinite"}))
    assert told(held(PAGE, incidents=(loss,))) == [(None, None)]


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
