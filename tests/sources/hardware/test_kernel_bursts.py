"""A million equal lines become a few, and are counted as a million."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.sources.hardware.kernel_bursts import Bursts
from train_ledger.sources.hardware.kernel_message import KernelMessage, matters
from train_ledger.sources.logs.kernel_log import fault_of, fault_told

T = 1_770_000_000.0


def xid(code: int = 95, *, pid: int = 7, pci: str = "3b", more: str = "Uncontained ECC error") -> str:
    return f"NVRM: Xid (PCI:0000:{pci}:00): {code}, pid={pid}, name=python, {more}"


def counted(messages: list[KernelMessage]) -> dict[tuple[int | None, str | None], int]:
    """As a reader of the file would count them."""
    counts: dict[tuple[int | None, str | None], int] = {}
    for message in messages:
        found = fault_told(message.line("n7"))
        assert found is not None
        key = (found.code, found.pci)
        counts[key] = counts.get(key, 0) + int(fault_of(found).details.get("times", 1))
    return counts


def test_a_thousand_equal_lines_in_a_second_are_a_few_lines_that_count_a_thousand() -> None:
    bursts = Bursts()
    written = bursts.pass_on([KernelMessage(T + n / 1000, xid(pid=n)) for n in range(1000)], 0.0)
    assert len(written) == 3
    written += bursts.pass_on([], 10.0)
    assert (len(written), counted(written)) == (4, {(95, "0000:3b:00"): 1000})
    assert written[-1].t == T + 0.999


def test_a_burst_that_goes_on_is_told_every_ten_seconds() -> None:
    bursts = Bursts()
    written: list[KernelMessage] = []
    for second in range(100):
        written += bursts.pass_on([KernelMessage(T + second, xid())] * 8000, float(second))
    written += bursts.rest()
    assert len(written) <= 3 + 12
    assert counted(written) == {(95, "0000:3b:00"): 800_000}


def test_kinds_are_kept_apart() -> None:
    bursts = Bursts()
    kinds = [
        xid(95),
        xid(95, pci="86"),
        xid(63),
        xid(149, more="NETIR_LINK_EVT Fatal"),
        xid(149, more="Nonfatal"),
    ]
    written = bursts.pass_on([KernelMessage(T, text) for text in kinds for _ in range(50)], 0.0)
    assert len(written) == 5 * 3
    assert sum(" Fatal" in it.text for it in written) == 3


def test_after_a_quiet_minute_lines_are_written_again() -> None:
    bursts = Bursts()
    first = bursts.pass_on([KernelMessage(T, xid())] * 5, 0.0)
    second = bursts.pass_on([KernelMessage(T + 90, xid())] * 2, 90.0)
    assert (len(first), len(second)) == (3, 1 + 2)
    assert counted(first + second) == {(95, "0000:3b:00"): 7}


def test_floods_of_many_kinds_are_bounded() -> None:
    bursts = Bursts()
    words = ["".join(chr(97 + (n >> shift) % 16) for shift in (0, 4, 8, 12)) for n in range(5000)]
    messages = [KernelMessage(T, f"mlx5_core: {word}") for word in words]
    written = bursts.pass_on(messages, 0.0)
    assert len(written) <= 1000 + 3
    assert len(bursts.rest()) == 1


@given(st.lists(st.tuples(st.sampled_from([31, 79, 95]), st.integers(0, 40)), max_size=60))
def test_however_they_come_nothing_is_lost(bursts_of: list[tuple[int, int]]) -> None:
    bursts, written, now_s = Bursts(), [], 0.0
    expected: dict[tuple[int | None, str | None], int] = {}
    for code, number in bursts_of:
        now_s += number
        written += bursts.pass_on([KernelMessage(T + now_s, xid(code))] * number, now_s)
        if number:
            key = (code, "0000:3b:00")
            expected[key] = expected.get(key, 0) + number
    written += bursts.rest()
    assert counted(written) == expected


def test_what_matters_and_what_does_not() -> None:
    kept = [
        xid(), "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 44 egress",
        "oom-kill:constraint=CONSTRAINT_MEMCG", "Memory cgroup out of memory: Killed process 41 (python)",
        "mlx5_core 0000:86:00.0: Port module event: module 0, Cable unplugged",
        "pcieport 0000:3a:00.0: AER: Corrected error received: 0000:3b:00.0",
        "mce: [Hardware Error]: Machine check events logged", "EDAC MC0: 1 CE on DIMM",
    ]  # fmt: skip
    dropped = [
        "usb 1-1: new device",
        "audit: type=1400",
        "EXT4-fs (sda1): mounted",
        "perf: interrupt took too long",
    ]
    assert ([matters(it) for it in kept], [matters(it) for it in dropped]) == ([True] * 8, [False] * 4)
