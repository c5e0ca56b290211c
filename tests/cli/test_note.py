"""`train-ledger note`, as it is written at night."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from train_ledger.cli import app
from train_ledger.ledger.notes import read_notes
from train_ledger.run_dir import RunDir


def _note(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["note", *map(str, arguments)], catch_exceptions=False)


def test_a_line_with_its_time_and_who_says_so(tmp_path: Path) -> None:
    told = _note(tmp_path, "node037  excluded\n", "--decision", "--at", "2026-11-30T03:09:00Z", "--by", "ada")
    assert told.exit_code == 0
    assert told.stdout.startswith(f"noted in {tmp_path}/notes/")
    (note,) = read_notes(RunDir(tmp_path)).notes
    assert (note.text, note.by, note.t, note.decision) == ("node037 excluded", "ada", 1_796_008_140.0, True)
    assert note.written_t > note.t - 1e9


def test_now_by_whoever_is_logged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "grace")
    told = json.loads(_note(tmp_path, "looked at it", "--json").stdout)
    assert (told["schema"], told["by"], told["decision"]) == (1, "grace", False)
    (note,) = read_notes(RunDir(tmp_path)).notes
    assert note.t == note.written_t


@pytest.mark.parametrize(
    "arguments", [["nowhere", "x"], [".", " "], [".", "x", "--at", "noon"], [".", "x", "--at", "-5"]]
)
def test_what_cannot_be_noted_is_one_line(tmp_path: Path, arguments: list[str], monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = _note(*arguments)
    assert (told.exit_code, told.stdout) == (2, "")
    assert told.stderr.count("\n") == 1
    assert not (tmp_path / "notes").exists()


def test_nothing_is_written_into_a_folder_that_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "r42" / "signals").mkdir(parents=True)
    told = _note(tmp_path, "excluded node037")
    assert (told.exit_code, told.stdout) == (2, "")
    assert f"train-ledger note {tmp_path}/r42" in told.stderr
    assert not (tmp_path / "notes").exists()


def test_a_second_note_finds_the_folder_of_the_first(tmp_path: Path) -> None:
    assert [_note(tmp_path, "one").exit_code, _note(tmp_path, "two").exit_code] == [0, 0]
