"""A traceback ends the rank that it is of, and not the rank beside whose training a thread died."""

from __future__ import annotations

from pathlib import Path

import pytest

from train_ledger.facts import Event, Fault, Step
from train_ledger.sources import read_facts

THREAD = """\
Exception in thread Thread-3 (upload):
Traceback (most recent call last):
  File "/usr/lib/python3.11/threading.py", line 1045, in _bootstrap_inner
    self.run()
  File "/app/upload.py", line 12, in upload
    send(batch)
ConnectionError: the metrics service does not answer
"""
MAIN = """\
Traceback (most recent call last):
  File "/app/train.py", line 88, in main
    batch = next(loader)
FileNotFoundError: shard-17
"""


def told(folder: Path, text: str) -> list[Step | Event | Fault]:
    path = folder / "rank_3.log"
    path.write_text(text)
    return [*read_facts([path])]


HANDLING = "\nDuring handling of the above exception, another exception occurred:\n\n"
BROKEN_PIPE = """\
Exception ignored in: <_io.TextIOWrapper name='<stdout>' mode='w' encoding='utf-8'>
BrokenPipeError: [Errno 32] Broken pipe
"""


@pytest.mark.parametrize("front", ["", "[rank3]: "])
def test_what_a_thread_raised_while_it_handled_another_is_no_end_either(tmp_path: Path, front: str) -> None:
    text = "".join(f"{front}{line}\n" for line in (THREAD + HANDLING + MAIN).splitlines())
    facts = told(tmp_path, text)
    assert [it for it in facts if isinstance(it, Fault)] == []
    asides = [it.details for it in facts if isinstance(it, Event) and it.name == "exception"]
    assert [it["thread"] for it in asides] == ["Thread-3 (upload)"] * 2


@pytest.mark.parametrize("front", ["", "[rank3]: "])
def test_what_was_ignored_without_a_traceback_hides_none_of_the_next_attempt(
    tmp_path: Path, front: str
) -> None:
    text = BROKEN_PIPE + "loading\n" * 50 + MAIN + HANDLING + MAIN.replace("FileNotFound", "Runtime")
    facts = told(tmp_path, "".join(f"{front}{line}\n" for line in text.splitlines()))
    assert "FileNotFoundError" in [it.details["type"] for it in facts if isinstance(it, Fault)]


@pytest.mark.parametrize("front", ["", "[rank3]: "])
def test_a_thread_beside_the_training_is_no_end(tmp_path: Path, front: str) -> None:
    text = "".join(f"{front}{line}\n" for line in THREAD.splitlines())
    (fact,) = [it for it in told(tmp_path, text) if "message" in getattr(it, "details", {})]
    assert isinstance(fact, Event)
    assert fact.details["thread"] == "Thread-3 (upload)"
    assert fact.details["fatal"] is False
    assert fact.details["type"] == "ConnectionError"


def test_what_the_main_thread_raises_after_it_is_one(tmp_path: Path) -> None:
    faults = [it for it in told(tmp_path, THREAD + MAIN) if isinstance(it, Fault)]
    assert [it.details["type"] for it in faults] == ["FileNotFoundError"]
