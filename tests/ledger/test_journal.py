"""The journal, cut off at any byte."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train_ledger.ledger import Journal, JournalError, journal

FIRED = {
    "t": 100.0,
    "kind": "alert_fired",
    "name": "TrainingStepStalled",
    "summary": "no step for 90 s – größer",
}
CLOSED = {"t": 200.0, "kind": "incident_closed", "incident": 1}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger" / "journal.jsonl"


def test_what_is_appended_is_read_back(path: Path) -> None:
    book = Journal(path)
    book.append(FIRED)
    book.append(CLOSED)
    assert journal.read(path) == ([FIRED, CLOSED], [])


def test_a_second_writer_goes_on_where_the_first_stopped(path: Path) -> None:
    for entry in (FIRED, CLOSED):
        book = Journal(path)
        book.append(entry)
        book.close()
    assert journal.read(path).entries == [FIRED, CLOSED]


def test_no_journal_is_an_empty_one(path: Path) -> None:
    assert journal.read(path) == ([], [])


def test_a_crash_at_any_byte_costs_at_most_the_last_line(path: Path) -> None:
    Journal(path).append(FIRED)
    whole = path.stat().st_size
    Journal(path).append(CLOSED)
    content = path.read_bytes()
    for length in range(len(content) + 1):
        path.write_bytes(content[:length])
        Journal(path).append({"t": 300.0, "kind": "keeper_started"})
        entries, unreadable = journal.read(path)
        assert entries[-1]["kind"] == "keeper_started"
        if length >= whole:
            assert entries[0] == FIRED
        torn = length not in (0, whole - 1, whole, len(content) - 1, len(content))
        assert len(unreadable) == torn, f"cut after {length} bytes"


def test_a_torn_line_is_named_with_its_number(path: Path) -> None:
    Journal(path).append(FIRED)
    with path.open("ab") as file:
        file.write(b'{"t":1,"ki')
    assert journal.read(path).unreadable == [(2, "cut off by a crash, or no JSON")]


@pytest.mark.parametrize("line", [b"7", b"null", b'{"t": 1}', b'{"t": 1, "kind": ["x"]}', b"\xff\xfe"])
def test_a_line_that_is_no_entry_is_named(path: Path, line: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(line + b"\n" + json.dumps(CLOSED).encode() + b"\n")
    entries, unreadable = journal.read(path)
    assert entries == [CLOSED]
    assert [problem.number for problem in unreadable] == [1]


def test_a_killed_writer_loses_nothing_that_it_was_told_is_written(path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from train_ledger.ledger import Journal\n"
        "book = Journal(Path(sys.argv[1])); n = 0\n"
        "while True: book.append({'t': 0, 'kind': 'verdict', 'n': n}); n += 1; print(n, flush=True)\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, env=os.environ)
    assert writer.stdout is not None
    writer.stdout.readline()
    time.sleep(0.1)
    writer.send_signal(signal.SIGKILL)
    told = int((b"1\n" + writer.stdout.read()).splitlines()[-1])
    writer.wait()
    Journal(path).append(CLOSED)
    *numbers, last = journal.read(path).entries
    assert [entry["n"] for entry in numbers][:told] == list(range(told))
    assert last == CLOSED


@pytest.mark.parametrize("entry", [{"kind": "verdict"}, {"t": 1}])
def test_an_entry_needs_a_time_and_a_kind(path: Path, entry: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="needs t and kind"):
        Journal(path).append(entry)


def test_what_json_does_not_know_is_refused_and_leaves_no_half_line(path: Path) -> None:
    book = Journal(path)
    with pytest.raises(ValueError, match="JSON"):
        book.append({"t": float("nan"), "kind": "verdict"})
    assert path.read_bytes() == b""


def test_a_folder_that_is_a_file_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "ledger").write_text("")
    with pytest.raises(JournalError, match=r"journal\.jsonl: cannot be written"):
        Journal(tmp_path / "ledger" / "journal.jsonl")


_PLAIN = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.text(), _PLAIN), max_size=5))
def test_any_entry_is_one_line(
    tmp_path_factory: pytest.TempPathFactory, contents: list[dict[str, object]]
) -> None:
    path = tmp_path_factory.mktemp("any") / "ledger" / "journal.jsonl"
    entries = [{**content, "t": 1, "kind": "verdict"} for content in contents]
    book = Journal(path)
    for entry in entries:
        book.append(entry)
    book.close()
    assert journal.read(path) == (entries, [])


def test_closed_twice_it_closes_no_file_of_somebody_else(tmp_path: Path) -> None:
    kept = Journal(tmp_path / "journal.jsonl")
    kept.close()
    with (tmp_path / "other").open("w") as other:  # which has the number that became free
        kept.close()
        other.write("still open")
    assert (tmp_path / "other").read_text() == "still open"
    with pytest.raises(JournalError):
        kept.append({"t": 1.0, "kind": "keeper_started"})
