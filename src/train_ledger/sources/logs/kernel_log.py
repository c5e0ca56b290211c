"""What does the kernel say of a GPU, or of a process that it killed?

Lines of the NVIDIA driver (`NVRM: Xid`) and of the out-of-memory killer, as `dmesg` prints them (seconds
since boot, `-T`, `--time-format iso`, the kernel's own `6,901,100000,-;`), and `journalctl -k` (short,
short-unix, short-iso) and syslog. Only some of them tell the time so that it can be compared with anything.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

from train_ledger.facts import Fault
from train_ledger.sources.lines.log_time import log_time, time_without_year

__all__ = [
    "MARKS",
    "KernelFault",
    "fault_of",
    "fault_told",
    "kernel_fault",
    "more_such_lines",
    "pci_address",
    "when_told",
]


@dataclass(frozen=True, slots=True)
class KernelFault:
    """An XID, or a process killed for memory (`code` None).

    `pci` is domain:bus:device in small letters ("0000:3b:00"), without the function. `text` is what follows
    the code. `t` is unix seconds, None where the line only counts from boot; `host` None where it has none.
    `times` is more than 1 where one line stands for many (`more_such_lines`).
    """

    code: int | None
    pci: str | None = None
    pid: int | None = None
    process: str | None = None
    text: str = ""
    t: float | None = None
    host: str | None = None
    source: str = ""
    times: int = 1


MARKS: tuple[bytes, ...] = (b"Xid (", b"Killed process")

_XID = re.compile(
    r"(?<![A-Za-z])Xid \((?:PCI:)?([0-9A-Fa-f]{1,8}(?::[0-9A-Fa-f]{1,4}){1,2})"
    r"[^)]{0,40}\): (\d{1,6})(?:, ?|\b)(.*)"
)
_PID = re.compile(r"pid='?(\d{1,10}|<unknown>)'?(?:, |$)")
_NAME = re.compile(r"name=([^,]{0,64})(?:, |$)")
_KILLED = re.compile(
    r"(?:Out of memory|Memory cgroup out of memory|oom-kill).{0,200}?"
    r"Killed process (\d{1,10}) \(([^)]{1,64})\)"
)
_EPOCH = re.compile(r"(\d{9,11}\.\d{1,9}) (?:(\S{1,255}) )?")
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)([.,]\d{1,9})?(Z|[+-]\d\d:?\d\d)?\s+(?:([A-Za-z0-9][\w.-]{0,254}) )?"
)
_CTIME = re.compile(
    r"\[?(?:[A-Z][a-z]{2} )?([A-Z][a-z]{2})\s+(\d{1,2}) (\d\d):(\d\d):(\d\d)(?: (\d{4}))?\]?\s+"
    r"(?:([A-Za-z0-9][\w.-]{0,254}) (?=kernel))?"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LONGEST_TEXT = 300
_MORE = re.compile(r" \[train-ledger: (\d{1,12}) more such lines\]\Z")


def kernel_fault(
    data: bytes, *, host: str | None = None, written_t: float | None = None, source: str = ""
) -> KernelFault | None:
    """The fault of one line, or None. Never raises.

    `host` is that of the file, for lines that name none; `written_t` when it was written last, which gives
    the year to times without one.

    >>> found = kernel_fault(b"1700000000.5 n7 kernel: NVRM: Xid (PCI:0000:3B:00): 79, pid=7, name=py, gone")
    >>> found.code, found.pci, found.pid, found.text, found.t, found.host
    (79, '0000:3b:00', 7, 'gone', 1700000000.5, 'n7')
    """
    if not any(mark in data for mark in MARKS):
        return None
    return fault_told(data.decode("utf-8", "replace"), host=host, written_t=written_t, source=source)


def fault_told(
    text: str, *, host: str | None = None, written_t: float | None = None, source: str = ""
) -> KernelFault | None:
    """As `kernel_fault`, for a line that is decoded already."""
    line, times = _times_told(text.strip())
    if match := _XID.search(line):
        address = pci_address(match[1])
        if address is None:
            return None
        pid, process, text = _taken_apart(match[3])
        code = int(match[2])
    elif match := _KILLED.search(line):
        address, code, text = None, None, "killed by the kernel for want of memory"
        pid, process = int(match[1]), match[2]
    else:
        return None
    t, own_host = _front(line[: match.start()], written_t)
    return KernelFault(code, address, pid, process, text[:_LONGEST_TEXT], t, own_host or host, source, times)


def more_such_lines(text: str, number: int) -> str:
    """The line that stands for so many like `text` that were not written.

    >>> fault_told(more_such_lines("NVRM: Xid (PCI:0000:3b:00): 95, pid=7, name=py, bad", 997)).times
    997
    """
    return f"{text} [train-ledger: {number} more such lines]"


def _times_told(line: str) -> tuple[str, int]:
    match = _MORE.search(line)
    return (line[: match.start()], max(1, int(match[1]))) if match else (line, 1)


def when_told(text: str, *, written_t: float | None = None) -> float | None:
    """When a line of a kernel log says that it was written, in unix seconds; None where it does not say.

    >>> when_told("1700000000.5 n7 kernel: mlx5_core"), when_told("[  100.5] mlx5_core")
    (1700000000.5, None)
    """
    return _front(text.strip(), written_t)[0]


def pci_address(text: str) -> str | None:
    """A PCI address in one form, without its function; None for what is none.

    >>> pci_address("PCI:00000000:3B:00.0"), pci_address("3b:00.0"), pci_address("0000:3b:00")
    ('0000:3b:00', '0000:3b:00', '0000:3b:00')
    """
    parts = text.strip().upper().removeprefix("PCI:").partition(".")[0].split(":")
    if len(parts) == 2:
        parts = ["0", *parts]
    try:
        domain, bus, device = (int(part, 16) for part in parts)
    except ValueError:
        return None
    if not (0 <= domain < 1 << 32 and 0 <= bus < 256 and 0 <= device < 32):
        return None
    return f"{domain:04x}:{bus:02x}:{device:02x}"


def fault_of(found: KernelFault) -> Fault:
    """The fact that a kernel line is."""
    named = ("code", "pci", "pid", "process", "text")
    details = {name: value for name in named if (value := getattr(found, name)) is not None}
    if found.times > 1:
        details["times"] = found.times
    code = "killed" if found.code is None else "xid"
    return Fault(found.t, code, host=found.host, source=found.source, details=details)


def _taken_apart(rest: str) -> tuple[int | None, str | None, str]:
    """(pid, name, what is left) of what stands behind the code; older drivers leave out either."""
    pid = _PID.match(rest)
    if pid:
        rest = rest[pid.end() :]
    name = _NAME.match(rest)
    if name:
        rest = rest[name.end() :]
    known = name is not None and not name[1].startswith("<")
    return (
        int(pid[1]) if pid and pid[1].isdigit() else None,
        name[1] if name and known else None,
        " ".join(rest.split()),
    )


def _front(front: str, written_t: float | None) -> tuple[float | None, str | None]:
    """(time, host) by what stands before the message."""
    for found in _times(front, written_t):
        return found
    return None, None


def _times(front: str, written_t: float | None) -> Iterator[tuple[float | None, str | None]]:
    try:
        if match := _EPOCH.match(front):
            yield float(match[1]), _no_tag(match[2])
        elif match := _ISO.match(front):
            t = log_time("".join(part or "" for part in match.group(1, 2, 3)))
            if t is not None:
                yield t, _no_tag(match[4])
        elif match := _CTIME.match(front):
            yield _ctime(match, written_t), match[7]
    except (ValueError, OverflowError, OSError):
        return


def _no_tag(word: str | None) -> str | None:
    return None if word is None or word.startswith(("kernel", "NVRM", "[")) else word


def _ctime(match: re.Match[str], written_t: float | None) -> float | None:
    if match[1] not in _MONTHS:
        return None
    day, hour, minute, second = (int(match[index]) for index in (2, 3, 4, 5))
    month = _MONTHS.index(match[1]) + 1
    if match[6]:
        return time.mktime((int(match[6]), month, day, hour, minute, second, 0, 0, -1))
    return None if written_t is None else time_without_year(written_t, month, day, hour, minute, second)
