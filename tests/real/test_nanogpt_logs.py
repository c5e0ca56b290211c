"""Real logs of modded-nanogpt and llm.c, held against what is known of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from train_ledger.facts import Step
from train_ledger.sources import read_facts

LOGS = Path(__file__).parents[3] / "shared" / "data" / "logs"
pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason="real logs are not here")


def steps(name: str) -> list[Step]:
    return [it for it in read_facts([LOGS / name]) if isinstance(it, Step)]


def test_11_the_source_in_front_of_a_log_tells_no_step() -> None:
    (path,) = LOGS.glob("11_*")
    found = steps(path.name)
    assert [it.step for it in found] == list(range(4741))
    assert min(int(it.source.rpartition(":")[2]) for it in found) > 1865
    assert (found[0].values["val_loss"], found[-1].values["val_loss"]) == (10.8323, 2.9166)
    near_the_end = found[4738].values
    assert (near_the_end["train_time_s"], near_the_end["step_avg_s"]) == (1040.863, pytest.approx(0.21968))
    assert sum(it.values.get("step_time_s", 0.0) for it in found) == pytest.approx(1041.362, abs=0.01)
    assert {it.attempt for it in found} == {0}


def test_11b_the_shortest_dialect_is_read_line_by_line() -> None:
    found = steps("11b_llmc_main_2024_head3000.log")
    assert [it.step for it in found] == list(range(2988))
    assert found[0].values == {"val_loss": 11.0092, "loss": 11.0091, "lr": 1e-6, "grad_norm": 15.37}
    assert sum("val_loss" in it.values for it in found) == 12
