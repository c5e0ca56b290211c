"""XIDs and killed processes in every shape in which a kernel's lines are printed."""

from __future__ import annotations

import random
import time

import pytest

from train_ledger.sources.logs.kernel_log import fault_of, kernel_fault, pci_address

GONE = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
T = 1_746_493_323


@pytest.mark.parametrize(
    ("front", "t", "host"),
    [
        ("", None, None),
        ("[12345.678901] ", None, None),
        ("[  +6.010643] ", None, None),
        ("6,901,100000,-;", None, None),
        (f"{T}.250000 node03 kernel: ", T + 0.25, "node03"),
        (time.strftime("[%a %b %e %H:%M:%S %Y] ", time.localtime(T)), T, None),
        (time.strftime("%b %d %H:%M:%S node03 kernel: ", time.localtime(T)), T, "node03"),
        (time.strftime("%Y-%m-%dT%H:%M:%S+0000 node03 kernel: ", time.gmtime(T)), T, "node03"),
        (
            time.strftime("%Y-%m-%dT%H:%M:%S.250000+00:00 node03 kernel: [99.1] ", time.gmtime(T)),
            T + 0.25,
            "node03",
        ),
        (time.strftime("%Y-%m-%dT%H:%M:%S,250000+00:00 ", time.gmtime(T)), T + 0.25, None),
    ],
)
def test_the_front_tells_time_and_host_where_it_has_them(front, t, host) -> None:
    found = kernel_fault((front + GONE).encode(), written_t=T + 3600)
    assert found is not None
    assert (found.code, found.pci, found.pid, found.text) == (
        79,
        "0000:3b:00",
        None,
        "GPU has fallen off the bus.",
    )
    assert (found.t, found.host) == (t, host)


def test_the_host_of_the_file_holds_where_the_line_has_none() -> None:
    found = kernel_fault(GONE.encode(), host="node07")
    assert found is not None
    assert found.host == "node07"


@pytest.mark.parametrize(
    ("body", "code", "pci", "pid", "process", "text"),
    [
        ("NVRM: Xid (0000:03:00): 14, Channel 00000001", 14, "0000:03:00", None, None, "Channel 00000001"),
        ("NVRM: Xid (PCI:0000:04:00): 69", 69, "0000:04:00", None, None, ""),
        ("NVRM: Xid (PCI:0000:04:00): 31, pid=12", 31, "0000:04:00", 12, None, ""),
        (
            "NVRM: Xid (PCI:00000000:9B:00.0): 119, pid=7, name=python3, Timeout",
            119,
            "0000:9b:00",
            7,
            "python3",
            "Timeout",
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 43, pid=7, name=ray::W, Ch 8",
            43,
            "0000:3b:00",
            7,
            "ray::W",
            "Ch 8",
        ),
        (
            "NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT  Fatal   XC0",
            149,
            "0018:01:00",
            None,
            None,
            "NETIR_LINK_EVT Fatal XC0",
        ),
    ],
)
def test_all_shapes_of_an_xid(body, code, pci, pid, process, text) -> None:
    found = kernel_fault(body.encode())
    assert found is not None
    assert (found.code, found.pci, found.pid, found.process, found.text) == (code, pci, pid, process, text)


def test_a_process_killed_for_memory() -> None:
    line = b"1746493323.5 n3 kernel: Memory cgroup out of memory: Killed process 4242 (python3) total-vm:9kB"
    found = kernel_fault(line)
    assert found is not None
    assert (found.code, found.pid, found.process, found.host) == (None, 4242, "python3", "n3")
    assert fault_of(found).fault == "killed"


def test_an_xid_is_a_fact() -> None:
    found = kernel_fault(GONE.encode(), host="n1", source="n1.kern.log:3")
    assert found is not None
    fact = fault_of(found)
    assert (fact.fault, fact.host, fact.source) == ("xid", "n1", "n1.kern.log:3")
    assert fact.details["code"] == 79


@pytest.mark.parametrize(
    "line",
    [
        b"NVRM: Xid (invalid): some error",
        b"NVRM: Xid error: xyz",
        rb"NVRM: Xid \(((?:PCI:)?[0-9a-fA-F:]+)\).*?: (\d+),",
        b"nvidia-nvswitch0: SXid (PCI:0000:85:00.0): 20034, Fatal, Link 30",
    ],
)
def test_what_only_looks_like_one_is_none(line) -> None:
    assert kernel_fault(line) is None


@pytest.mark.parametrize("text", ["", "GPU-1", "3b", "0000:3b:00:1", "zz:00.0", "0000:1ff:00"])
def test_what_is_no_pci_address(text) -> None:
    assert pci_address(text) is None


def test_no_mangled_line_is_an_error() -> None:
    random.seed(5)
    lines = [
        f"{T}.25 node03 kernel: {GONE}",
        f"[Tue May  6 01:02:03 2025] {GONE}",
        f"May 06 01:02:03 n kernel: {GONE}",
    ]
    for _ in range(10_000):
        line = bytearray(random.choice(lines).encode())
        for _ in range(random.randrange(1, 5)):
            at = random.randrange(len(line))
            line[at : at + random.randrange(5)] = random.randbytes(
                random.randrange(4)
            ) + b"9" * random.randrange(3)
        found = kernel_fault(bytes(line), written_t=random.choice([None, 0.0, 1e18, 1.7e9]))
        if found:
            fault_of(found)
