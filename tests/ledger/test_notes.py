"""What people wrote down, and what is no note."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.ledger.notes import Note, read_notes, write_note
from train_ledger.run_dir import RunDir

T = 1_800_000_000.0


def _note(t: float, text: str, *, decision: bool = False) -> Note:
    return Note(t, text, "ada", "login01", T + 60, decision)


def test_notes_come_back_by_their_times(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    write_note(run, _note(T + 9, "restarted", decision=True))
    write_note(run, _note(T + 5, "dumps collected"))
    notes = read_notes(run).notes
    assert [(it.t, it.text, it.decision) for it in notes] == [
        (T + 5, "dumps collected", False),
        (T + 9, "restarted", True),
    ]
    assert (notes[0].by, notes[0].host, notes[0].written_t) == ("ada", "login01", T + 60)
    assert (tmp_path / notes[0].source).is_file()


def test_the_ledger_folder_is_left_to_the_keeper(tmp_path: Path) -> None:
    write_note(RunDir(tmp_path), _note(T, "x"))
    assert [it.name for it in tmp_path.iterdir()] == ["notes"]


def test_two_who_write_in_the_same_second_are_both_kept(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    assert len({write_note(run, _note(T, "x")) for _ in range(50)}) == 50
    assert len(read_notes(run).notes) == 50


def test_no_notes_at_all(tmp_path: Path) -> None:
    assert read_notes(RunDir(tmp_path)) == ((), 0)


@pytest.mark.parametrize(
    "entry",
    [
        [],
        5,
        {},
        {"t": T},
        {"t": "noon", "text": "x"},
        {"t": True, "text": "x"},
        {"t": T, "text": 5},
        {"t": 1e30},
    ],
)
def test_what_is_no_note_is_counted(tmp_path: Path, entry: Any) -> None:
    run = RunDir(tmp_path)
    write_note(run, _note(T, "x"))
    (run.notes / "other.json").write_text(json.dumps(entry))
    notes, unreadable = read_notes(run)
    assert (len(notes), unreadable) == (1, 1)


@given(st.binary(max_size=200))
def test_no_content_of_a_file_stops_the_reading(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    run = RunDir(tmp_path_factory.mktemp("run"))
    run.notes.mkdir()
    (run.notes / "x.json").write_bytes(content)
    assert read_notes(run).unreadable == 1


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    import os

    run = RunDir(tmp_path)
    run.notes.mkdir()
    os.mkfifo(run.notes / "x.json")
    assert read_notes(run).unreadable == 1
