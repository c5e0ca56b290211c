"""Options that several verbs share."""

from __future__ import annotations

import time

import pytest
import typer

from train_ledger.cli.options import moment


def test_unix_seconds_and_iso_8601_mean_the_same_moment() -> None:
    assert moment("1796007600.5") == 1796007600.5
    assert moment("2026-11-30T03:00:00.5+00:00") == moment("2026-11-30T03:00:00.5Z") == 1796007600.5


def test_without_a_zone_it_is_this_machines_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC-8")  # POSIX: eight hours east
    time.tzset()
    try:
        assert moment("2026-11-30T11:00:00") == 1796007600.0
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("text", ["yesterday", "", "nan", "inf", "-5", "2026-13-01", "99999-01-01"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        moment(text)
