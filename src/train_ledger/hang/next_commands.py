"""What does the person on call run next?"""

from __future__ import annotations

import shlex
import socket
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from train_ledger.answer import Finding, HangAnswer, NextCommand
from train_ledger.hang.causes import is_in_code
from train_ledger.hang.evidence import Evidence
from train_ledger.hang.frames import parse_frame
from train_ledger.hang.reproduce import RANKS, reproduction

__all__ = ["REPRODUCE", "next_commands", "reproduced_by"]

_HARDWARE = "sudo dmesg -T | grep -iE 'xid|nvlink|mlx5|pcie' | tail -40; nvidia-smi -q -d ECC,PERFORMANCE"
_SHOWN = 2
_FRAMES = 60
REPRODUCE = f"reproduce it on {RANKS} ranks: DETAIL raises at the call that differs"


def next_commands(
    findings: Sequence[Finding], evidence: Evidence, unread: Sequence[str]
) -> Iterator[NextCommand]:
    """Commands that can be pasted as they are, the most telling first."""
    kinds = {finding.kind for finding in findings}
    culprits = [rank for finding in findings for rank in finding.culprits]
    for rank in culprits[:_SHOWN]:
        yield from _log_of(rank, evidence)
    for rank in [rank for rank in culprits if _lives_unseen(rank, evidence)][:_SHOWN]:
        yield NextCommand(f"where rank {rank} stands, read from outside", _stack_of(rank, evidence))
    if kinds & {"completion_laggard", "no_mismatch"}:
        hosts = sorted({host for rank in culprits if (host := _host(rank, evidence))})
        shown: list[str | None] = [*hosts[:_SHOWN]]
        for host in shown or [None]:
            why = "XIDs, links and ECC errors" + (f" of {host}" if host else " of the hosts of this group")
            yield NextCommand(why, _on(host, _HARDWARE))
    if any(is_in_code(finding.cause_suspected) for finding in findings):
        yield from _reproduction(None, _script(evidence))
    if not findings:
        run = _run_of(evidence, unread)
        yield NextCommand(
            "no rank is named by the dumps: who stands where in its code",
            f"train-ledger stacks {shlex.quote(run)}" if run else _all_stacks(),
        )


def reproduced_by(answer: HangAnswer, command: str | None) -> HangAnswer:
    """The answer with the run's own command in the line that reproduces a fault of the code."""
    if not command or not any(is_in_code(finding.cause_suspected) for finding in answer.findings):
        return answer
    others = tuple(it for it in answer.next if it.why != REPRODUCE)
    return replace(answer, next=(*others, *_reproduction(command, None)))


def _reproduction(command: str | None, script: str | None) -> Iterator[NextCommand]:
    if line := reproduction(command, script):
        yield NextCommand(REPRODUCE, line)


def _script(evidence: Evidence) -> str | None:
    """The file that training was started from: the outermost frame of a recorded call."""
    for dump in evidence.dumps.values():
        frame = parse_frame(dump.last.frames[-1]) if dump.last and dump.last.frames else None
        if frame and frame.function == "<module>" and frame.file.endswith(".py"):
            return shlex.quote(frame.file)
    return None


def _lives_unseen(rank: int, evidence: Evidence) -> bool:
    known = evidence.known.get(rank)
    return rank not in evidence.stacks and not (known and (known.gone or known.raised_in))


def _log_of(rank: int, evidence: Evidence) -> Iterator[NextCommand]:
    """The traceback that ended it, as far as the log shows it."""
    known = evidence.known.get(rank)
    file, _, line = (known.raised_in or "" if known else "").rpartition(":")
    if file and line.isdecimal():
        shown = f"sed -n '{max(1, int(line) - _FRAMES)},{line}p' {shlex.quote(file)}"
        yield NextCommand(f"how rank {rank} came to raise", shown)


def _stack_of(rank: int, evidence: Evidence) -> str:
    """Finds the process by its RANK, as torchrun sets it, on the rank's own host."""
    found = f"$(grep -lsz '^RANK={rank}$' /proc/[0-9]*/environ | cut -d/ -f3)"
    return _on(_host(rank, evidence), f"for p in {found}; do py-spy dump --pid $p; done")


def _all_stacks() -> str:
    return (
        "for p in $(grep -lsz '^RANK=' /proc/[0-9]*/environ | cut -d/ -f3); do "
        "tr '\\0' '\\n' < /proc/$p/environ | grep '^RANK='; py-spy dump --pid $p; done"
    )


def _on(host: str | None, command: str) -> str:
    elsewhere = host is not None and host not in (
        socket.gethostname(),
        socket.gethostname().partition(".")[0],
    )
    return f"ssh {shlex.quote(host or '')} {shlex.quote(command)}" if elsewhere else command


def _host(rank: int, evidence: Evidence) -> str | None:
    known = evidence.known.get(rank)
    dump = evidence.dumps.get(rank)
    return (known.host if known else None) or (dump.host if dump else None)


def _run_of(evidence: Evidence, others: Sequence[str]) -> str | None:
    """The run directory that the dumps lie in, where they lie in one."""
    for file in [*(dump.file for dump in evidence.dumps.values()), *others]:
        for folder in Path(file).parents:
            if folder.name == "comm_traces" and folder.is_dir():  # else it lies in an archive
                return str(folder.parent)
    return None
