"""How long until it was noticed, beside how long it should have been."""

from __future__ import annotations

from train_ledger.config import Alerts
from train_ledger.ops.postmortem.detection import detection
from train_ledger.ops.postmortem.incident import Happened, Incident

T = 1_800_000_000.0


def _incident(paged_s: float | None, alert: str = "TrainingStepStalled") -> Incident:
    happened = [Happened("alert_fired", T + 95, {"alert": alert}, 1)]
    if paged_s is not None:
        happened.append(Happened("notification_intended", T + paged_s, {}, 2))
    return Incident("i1", tuple(happened), is_closed=False)


def test_a_page_within_twenty_seconds_of_its_threshold_is_as_expected() -> None:
    found = detection(_incident(105), T, 4.0, Alerts())
    assert (found.threshold_s, found.expected_s) == (90, 110)
    assert found.is_as_expected
    assert found.late_s is None


def test_the_threshold_is_three_times_a_long_step() -> None:
    assert detection(_incident(105), T, 60.0, Alerts()).threshold_s == 180


def test_a_late_page_is_told_by_how_much() -> None:
    found = detection(_incident(400), T, 4.0, Alerts())
    assert found.late_s == 290
    assert any("later than expected" in line for line in found.told())


def test_no_page_is_not_called_late() -> None:
    found = detection(_incident(None), T, 4.0, Alerts())
    assert (found.paged_s, found.late_s, found.is_as_expected) == (None, None, False)
    assert any("there was no page" in line for line in found.told())


def test_other_alerts_have_no_time_laid_down() -> None:
    found = detection(_incident(105, "TrainingLossNotFinite"), T, 4.0, Alerts())
    assert found.expected_s is None
    assert not any("expected" in line for line in found.told())


def test_what_was_told_before_it_stood_still_is_no_detection() -> None:
    assert detection(_incident(105), T + 1000, 4.0, Alerts()).paged_s is None


def test_a_page_that_went_out_before_the_run_stood_is_no_missing_page() -> None:
    told = list(detection(_incident(-18), T, 1.0, Alerts()).told())
    assert told == [
        "from the last step to the alert: 95.0 s",
        "a page of this incident had gone out 18.0 s before the last step",
    ]
