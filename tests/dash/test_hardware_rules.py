"""The embedded twins of the rules of hardware: the same windows, over the state of a run."""

from __future__ import annotations

from typing import Any

import pytest

from dash.states import T0, running
from train_ledger.config import Alerts, Config
from train_ledger.dash.exposition import Exposition
from train_ledger.dash.judge import Judge
from train_ledger.dash.rule import Firing
from train_ledger.dash.rules.hardware import HARDWARE_RULES
from train_ledger.ledger.hardware.records import XidState
from train_ledger.ledger.machine import with_state
from train_ledger.ledger.state import Attempt, GpuState, PortState, RunState

T = T0 + 10_000
ALERTS = Alerts()
CHECKS = {rule.name: rule for rule in HARDWARE_RULES}


def gpu(index: int = 2, *, ranks: tuple[int, ...] | None = None, **others: Any) -> GpuState:
    values = {"host": "node1", "gpu": index, "uuid": f"GPU-{index}", "seen_t": T - 5, "by": "nvml", **others}
    return GpuState(ranks=(index,) if ranks is None else ranks, **values)


def told(code: int = 79, level: Any = "page", *, ago_s: float = 60, **others: Any) -> XidState:
    return XidState(code, level, **{"count": 1, "first_t": T - ago_s, "last_t": T - ago_s, **others})


def run(*gpus: GpuState, **others: Any) -> RunState:
    return running(t=T, ranks=8, step=51300, gpus=gpus, **others)


def fired(name: str, state: RunState, alerts: Alerts = ALERTS) -> list[Firing]:
    return list(CHECKS[name].check(state, alerts))


def test_the_page_says_run_gpu_rank_meaning_action_and_where_the_run_stands() -> None:
    (firing,) = fired("GpuXidError", run(gpu(xids=(told(),))))
    assert firing.labels == {"run": "r42", "rank": "2", "host": "node1", "gpu": "2", "xid": "79"}
    assert firing.summary == (
        "r42: XID 79 on node1 gpu 2 (rank 2), step 51300, attempt 0: fell off the bus: it no longer answers "
        "over PCIe; do: take the host out and reboot it, cold if needed"
    )


@pytest.mark.parametrize(
    "state",
    [
        run(gpu(xids=(told(ago_s=1800),))),
        run(gpu(xids=(told(43, "record"),))),
        run(gpu(xids=(told(),), ranks=())),
        run(gpu(xids=(told(),)), finished=True),
        run(gpu(xids=(told(ago_s=60),)), state="stopped", since_t=T - 600),
        run(),
    ],
    ids=["over", "on record", "of nobody", "finished", "after the stop", "none"],
)
def test_what_wakes_nobody(state: RunState) -> None:
    assert fired("GpuXidError", state) == []


def test_what_is_on_record_is_not_told_where_the_same_code_pages() -> None:
    state = run(gpu(xids=(told(31, "record"), told(31, "page"), told(63, "record"), told(60, "ignore"))))
    assert [it.labels["xid"] for it in fired("GpuXidRecorded", state)] == ["63"]
    assert [it.labels["xid"] for it in fired("GpuXidError", state)] == ["31"]


def test_of_ranks_on_one_gpu_the_lowest_is_named() -> None:
    assert fired("GpuXidError", run(gpu(xids=(told(),), ranks=(4, 12))))[0].labels["rank"] == "4"


def test_memory() -> None:
    assert fired("GpuEccDbe", run(gpu(dbe_t=T - 10)))
    assert fired("GpuEccDbe", run(gpu(values={"DCGM_FI_DEV_ROW_REMAP_PENDING": 1.0})))
    assert not fired("GpuEccDbe", run(gpu(dbe_t=T - 3600)))
    assert not fired("GpuEccDbe", run(gpu(values={"DCGM_FI_DEV_ROW_REMAP_PENDING": 0.0})))
    assert not fired("GpuEccDbe", run(gpu(dbe_t=T - 10, ranks=())))
    assert fired("GpuEccSbeGrowing", run(gpu(sbe_grown=101)))
    assert not fired("GpuEccSbeGrowing", run(gpu(sbe_grown=100)))


def test_a_gpu_that_is_gone_while_others_are_read() -> None:
    lost = gpu(seen_t=T - 200)
    assert [it.labels["gpu"] for it in fired("GpuLost", run(lost, gpu(3)))] == ["2"]
    assert not fired("GpuLost", run(gpu(seen_t=T - 100), gpu(3))), "not for long enough"
    assert not fired("GpuLost", run(lost, gpu(3, seen_t=T - 200))), "nothing is read any more"
    assert not fired("GpuLost", run(lost, gpu(3, host="node2"))), "of another host"
    assert not fired("GpuLost", run(gpu(seen_t=T - 200, xids=(told(),)), gpu(3))), "the XID says it"
    assert not fired("GpuLost", run(gpu(seen_t=None), gpu(3))), "it was never seen"


def test_low_clocks() -> None:
    low = gpu(low_since_t=T - 400, low_why="hardware slowdown", low_t=(T - 9000, T - 5000, T - 100))
    assert [it.summary for it in fired("GpuClockLow", run(low))] == [
        "r42: node1 gpu 2 (rank 2), step 51300, attempt 0: low clocks: hardware slowdown"
    ]
    assert fired("GpuClockLowRepeated", run(low))
    twice = gpu(low_since_t=T - 400, low_t=(T - 5000, T - 100))
    assert not fired("GpuClockLowRepeated", run(twice))
    assert fired("GpuClockLowRepeated", run(twice), Alerts(clock_low_count=2))
    over = gpu(low_t=(T - 9000, T - 5000, T - 100))
    assert not fired("GpuClockLowRepeated", run(over))
    assert not fired("GpuClockLow", run(gpu(low_since_t=T - 200)))
    assert not fired("GpuClockLow", run(gpu(low_since_t=T - 4000, seen_t=T - 400)))


def test_links() -> None:
    (firing,) = fired(
        "NvlinkErrors", run(gpu(links_grown={"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": 3.0}))
    )
    assert "crc flit error +3" in firing.summary
    assert not fired("NvlinkErrors", run(gpu()))


def test_ports() -> None:
    bad = PortState("node1", "mlx5_0", 1, grown={"symbol_error_total": 3.0})
    (firing,) = fired("NicErrors", run(ports=(bad,)))
    assert firing.labels == {"run": "r42", "host": "node1", "device": "mlx5_0"}
    assert "symbol_error +3" in firing.summary
    slow = PortState("node1", "mlx5_1", 1, values={"rate_bytes_per_second": 2.5e10}, usual_rate=5e10)
    assert "200 Gb/s where 400 are usual" in fired("NicErrors", run(ports=(slow,)))[0].summary
    assert fired("NicErrors", run(ports=(PortState("node1", "mlx5_2", 1, down_since_t=T - 9),)))
    assert not fired("NicErrors", run(ports=(PortState("node1", "mlx5_3", 1),)))
    assert not fired("NicErrors", run(ports=(PortState("node9", "mlx5_0", 1, down_since_t=T - 9),)))


def test_an_xid_inhibits_the_stall_that_follows_it() -> None:
    judge = Judge(config=Config())
    before = judge.evaluate(run(gpu(xids=(told(),))))
    assert [it.alert.name for it in before if it.alert.level == "page"] == ["GpuXidError"]
    stalled = running(t=T + 100, ranks=8, step=51300, last_step_t=T, gpus=(gpu(xids=(told(),)),))
    after = judge.evaluate(stalled)
    assert [(it.alert.name, it.alert.inhibited) for it in after if it.alert.level == "page"] == [
        ("TrainingStepStalled", True)
    ]


@pytest.mark.parametrize(
    ("state", "name"),
    [
        (run(gpu(xids=(told(),))), "hardware_fault"),
        (run(gpu(dbe_t=T - 20)), "hardware_fault"),
        (run(gpu(seen_t=T - 200), gpu(3)), "hardware_fault"),
        (run(gpu(xids=(told(43, "record"),))), "running"),
        (run(gpu(xids=(told(),), ranks=())), "running"),
        (running(t=T, last_step_t=T - 100, gpus=(gpu(xids=(told(),)),)), "stalled"),
        (
            run(
                gpu(xids=(told(ago_s=600),)),
                attempt=1,
                attempts=(Attempt(0, T0, 1, T0 + 5, 51290), Attempt(1, T - 300, 51000, T - 290, 51300)),
            ),
            "running",
        ),
    ],
    ids=["XID", "memory", "gone", "on record", "of nobody", "has become a stall", "a new attempt ends it"],
)
def test_the_state_of_a_run_over_failed_hardware(state: RunState, name: str) -> None:
    assert with_state(state, ALERTS).state == name


def test_what_is_exported() -> None:
    state = run(gpu(xids=(told(count=3), told(95, by="dcgm")), values={"DCGM_FI_DEV_SM_CLOCK": 1980.0}))
    text = Exposition(Config()).text(state)
    named = 'host="node1",gpu="2",uuid="GPU-2"'
    assert f'train_xid_total{{{named},code="79",level="page"}} 3.0\n' in text
    assert f'train_xid_last_timestamp_seconds{{{named},code="79",level="page"}} {T - 60!r}\n' in text
    assert 'code="95",level' not in text, "DCGM's own exporter tells it"
    assert 'train_xid_info{code="79",meaning="fell off the bus' in text
    assert f"DCGM_FI_DEV_SM_CLOCK{{{named}}} 1980.0\n" in text
    by_dcgm = run(gpu(by="dcgm", values={"DCGM_FI_DEV_SM_CLOCK": 1980.0}))
    assert "DCGM_" not in Exposition(Config()).text(by_dcgm)
    assert "train_xid" not in Exposition(Config()).text_of_run(state)


def test_what_the_driver_itself_asks_for_goes_before_the_table() -> None:
    text = "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
    state = run(gpu(xids=(told(95), told(154, "record", text=text))))
    assert "; do: node reboot required, as the driver says" in fired("GpuXidError", state)[0].summary
    nothing = text.replace("Node Reboot Required", "None")
    state = run(gpu(xids=(told(95), told(154, "record", text=nothing))))
    assert "as the driver says" not in fired("GpuXidError", state)[0].summary
