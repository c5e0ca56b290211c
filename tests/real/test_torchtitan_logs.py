"""Real structured logs of torchtitan and lines of its generations, held against their oracles."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from train_ledger.facts import Event, Fault, Step
from train_ledger.sources.formats.torchtitan.torchtitan import Torchtitan
from train_ledger.sources.formats.torchtitan.torchtitan_spans import TorchtitanSpans
from train_ledger.sources.lines.log_line import read_line

LOGS = Path(__file__).parents[3] / "shared" / "data" / "logs"
pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason="real logs are not here")


@pytest.mark.parametrize("rank", [0, 1])
def test_resume_at_21_a_collection_a_bare_nan_and_a_save_that_failed(rank: int) -> None:
    (path,) = (LOGS / "13_torchtitan_structured").glob(f"training.global_rank_{rank}.*.jsonl")
    content = path.read_bytes()
    assert TorchtitanSpans.fits(content[:4096], str(path))
    reader, found = TorchtitanSpans(), []
    for number, line in enumerate(content.splitlines(), 1):
        found += reader.read(read_line(line), f"{path}:{number}")
    found += reader.end()

    steps = [it for it in found if isinstance(it, Step)]
    assert [(it.step, it.rank) for it in steps] == [(21, rank), (22, rank), (23, rank)]
    assert ["gc_s" in it.values for it in steps] == [False, True, False]
    assert steps[0].values["loss"] == 2.5
    assert math.isnan(steps[2].values["loss"])
    assert all(0.010 < it.values["span_fwd_bwd_s"] < 0.013 for it in steps)
    (failed,) = [it for it in found if isinstance(it, Event) and it.name.startswith("ckpt_")]
    assert (failed.name, failed.step, failed.details["error"]) == ("ckpt_failed", 23, "OSError: disk full")
    (fault,) = [it for it in found if isinstance(it, Fault)]
    assert (fault.fault, fault.rank) == ("checkpoint_failed", rank)
    assert not reader.damaged


def test_lines_of_three_generations_among_those_of_others() -> None:
    reader, found = Torchtitan(), []
    for number, line in enumerate((LOGS / "dialects.txt").read_bytes().splitlines(), 1):
        found += reader.read(read_line(line), f"dialects.txt:{number}")
    assert [(it.step, it.rank, it.values.get("loss"), it.values["tps"]) for it in found] == [
        (40, None, 5.1, 2100.0),
        (10, 0, None, 3400.0),
        (10, 1, 7.2, 3400.0),
    ]
    assert [it.values.get("mfu") for it in found] == [31.0, 13.16, None]
    assert found[1].values["mem_reserved_peak"] == 40 * 2**30


@pytest.mark.parametrize("name", ["11_modded_nanogpt_2025_source_in_log.txt", "07_bloom_tr11_chronicles.md"])
def test_logs_of_other_trainers_say_nothing(name: str) -> None:
    reader = Torchtitan()
    for number, line in enumerate((LOGS / name).read_bytes().splitlines(), 1):
        assert not list(reader.read(read_line(line), f"{name}:{number}"))
