"""What does a person type next?

Commands with this run's own paths, hosts and process ids filled in, in the order in which they help. Nothing
is invented: what the run did not tell is not put into a command.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from train_ledger.answer import Diagnosis, NextCommand
from train_ledger.hang import SAID_AT_END, meant_instead
from train_ledger.ledger import RankState, RunState
from train_ledger.ops.contacts import contacts_of
from train_ledger.ops.hosts import is_host
from train_ledger.ops.seen import Seen
from train_ledger.render import harmless
from train_ledger.run_dir import RunDir

__all__ = ["look_at_rank", "next_commands"]

_SIGNALS = "signals"
_MOST_RUNS = 3
_MOST_HOSTS = 8
_MOST_CONTACTS = 3
_OF_HOSTS = ("hardware.", "hang.gpu_stuck", "slow.straggler.clock", "slow.straggler.link")
_MAIL = re.compile(r"[\w.+-]{1,64}@[A-Za-z0-9][A-Za-z0-9.-]{0,200}")


def next_commands(seen: Seen, diagnosis: Diagnosis) -> tuple[NextCommand, ...]:
    """What to run next for a diagnosis; empty where nothing is wrong."""
    run_dir, run, state = seen.run_dir, seen.run, seen.state
    if diagnosis.cause == "none":
        return ()
    misplaced = () if state.ranks or diagnosis.cause != "unknown" else _meant_instead(run_dir.path)
    last = () if any(it.command == run.get("restart_command") for it in diagnosis.next) else _restart(run)
    exclude = _exclude(run, diagnosis)
    return (*misplaced, *_look(run_dir, state, diagnosis), *exclude, *last, *_tell(seen, diagnosis))


def _meant_instead(folder: Path) -> Iterable[NextCommand]:
    """Where no rank wrote a line: the run above this folder or below it, or dumps and logs in it."""
    try:
        near = (folder.resolve().parent, *sorted(folder.iterdir()))
    except OSError:
        return
    runs = [it for it in near if os.path.isdir(it / _SIGNALS)]  # False, too, where one may not look
    for run in runs[-_MOST_RUNS:]:
        yield NextCommand("that is a run directory", f"train-ledger diagnose {shlex.quote(str(run))}")
    yield from meant_instead([str(folder)])


def _look(run_dir: RunDir, state: RunState, diagnosis: Diagnosis) -> Iterable[NextCommand]:
    here = shlex.quote(str(run_dir.path))
    if diagnosis.cause.startswith("hang."):
        if diagnosis.cause == "hang.rank_died":
            yield NextCommand(SAID_AT_END, f"train-ledger read {here}")
        else:
            for rank in diagnosis.ranks[:4]:
                yield from look_at_rank(state, rank)
        yield NextCommand("every group, rank and evidence line of the hang", _hang(run_dir, state, here))
    if diagnosis.cause in ("hang.fabric", "hang.gpu_stuck"):
        yield NextCommand(
            "a GPU or link fault would stand in the kernel log of each host",
            "journalctl -k -o short-unix | grep -i xid",
        )
    if diagnosis.cause == "hardware.xid" and not diagnosis.next:
        for host in filter(is_host, diagnosis.hosts[:2]):
            look = "nvidia-smi -q -d ECC,PERFORMANCE,ROW_REMAPPER; sudo dmesg -T | grep -i xid"
            yield NextCommand(f"the GPUs of {host} now", f"ssh {shlex.quote(host)} {shlex.quote(look)}")
    if diagnosis.cause == "restart_loop":
        yield NextCommand(SAID_AT_END, f"train-ledger read {here}")
    if diagnosis.cause == "checkpoint_failing":
        yield NextCommand("is the storage full?", "df -h")
    if diagnosis.cause == "numeric.nan":
        rank = diagnosis.ranks[0] if diagnosis.ranks else 0
        signals = shlex.quote(str(run_dir.signals_of(rank)))
        yield NextCommand("loss and gradient norm of the steps before it", f"tail -n 120 {signals}")


def _hang(run_dir: RunDir, state: RunState, here: str) -> str:
    """The run's latest attempt is what the verb takes by itself; an earlier one is named."""
    if not run_dir.comm_traces(state.attempt + 1).is_dir():
        return f"train-ledger hang --run {here}"
    traces = shlex.quote(str(run_dir.comm_traces(state.attempt)))
    stacks = shlex.quote(str(run_dir.stacks(state.attempt)))
    return f"train-ledger hang {traces} --stacks {stacks} --run {here}"


def look_at_rank(state: RunState, rank: int) -> Iterable[NextCommand]:
    """The stack of a rank now; nothing where it has no process any more, or none that is known."""
    it = state.ranks.get(rank)
    if it is None or it.pid is None or _is_over(state, it):
        return
    command = f"py-spy dump --pid {it.pid}"
    if it.host and it.host != socket.gethostname():
        if not is_host(it.host):  # ssh would take it for an option
            return
        command = f"ssh {shlex.quote(it.host)} {command}"
    yield NextCommand(f"where rank {rank} stands now", command)


def _is_over(state: RunState, rank: RankState) -> bool:
    """Whether there is no process of it left to look at."""
    has_ended = rank.gone_t is not None or rank.ended or rank.exception is not None or rank.signal is not None
    return has_ended or state.state in ("stopped", "finished")


def _exclude(run: Mapping[str, Any], diagnosis: Diagnosis) -> Iterable[NextCommand]:
    """Hosts whose hardware is the cause are not used again; those of a rank that raised may be well."""
    file = run.get("exclude_file")
    if isinstance(file, str) and file and diagnosis.cause.startswith(_OF_HOSTS):
        for host in filter(is_host, diagnosis.hosts[:_MOST_HOSTS]):
            yield NextCommand(
                f"leave {host} out of the next start", f"echo {shlex.quote(host)} >> {shlex.quote(file)}"
            )


def _tell(seen: Seen, diagnosis: Diagnosis) -> Iterable[NextCommand]:
    """Who is to be told, as run.json names them."""
    for role, who in _contacts(seen.run):
        name = harmless(who, longest=120)
        about = f"train-ledger diagnose {shlex.quote(str(seen.run_dir.path))}"
        if _MAIL.fullmatch(who):
            subject = shlex.quote(f"{seen.run_dir.name_in(seen.run)}: {diagnosis.cause}")
            yield NextCommand(f"tell {role}", f"{about} | mail -s {subject} {shlex.quote(who)}")
        else:
            yield NextCommand(f"tell {role}: {name}", about)


def _contacts(run: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """(role, who) of the first few."""
    named = ((it.role or "who is on call", who) for it in contacts_of(run) for who in it.names)
    return ((harmless(role, longest=60), who) for role, who in islice(named, _MOST_CONTACTS))


def _restart(run: Mapping[str, Any]) -> Iterable[NextCommand]:
    command = run.get("restart_command")
    if isinstance(command, str) and command:
        yield NextCommand("restart, once the evidence is saved", command)
