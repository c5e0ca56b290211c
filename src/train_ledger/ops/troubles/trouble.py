"""What kind of trouble is a fault: one that can be the cause, a sign of one, or what a victim says?

A rank that waited in vain, lost its peer or was ended by its launcher is a victim, however loud it is; an end
that came from outside – the scheduler's, somebody's – is no fault of the run at all.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from train_ledger.config import Xid
from train_ledger.facts import Event, Fault
from train_ledger.hang.knowledge import is_consequence
from train_ledger.ledger import xid
from train_ledger.ledger.xids import level_here
from train_ledger.ops.evidence.outside import FROM_OUTSIDE
from train_ledger.render import harmless

__all__ = ["Trouble", "Weight", "trouble_of"]

Weight = Literal["cause", "sign", "victim", "outside"]

_LONGEST = 300
_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
_BY_PEERS = ("ncclRemoteError", "peer_gone", "store_gone")
_NUMBERS = re.compile(r"0x[0-9a-fA-F]{1,16}|\d{1,20}")
_AT = re.compile(r'File "([^"]{1,500})", line (\d{1,9})')
_DIED_THERE = "NODE FAILURE"
_SCHEDULER = re.compile(r"cancelled|time ?limit|preempt", re.IGNORECASE)
_MEMORY = re.compile(r"memory|oom", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that went wrong, as somebody told it.

    `t` is when (unix seconds): the latest that it can have been, and `earliest_t` the earliest, None where
    nothing says; the two are one where its line tells the time. `source` is "file:line". `is_root` says that
    the launcher saw this rank fail before its others. `waited_s` is for how long one had waited by then.
    """

    kind: str
    said: str
    weight: Weight
    t: float | None = None
    earliest_t: float | None = None
    rank: int | None = None
    host: str | None = None
    attempt: int = 0
    source: str = ""
    pid: int | None = None
    pci: str | None = None
    is_root: bool = False
    waited_s: float | None = None

    @property
    def shape(self) -> tuple[str, str]:
        """What two ranks have in common that ran into the same thing."""
        return self.kind, _NUMBERS.sub("#", self.said)


def trouble_of(fault: Fault | Event, overrides: Xid | None = None) -> Trouble | None:
    """What a fault of a log or of a kernel, or an event of the signals, is; None for what is no trouble.

    `overrides` are levels of XIDs that the user set.
    """
    code = fault.fault if isinstance(fault, Fault) else _EVENTS.get(fault.name, "")
    read = _READ.get(code)
    if read is None:
        return None
    details = fault.details
    said, weight = _of_xid(details, overrides or Xid()) if code == "xid" else read(details)
    if not said:
        return None
    ran_ms = details.get("ran_ms")
    return Trouble(
        kind=code,
        said=harmless(said, longest=_LONGEST),
        weight=weight,
        t=fault.t,
        earliest_t=_number(details["earliest_t"]) if "earliest_t" in details else fault.t,
        rank=fault.rank,
        host=_host(fault),
        attempt=fault.attempt,
        source=fault.source,
        pid=_whole(details.get("pid")),
        pci=details.get("pci") if code == "xid" else None,
        is_root=details.get("root") is True,
        waited_s=ran_ms / 1000 if isinstance(ran_ms, int) else None,
    )


def _host(fault: Fault | Event) -> str | None:
    """Where it happened; that a node's failure ended a job is told by another node, the job's first one."""
    by_another = fault.details.get("job") and _DIED_THERE in str(fault.details.get("why"))
    return None if by_another or fault.host == "localhost" else fault.host


_EVENTS = {"exception": "exception", "signal": "signal", "ckpt_failed": "checkpoint_failed"}

_Said = tuple[str, Weight]
Details = Mapping[str, Any]


def _exception(details: Details) -> _Said:
    kind, message = details.get("type"), details.get("message")
    if kind is None:
        return _exit(details)
    said = f"{kind}: {message}" if message else str(kind)
    if str(kind) == "KeyboardInterrupt" or str(kind).endswith("SignalException"):
        return said, "outside"
    at = _AT.search(str(details.get("frame") or ""))
    place = f" (at {at[1].rpartition('/')[2]}:{at[2]})" if at else ""
    return said + place, "victim" if is_consequence(said) else "cause"


def _exit(details: Details) -> _Said:
    """A status alone: whoever the launcher saw fail first may be the cause, of the others it says nothing."""
    status = details.get("exit_code")
    if status is None:
        return "", "victim"
    return f"ended with exit status {status}", "cause" if details.get("root") else "victim"


def _out_of_memory(details: Details) -> _Said:
    return f"out of device memory: {details.get('message') or ''}".rstrip(": "), "cause"


def _of_nccl(details: Details) -> _Said:
    said = str(details.get("message") or details.get("what") or "an error of NCCL")
    kind = details.get("type")
    said = f"{kind}: {said}" if kind else said
    of_peer = any(word in said for word in _BY_PEERS) or is_consequence(said)
    return said.replace("peer_gone", "lost the connection to a peer"), "victim" if of_peer else "sign"


def _waited(details: Details) -> _Said:
    op, seq = details.get("op"), details.get("seq")
    what = f" in {op}" if op else ""
    number = f" number {seq}" if seq is not None else ""
    return f"timed out{what}{number}", "victim"


def _mismatch(details: Details) -> _Said:
    return "came with another collective than its peers", "sign"


def _killed(details: Details) -> _Said:
    why = str(details.get("why") or "")
    if why:
        if _SCHEDULER.search(why) and not _MEMORY.search(why):
            job = f" job {details['job']}" if details.get("job") else ""
            return f"the scheduler ended{job}: {why}", "outside"
        return f"ended by the scheduler: {why}", "cause" if _is_grave(why) else "sign"
    if "process" in details:
        pid, name = details.get("pid"), details.get("process")
        return f"the kernel killed process {pid} ({name}) for want of memory", "cause"
    return "killed (SIGKILL)", _weight_of_end(details)


def _is_grave(why: str) -> bool:
    return _DIED_THERE in why or _MEMORY.search(why) is not None


def _signalled(details: Details) -> _Said:
    number = details.get("number")
    name = _name(number)
    if number in FROM_OUTSIDE:
        if details.get("of") == "launcher":
            return f"the launcher was ended by {name}", "outside"
        return f"ended by {name}", "victim" if details.get("victim") else "outside"
    if number == signal.SIGABRT:
        return f"ended by {name}", "victim"
    if number == signal.SIGKILL:
        return f"ended by {name}", _weight_of_end(details)
    return (f"ended by {name}", "cause") if number in _CRASHES else ("", "sign")


def _weight_of_end(details: Details) -> Weight:
    return "victim" if details.get("victim") else "cause" if details.get("root") else "sign"


def _not_saved(details: Details) -> _Said:
    said = details.get("error") or details.get("message") or details.get("why") or ""
    return f"a checkpoint could not be saved: {said}".rstrip(": "), "cause"


def _of_xid(details: Details, overrides: Xid) -> _Said:
    code = _whole(details.get("code"))
    if code is None or level_here(code, str(details.get("text") or ""), overrides=overrides) != "page":
        return "", "sign"
    return f"XID {code} of {details.get('pci')}: {xid(code).meaning}", "cause"


_READ: Mapping[str, Callable[[Details], _Said]] = {
    "exception": _exception,
    "oom": _out_of_memory,
    "nccl_error": _of_nccl,
    "watchdog_timeout": _waited,
    "desync": _mismatch,
    "killed": _killed,
    "signal": _signalled,
    "checkpoint_failed": _not_saved,
    "xid": lambda _: ("", "sign"),
}


def _name(number: object) -> str:
    try:
        return signal.Signals(number).name if isinstance(number, int) else f"signal {number}"
    except ValueError:
        return f"signal {number}"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None
