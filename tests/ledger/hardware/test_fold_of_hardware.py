"""Whose GPU it is, and what happened to it in the time of the run."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.config import Alerts, Config, Xid
from train_ledger.facts import Event, Fault, HardwareReading, Step
from train_ledger.ledger import Fold
from train_ledger.ledger.memo import from_plain, put_down, take_up, to_plain
from train_ledger.ledger.state import GpuState, RunState

T0 = 1_764_000_000.0
CLOCK, REASONS = "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
DBE, SBE = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"
LINK = "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"


def start(rank: int, t: float = T0, *, attempt: int = 0, host: str = "node1", **details: Any) -> Event:
    place = {"gpu": rank, "uuid": f"GPU-{rank}", "pci": f"0000:{rank + 16:02x}:00.0", "pid": 100 + rank}
    return Event(
        t,
        "run_start",
        rank,
        attempt=attempt,
        host=host,
        details={"world_size": 2, **place, **details},
    )


def xid(code: int, t: float, *, bus: int = 16, host: str = "node1", text: str = "", pid: int = 0) -> Fault:
    details = {"code": code, "pci": f"0000:{bus:02x}:00", "text": text, **({"pid": pid} if pid else {})}
    return Fault(t, "xid", host=host, details=details)


def look(
    t: float, gpu: int = 0, *, host: str = "node1", by: str = "dcgm", **values: float
) -> HardwareReading:
    return HardwareReading(
        t,
        host,
        gpu=gpu,
        uuid=f"GPU-{gpu}",
        pci=f"0000:{gpu + 16:02x}:00",
        by=by,
        values={UTIL: 99.0, **values},
    )


def folded(*facts: Any, config: Config | None = None) -> Fold:
    fold = Fold("r42", config or Config(), {"world_size": 2})
    for fact in facts:
        if isinstance(fact, Event | Step):
            fold.add(fact)
        else:
            fold.add_hardware(fact)
    return fold


def run(*facts: Any, t: float = T0 + 60, config: Config | None = None) -> RunState:
    return folded(start(0), start(1), *facts, config=config).state(t)


def one(state: RunState, gpu: int = 0) -> GpuState:
    return next(it for it in state.gpus if it.gpu == gpu)


def levels(state: RunState) -> list[tuple[int, str, int]]:
    return [(it.code, it.level, it.count) for gpu in state.gpus for it in gpu.xids]


def test_an_xid_is_of_the_rank_that_is_on_the_gpu() -> None:
    state = run(xid(79, T0 + 30, bus=17))
    assert [(it.gpu, it.ranks, it.uuid) for it in state.gpus] == [(1, (1,), "GPU-1")]
    assert levels(state) == [(79, "page", 1)]


@pytest.mark.parametrize(
    "fault",
    [xid(79, T0 + 30, bus=99), xid(79, T0 + 30, host="node2"), xid(79, T0 - 3600)],
    ids=["another GPU", "another host", "before the run"],
)
def test_an_xid_of_others_is_none_of_the_run(fault: Fault) -> None:
    assert levels(run(fault)) == []


def test_of_a_host_that_the_run_came_to_later_only_what_was_later_counts() -> None:
    moved = start(0, T0 + 1000, attempt=1, host="node9")
    before, later = xid(79, T0 + 500, host="node9"), xid(48, T0 + 1010, host="node9")
    assert levels(run(moved, start(1, T0 + 1000, attempt=1), before, later, t=T0 + 1020)) == [(48, "page", 1)]


def test_of_a_host_that_the_run_stayed_on_what_was_before_the_restart_is_known() -> None:
    again = [start(rank, T0 + 1000, attempt=1) for rank in (0, 1)]
    assert levels(run(xid(79, T0 + 990), *again, t=T0 + 1020)) == [(79, "page", 1)]


def test_a_rank_that_does_not_come_back_is_where_it_was() -> None:
    assert levels(run(xid(79, T0 + 990, bus=17), start(0, T0 + 1000, attempt=1), t=T0 + 1020))


def test_a_thousand_lines_of_one_crash_are_one_event() -> None:
    state = run(*(xid(13, T0 + 30 + number / 1000) for number in range(1000)))
    assert levels(state) == [(13, "record", 1000)]


def test_the_same_code_on_the_same_gpu_again_within_a_day_pages() -> None:
    state = run(xid(31, T0 + 30), xid(31, T0 + 600), t=T0 + 700)
    assert levels(state) == [(31, "page", 1), (31, "record", 1)]
    assert levels(run(xid(31, T0 + 30), xid(31, T0 + 90_000), t=T0 + 90_010)) == [(31, "record", 2)]
    assert levels(run(xid(31, T0 + 30), xid(31, T0 + 600, bus=17), t=T0 + 700)) == [
        (31, "record", 1),
        (31, "record", 1),
    ]


def test_what_follows_a_kill_is_recorded_however_often() -> None:
    assert levels(run(*(xid(45, T0 + 100 * number) for number in range(8)), t=T0 + 900)) == [
        (45, "record", 8)
    ]


def test_the_user_sets_levels() -> None:
    config = Config(xid=Xid(page=(63,), record=(79,), ignore=(74,)))
    state = run(xid(63, T0 + 1), xid(79, T0 + 1), xid(74, T0 + 1), config=config)
    assert levels(state) == [(63, "page", 1), (74, "ignore", 1), (79, "record", 1)]


def test_without_an_address_of_the_rank_the_process_says_whose_it_is() -> None:
    facts = [start(0, uuid=None, pci=None, gpu=None), start(1, uuid=None, pci=None, gpu=None)]
    state = folded(*facts, xid(79, T0 + 5, bus=99, pid=101)).state(T0 + 10)
    assert [it.ranks for it in state.gpus] == [(1,)]


def test_dcgm_tells_a_new_code_once_and_what_stood_there_before_the_run_is_old() -> None:
    code = "DCGM_FI_DEV_XID_ERRORS"
    assert levels(run(look(T0 + 5, **{code: 94.0}), look(T0 + 15, **{code: 94.0}))) == []
    state = run(look(T0 + 5, **{code: 0.0}), look(T0 + 15, **{code: 94.0}), look(T0 + 25, **{code: 94.0}))
    assert [(it.code, it.level, it.first_t, it.by) for it in one(state).xids] == [
        (94, "page", T0 + 15, "dcgm")
    ]
    late = run(look(T0 + 500, **{code: 94.0}), t=T0 + 510)
    assert levels(late) == [(94, "page", 1)]


def test_the_kernel_goes_before_dcgm() -> None:
    code = "DCGM_FI_DEV_XID_ERRORS"
    state = run(look(T0 + 5, **{code: 0.0}), look(T0 + 15, **{code: 79.0}), xid(79, T0 + 14))
    assert [(it.code, it.by) for it in one(state).xids] == [(79, "kernel")]


def test_of_a_card_that_was_replaced_the_rank_without_uuids_is_on_the_new_one() -> None:
    anonymous = start(0, uuid=None, pci=None)
    old, new = (HardwareReading(t, "node1", 0, uuid, values={}) for t, uuid in ((T0, "A"), (T0 + 40, "B")))
    state = folded(anonymous, old, new).state(T0 + 60)
    assert {it.uuid: it.ranks for it in state.gpus} == {"A": (), "B": (0,)}


def test_a_gpu_of_nobody_is_known_and_has_no_ranks() -> None:
    assert [it.ranks for it in run(look(T0 + 5, 0), look(T0 + 5, 7)).gpus] == [(0,), ()]


@pytest.mark.parametrize(
    ("values", "since"),
    [
        ([0.0, 1.0], 10.0),
        ([1.0, 1.0], 0.0),
        ([3.0, 0.0], None),
        ([3.0, 1.0], 10.0),
    ],
    ids=["new", "there already", "driver loaded anew", "loaded anew and one more"],
)
def test_uncorrected_errors(values: list[float], since: float | None) -> None:
    looks = [look(T0 + 10 * number, **{DBE: value}) for number, value in enumerate(values)]
    found = one(run(*looks)).dbe_t
    if since is None:
        assert found == T0
    else:
        assert found == T0 + since


def test_corrected_errors_within_their_window() -> None:
    looks = [look(T0 + 600 * number, **{SBE: 2.0 * number}) for number in range(200)]
    assert one(run(*looks)).sbe_grown == 2 * 144
    assert one(run(*looks, look(T0 + 120_000, **{SBE: 5.0}))).sbe_grown == 0
    assert one(run(look(T0, **{SBE: 900.0}))).sbe_grown == 0


def test_links_that_count_errors() -> None:
    state = run(look(T0, **{LINK: 7.0}), look(T0 + 10, **{LINK: 9.0}), look(T0 + 3000, **{LINK: 9.0}))
    assert one(state).links_grown == {LINK: 2.0}
    assert (
        one(
            run(look(T0, **{LINK: 7.0}), look(T0 + 10, **{LINK: 9.0}), look(T0 + 4000, **{LINK: 9.0}))
        ).links_grown
        == {}
    )


def low(*values: float, every_s: float = 10.0, name: str = CLOCK, util: float = 99.0) -> GpuState:
    looks = [look(T0 + every_s * number, **{name: value, UTIL: util}) for number, value in enumerate(values)]
    return one(run(*looks))


def test_a_card_is_measured_by_its_own_usual_clock() -> None:
    usual = [1980.0] * 200
    assert low(*usual).low_since_t is None
    assert low(*usual, *[1300.0] * 40).low_since_t == T0 + 2000
    assert low(*usual, *[1300.0] * 40, util=0.0).low_since_t is None
    assert low(*[1410.0] * 300).low_since_t is None, "an A100 at its own clock"


@pytest.mark.parametrize(
    ("bits", "is_low"), [(0x4, False), (0x8, True), (0x40, True), (0x2, False), (0x41, False)]
)
def test_reasons_that_mean_trouble(bits: int, is_low: bool) -> None:
    assert bool(low(bits, name=REASONS).low_why) is is_low


def test_each_stretch_that_lasts_counts_once() -> None:
    bad, good = [8.0] * 40, [0.0] * 5
    state = low(*bad, *good, *bad, *good, *[8.0] * 10, *good, *bad, name=REASONS)
    assert len(state.low_t) == 3


def test_times_are_of_the_clock_of_rank_zero() -> None:
    facts: list[Any] = [start(0), start(1, T0 + 600, host="node2")]
    for step in range(10):
        facts.append(Step(T0 + step, step, 0, 0, "node1"))
        facts.append(Step(T0 + step + 600, step, 1, 0, "node2"))
    state = folded(*facts, xid(79, T0 + 605, bus=17, host="node2")).state(T0 + 10)
    assert [it.first_t for gpu in state.gpus for it in gpu.xids] == [T0 + 5]


HOSTS = [
    [start(0), *(Step(T0 + step, step, 0, 0, "node1") for step in range(5))],
    [start(1, host="node2"), *(Step(T0 + step, step, 1, 0, "node2") for step in range(5))],
    [xid(31, T0 + 2), xid(31, T0 + 100), xid(79, T0 + 200)],
    [look(T0 + 10 * number, **{DBE: float(number // 4), CLOCK: 1980.0}) for number in range(8)],
    [look(T0 + 10 * number, 1, host="node2", **{SBE: float(number)}) for number in range(8)],
    [
        HardwareReading(
            T0 + number,
            "node1",
            device="mlx5_0",
            port=1,
            values={"state_id": 4.0, "link_downed_total": number},
        )
        for number in range(3)
    ],
]


@given(st.randoms(use_true_random=False))
def test_the_order_of_hosts_and_files_does_not_matter(random: Any) -> None:
    left = [list(facts) for facts in HOSTS]
    mixed = []
    while any(left):
        mixed.append(random.choice([facts for facts in left if facts]).pop(0))
    whole = [fact for facts in HOSTS for fact in facts]
    assert folded(*mixed).state(T0 + 300) == folded(*whole).state(T0 + 300)


def test_it_goes_on_where_another_process_stopped() -> None:
    whole = [fact for facts in HOSTS for fact in facts]
    steady, anew = Fold("r", Config()), Fold("r", Config())
    for fact in whole:
        for fold in (steady, anew):
            fold.add(fact) if isinstance(fact, Event | Step) else fold.add_hardware(fact)
        anew.state(T0 + 300)
        parts = from_plain(msgspec.msgpack.decode(msgspec.msgpack.encode(to_plain(put_down(anew)))))
        anew = Fold("r", Config())
        take_up(anew, parts)
    assert anew.state(T0 + 300) == steady.state(T0 + 300)
    assert anew.state(T0 + 300).gpus


def test_thresholds_are_the_users() -> None:
    looks = [look(T0 + 10 * number, **{REASONS: 8.0}) for number in range(4)]
    assert one(run(*looks, config=Config(alerts=Alerts(clock_low_s=20.0)))).low_t == (T0 + 20,)
