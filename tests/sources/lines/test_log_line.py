"""What stands in front of a line is taken off, and says whose line it is and of when."""

from __future__ import annotations

import pytest

from train_ledger.facts import Fault, Step
from train_ledger.sources import FactReader
from train_ledger.sources.lines.log_line import read_line

T = 1_770_091_506.25


@pytest.mark.parametrize(
    "front",
    [
        b"2026-02-03T04:05:06.250000000Z ",
        b"2026-02-03T06:05:06.25+02:00 ",
        b"2026-02-03T04:05:06.25Z stderr F ",
        b"2026-02-03T04:05:06.25Z stdout P ",
    ],
)
def test_what_containers_put_in_front_is_a_time_and_no_text(front: bytes) -> None:
    line = read_line(front + b"[rank3]:   File x")
    assert (line.text, line.rank, line.t) == ("  File x", 3, T)


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-03T04:05:06.250000+00:00 gpu-7 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen",
        "2026-02-03T04:05:06 no zone",
        "2026-02-03 04:05:06,250 - root - INFO - step: 3",
    ],
)
def test_times_of_the_kernel_and_of_programs_stay(text: str) -> None:
    line = read_line(text.encode())
    assert (line.text, line.t) == (text, None)


def test_a_log_of_a_container_is_read_as_without_its_times() -> None:
    lines = [
        "{'loss': 2.5, 'grad_norm': 1.0, 'learning_rate': 0.1, 'epoch': 0.5, 'step': 7}",
        "Traceback (most recent call last):",
        '  File "/job/train.py", line 9, in main',
        "ValueError: no rows",
    ]
    reader = FactReader("pod.log")
    facts = reader.feed("".join(f"2026-02-03T04:05:06.25Z {line}\n" for line in lines).encode())
    step, fault = [*facts, *reader.end()]
    assert isinstance(step, Step)
    assert (step.step, step.t) == (7, T)
    assert isinstance(fault, Fault)
    assert (fault.details["type"], fault.t) == ("ValueError", T)
    assert fault.details["frame"] == 'File "/job/train.py", line 9, in main'


@pytest.mark.parametrize(
    "text",
    [
        "[train.py:88]: CUDA out of memory",
        "[worker.cpp:1204] [Rank 1] a collective",
        "[INFO:0]: step 3",
        "[pid:4100]: step 3",
        "[gpu:3]: step 3",
    ],
)
def test_places_in_a_program_levels_and_processes_are_no_ranks(text: str) -> None:
    line = read_line(text.encode())
    assert (line.text, line.rank, line.host) == (text, None, None)


def test_a_host_may_be_called_as_a_program_is() -> None:
    line = read_line(b"[trainer.py-01:3]: step 3")
    assert (line.text, line.rank, line.host) == ("step 3", 3, "trainer.py-01")


def test_a_rank_with_its_name_in_front_is_of_no_host() -> None:
    line = read_line(b"[rank:3]: step 3")
    assert (line.text, line.rank, line.host) == ("step 3", 3, None)


def test_a_task_of_mpirun_is_no_rank() -> None:
    line = read_line(b"[1,3]<stdout>: step 3 loss 2.5")
    assert (line.text, line.rank) == ("step 3 loss 2.5", None)
