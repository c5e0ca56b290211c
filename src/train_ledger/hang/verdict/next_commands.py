"""What does the person on call run next?"""

from __future__ import annotations

import shlex
import socket
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from train_ledger.answer import Finding, HangAnswer, NextCommand
from train_ledger.hang.dumps.misplaced import meant_instead
from train_ledger.hang.fall import is_over
from train_ledger.hang.stacks.frames import parse_frame
from train_ledger.hang.verdict.causes import is_in_code
from train_ledger.hang.verdict.evidence import Evidence
from train_ledger.hang.verdict.reproduce import RANKS, reproduction
from train_ledger.render import ranks_in_brief

__all__ = ["REPRODUCE", "SAID_AT_END", "WHO_STANDS_WHERE", "next_commands", "reproduced_by"]

_HARDWARE = "sudo dmesg -T | grep -iE 'xid|nvlink|mlx5|pcie' | tail -40; nvidia-smi -q -d ECC,PERFORMANCE"
_SHOWN = 2
_PARTED = {"collective_type_mismatch", "size_or_syntax_mismatch", "collective_dtype_mismatch", "cycle"}
_HOSTS = 16
_FRAMES = 60
WHO_STANDS_WHERE = "no rank is named: who stands where in its code"
SAID_AT_END = "what each rank and its logs said at the end"
REPRODUCE = f"reproduce it on {RANKS} ranks: DETAIL raises at the call that differs"


def next_commands(
    findings: Sequence[Finding], evidence: Evidence, unread: Sequence[str]
) -> Iterator[NextCommand]:
    """Commands that can be pasted as they are, the most telling first."""
    kinds = {finding.kind for finding in findings}
    culprits = [rank for finding in findings for rank in finding.culprits]
    run = _run_of(evidence, unread)
    yield from _of_culprits(culprits, evidence, run)
    if first := next((it for it in findings if it.kind in _PARTED and it.culprits), None):
        yield from _entries_of(first, evidence)
    if kinds & {"completion_laggard", "no_mismatch"}:
        hosts = sorted({host for rank in culprits if (host := _host(rank, evidence))})
        shown: list[str | None] = [*hosts[:_SHOWN]]
        for host in shown or [None]:
            why = "XIDs, links and ECC errors" + (f" of {host}" if host else " of the hosts of this group")
            yield NextCommand(why, _on(host, _HARDWARE))
    if any(is_in_code(finding.cause_suspected) for finding in findings):
        yield from _reproduction(None, _script(evidence))
    if not findings:
        if not evidence.dumps:
            yield from meant_instead(unread)
        yield from _logs_of_the_raised(evidence)
        if not (evidence.known and all(map(is_over, evidence.known.values()))):
            yield NextCommand(WHO_STANDS_WHERE, _stacks_at([], run))


def _of_culprits(culprits: Sequence[int], evidence: Evidence, run: str | None) -> Iterator[NextCommand]:
    """Where they stand; of who has ended, what was last heard."""
    for rank in culprits[:_SHOWN]:
        yield from _log_of(rank, evidence)
    if run and any(_ended_unseen(rank, evidence) for rank in culprits):
        yield NextCommand(SAID_AT_END, shlex.join(["train-ledger", "read", run]))
    if unseen := [rank for rank in culprits if _lives_unseen(rank, evidence)]:
        yield _stacks_of(unseen, evidence, run)


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
    return rank not in evidence.stacks and not (known and is_over(known))


def _ended_unseen(rank: int, evidence: Evidence) -> bool:
    """Whether nothing of it runs that could be looked at, and no line of a log is known instead."""
    known = evidence.known.get(rank)
    return known is not None and is_over(known) and known.raised_in is None


def _log_of(rank: int, evidence: Evidence) -> Iterator[NextCommand]:
    """The traceback that ended it, as far as the log shows it."""
    known = evidence.known.get(rank)
    file, _, line = (known.raised_in or "" if known else "").rpartition(":")
    if file and line.isdecimal():
        shown = f"sed -n '{max(1, int(line) - _FRAMES)},{line}p' {shlex.quote(file)}"
        yield NextCommand(f"how rank {rank} came to raise", shown)


def _logs_of_the_raised(evidence: Evidence) -> Iterator[NextCommand]:
    ranks = [rank for rank, it in evidence.known.items() if it.raised_in]
    first = sorted(ranks, key=lambda rank: (not evidence.known[rank].failed_first, rank))
    for rank in first[:1]:
        yield from _log_of(rank, evidence)


def _stacks_of(ranks: Sequence[int], evidence: Evidence, run: str | None) -> NextCommand:
    """Takes those of all ranks of a host, on the hosts of these ranks: the others are what they part from."""
    hosts = sorted({host for rank in ranks if (host := _host(rank, evidence))})
    who = ranks_in_brief(ranks)
    where = "" if hosts else f"; run it on {'its host' if len(ranks) == 1 else 'their hosts'}"
    verb = "stands" if len(ranks) == 1 else "stand"
    return NextCommand(f"where {who} {verb} now, beside the others{where}", _stacks_at(hosts, run))


def _stacks_at(hosts: Sequence[str], run: str | None) -> str:
    words = ["train-ledger", "stacks", *([run] if run else [])]
    if any(map(_is_elsewhere, hosts)):
        words += ["--launcher", "ssh", "--hosts", ",".join(hosts[:_HOSTS])]
    return shlex.join(words)


def _entries_of(finding: Finding, evidence: Evidence) -> Iterator[NextCommand]:
    """What the odd rank and one of the usual recorded in the group, beside each other."""
    usual = sorted({*finding.waiting}.difference(finding.culprits))[:1]
    shown = sorted([*finding.culprits[:_SHOWN], *usual])
    places = dict.fromkeys(_named(dump.file) for rank in shown if (dump := evidence.dumps.get(rank)))
    if not places:
        return
    words = ["train-ledger", "hang", *places, "--entries", "--ranks", ",".join(map(str, shown))]
    group = finding.group.name if finding.group and finding.kind != "cycle" else ""
    if group and "," not in group:
        words += ["--groups", group]
    yield NextCommand("what they recorded before they parted, call by call", shlex.join(words))


def _named(file: str) -> str:
    """The folder of a dump, or the archive that it lies in: "dumps.tar: node1/rank_5"."""
    archive, is_member, _ = file.partition(": ")
    return archive if is_member and Path(archive).is_file() else str(Path(file).parent)


def _on(host: str | None, command: str) -> str:
    return f"ssh {shlex.quote(host)} {shlex.quote(command)}" if host and _is_elsewhere(host) else command


def _is_elsewhere(host: str) -> bool:
    here = socket.gethostname()
    return host not in (here, here.partition(".")[0]) and not host.startswith("-")  # no option of ssh


def _host(rank: int, evidence: Evidence) -> str | None:
    known = evidence.known.get(rank)
    dump = evidence.dumps.get(rank)
    return (known.host if known else None) or (dump.host if dump else None)


def _run_of(evidence: Evidence, others: Sequence[str]) -> str | None:
    """The run directory that the dumps lie in, where they lie in one that knows its ranks."""
    for file in [*(dump.file for dump in evidence.dumps.values()), *others]:
        for folder in Path(file).parents:
            if folder.name == "comm_traces" and (folder.parent / "signals").is_dir():
                return str(folder.parent)
    return None
