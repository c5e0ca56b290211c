"""What the keeper writes down stays at hand for the page, of incidents further back than of all else."""

from __future__ import annotations

from pathlib import Path

from train_ledger.run_dir import RunDir
from train_ledger.watch.book import Book
from train_ledger.watch.console import Console


def a_book(folder: Path) -> Book:
    return Book(RunDir(folder), Console(lambda _: None), lambda: 1000.0)


def test_a_busy_run_does_not_push_out_what_was_found_of_an_incident(tmp_path: Path) -> None:
    book = a_book(tmp_path)
    book.record("verdict", incident="one", place=None, diagnosis={})
    for step in range(300):
        book.record("state_changed", state="running", before="stalled", step=step, attempt=0, move=None)
    assert all(entry["kind"] == "state_changed" for entry in book.tail)
    assert [entry["kind"] for entry in book.of_incidents] == ["verdict"]
    assert [entry["kind"] for entry in a_book(tmp_path).of_incidents] == ["verdict"]


def test_an_alert_that_comes_and_goes_does_not_push_it_out_either(tmp_path: Path) -> None:
    """Else the page would say that nobody has looked."""
    book = a_book(tmp_path)
    for kind in ("incident_opened", "response_started", "verdict"):
        book.record(kind, incident="one", diagnosis={})
    for _ in range(200):
        for kind in ("alert_fired", "alert_resolved", "incident_updated", "notification_done"):
            book.record(kind, incident="one", alert="TrainingStepStalled")
    told = ["incident_opened", "response_started", "verdict"]
    assert [entry["kind"] for entry in book.of_incidents] == told
    assert [entry["kind"] for entry in a_book(tmp_path).of_incidents] == told
