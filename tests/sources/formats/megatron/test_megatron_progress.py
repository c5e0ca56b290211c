"""What Megatron's progress.txt tells over the restarts of a run. All lines are invented."""

from __future__ import annotations

from datetime import datetime

import pytest

from train_ledger.sources.formats.megatron.megatron_progress import MegatronProgress
from train_ledger.sources.lines.log_line import LogLine

STARTED = "2025-03-04 05:06:07\tJob ID: 4711\t# GPUs: 128\tStarting job"
SAVED = (
    "2025-03-04 06:06:07\tJob ID: 4711\t# GPUs: 128\tSaved checkpoint\tIteration: 500\t"
    "Job throughput: 310.5 TFLOP/s/GPU\tCumulative throughput: 290.0 TFLOP/s/GPU\t"
    "Floating-point operations: 1.25e+20\tTokens (in billions): 2.05"
)


def told(*lines: str):
    reader = MegatronProgress()
    found = [fact for number, it in enumerate(lines, 1) for fact in reader.read(LogLine(it), f"p:{number}")]
    return [*found, *reader.end()], reader


def test_a_start_carries_job_and_world_size() -> None:
    ((event,), _) = told(STARTED)
    assert (event.name, event.t) == ("run_start", datetime(2025, 3, 4, 5, 6, 7).timestamp())
    assert event.details == {"job_id": "4711", "world_size": 128}


def test_a_checkpoint_carries_what_was_done_until_then() -> None:
    ((event,), _) = told(SAVED)
    assert (event.name, event.step) == ("ckpt_saved", 500)
    assert event.details == {
        "durable": True,
        "job_id": "4711",
        "world_size": 128,
        "job_throughput_tflops": 310.5,
        "cumulative_throughput_tflops": 290.0,
        "floating_point_operations": 1.25e20,
        "consumed_tokens": pytest.approx(2.05e9),
    }


@pytest.mark.parametrize(
    ("verb", "name", "durable"),
    [
        ("Saving async checkpoint", "ckpt_start", None),
        ("Saved async checkpoint", "ckpt_saved", True),
        ("Saved async local checkpoint", "ckpt_saved", False),
        ("Something else", "note", None),
    ],
)
def test_a_save_that_is_only_begun_is_not_durable(verb, name, durable) -> None:
    ((event,), _) = told(f"2025-03-04 05:06:07\tJob ID: \t# GPUs: 8\t{verb}\tIteration: 7")
    assert (event.name, event.step, event.details.get("durable")) == (name, 7, durable)
    assert "job_id" not in event.details


def test_a_torn_line_is_counted_and_an_empty_one_is_not() -> None:
    found, reader = told(STARTED, "", "2025-03-04 05:0", SAVED)
    assert [it.name for it in found] == ["run_start", "ckpt_saved"]
    assert reader.damaged == {"no line of a progress file": 1}


def test_it_is_recognised_by_its_first_line_whatever_its_name() -> None:
    assert MegatronProgress.fits(STARTED.encode() + b"\n", "progress.txt")
    assert MegatronProgress.fits(b"\n" + SAVED.encode(), "other.txt")
    assert not MegatronProgress.fits(b"2025-03-04 05:06:07 Job ID: 1 # GPUs: 8", "progress.txt")
