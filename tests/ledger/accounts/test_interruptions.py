"""Counts are recomputed, never trusted to a printed percentage."""

from __future__ import annotations

import pytest

from train_ledger.ledger.accounts import Interruption
from train_ledger.ledger.accounts.interruptions import by_cause, table_of

LLAMA_3 = {
    "faulty GPU": 148,
    "GPU HBM3 memory": 72,
    "software bug": 54,
    "network switch/cable": 35,
    "host maintenance": 32,
    "GPU SRAM memory": 19,
    "GPU system processor": 17,
    "NIC": 7,
    "NCCL watchdog timeouts": 7,
    "silent data corruption": 6,
    "GPU thermal interface + sensor": 6,
    "SSD": 3,
    "power supply": 3,
    "server chassis": 2,
    "IO expansion board": 2,
    "dependency": 2,
    "CPU": 2,
    "system memory": 2,
}
"""arXiv 2407.21783, table 5: unexpected interruptions in 54 days on 16,384 H100."""

OF_GPUS = [
    "faulty GPU",
    "GPU HBM3 memory",
    "GPU SRAM memory",
    "GPU system processor",
    "silent data corruption",
    "GPU thermal interface + sensor",
]
ELAPSED_S = 54 * 86_400


def test_the_llama_3_table_is_computed_not_copied() -> None:
    table = table_of(LLAMA_3, elapsed_s=ELAPSED_S, world_size=16_384)
    assert table.count == 419
    assert f"{table.rows[0].cause} {table.rows[0].share:.1%}" == "faulty GPU 35.3%"  # the paper prints 30.1 %
    assert round(table.share(OF_GPUS) * table.count) == 268
    assert f"{table.share(OF_GPUS):.1%}" == "64.0%"  # the paper's text has 58.7 %
    assert table.mtbi_s is not None
    assert table.mtbi_s / 3600 == pytest.approx(3.09, abs=0.005)
    assert table.gpu_hours_between == pytest.approx(50_677, abs=1)


def test_with_the_planned_ones_there_is_less_time_between() -> None:
    table = table_of({**LLAMA_3, "planned": 47}, elapsed_s=ELAPSED_S)
    assert table.count == 466
    assert table.mtbi_s is not None
    assert table.mtbi_s / 3600 == pytest.approx(2.78, abs=0.005)


def test_nothing_happened() -> None:
    table = table_of({}, elapsed_s=ELAPSED_S)
    assert (table.rows, table.count, table.mtbi_s, table.share(["NIC"])) == ((), 0, None, 0.0)


def test_a_count_is_not_negative() -> None:
    with pytest.raises(ValueError, match="negative"):
        table_of({"NIC": -1})


def test_a_runs_own_interruptions_are_counted_by_cause() -> None:
    own = [Interruption(1.0, 0, 5, "killed"), Interruption(9.0, 1, 8, "killed"), Interruption(12.0, 2, None)]
    assert by_cause(own) == {"killed": 2, "unknown": 1}
