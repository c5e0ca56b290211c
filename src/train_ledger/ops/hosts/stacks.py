"""What do the hosts that a launcher reached say of their ranks' stacks?

Each answers as `train-ledger stacks --json --full` does, perhaps after a greeting of its own. One that does
not is listed with the reason. Hosts of different jobs are not merged, and of two hosts that claim one rank
the first is believed and the other listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from train_ledger.answer import Unreadable
from train_ledger.hang import RankStack
from train_ledger.hang.dumps.pickles import RefusedError
from train_ledger.hang.stacks.rank_sections import OwnStacks, of_ourselves
from train_ledger.ops.hosts import HostsError
from train_ledger.ops.hosts.launch import Launcher, Outcome, answer_line, launch
from train_ledger.run_dir import write_atomically
from train_ledger.sources.processes.rank_processes import Job

__all__ = ["HostStacks", "of_hosts"]

_MOST_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class HostStacks:
    """The stacks of all hosts by rank, what was not read, and what tells their job from others."""

    found: Mapping[int, RankStack]
    unread: tuple[Unreadable, ...]
    job: Mapping[str, str]


def of_hosts(
    launcher: Launcher,
    hosts: Sequence[str],
    command: Sequence[str],
    *,
    save: Path | None,
    timeout_s: float,
    at_once: int,
) -> HostStacks:
    """Run `command` on all hosts and merge what they say; raises HostsError for several jobs."""
    answers: dict[str, OwnStacks] = {}
    unread: dict[str, Unreadable] = {}
    outcomes = launch(launcher, hosts, command, timeout_s=timeout_s, at_once=at_once, most_bytes=_MOST_BYTES)
    for outcome in outcomes:
        said = _said(outcome)
        if isinstance(said, OwnStacks):
            answers[outcome.host] = said
            if save and (line := answer_line(outcome.output)):
                write_atomically(save / f"{outcome.host}.json", line)
        else:
            unread[outcome.host] = Unreadable(outcome.host, said)
    in_order = {host: answers[host] for host in hosts if host in answers}
    job = _one_job(in_order)
    found, beside = _merged(in_order)
    silent = [unread[host] for host in hosts if host in unread]
    return HostStacks(found, (*silent, *beside), job)


def _said(outcome: Outcome) -> OwnStacks | str:
    """What a host said, or why that is nothing."""
    line = answer_line(outcome.output)
    if line is None:
        return outcome.why or f"it answered, but no stacks: {_beginning(outcome.output)}"
    try:
        return of_ourselves(line)
    except RefusedError as error:
        return outcome.why or str(error)


def _beginning(output: bytes) -> str:
    text = output[:200].decode("utf-8", "replace").strip()
    return repr(text) if text else "nothing at all"


def _one_job(answers: Mapping[str, OwnStacks]) -> dict[str, str]:
    """The job whose ranks all these hosts run; {} where they do not say."""
    hosts: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for host, said in answers.items():
        if said.stacks and said.job:
            hosts.setdefault(tuple(sorted(said.job.items())), []).append(host)
    if len(hosts) > 1:
        listed = "; ".join(f"{_job(it)} on {', '.join(some[:4])}" for it, some in list(hosts.items())[:8])
        raise HostsError(
            f"the hosts run {len(hosts)} jobs, which are not mixed; name one with --job – {listed}"
        )
    return dict(next(iter(hosts), ()))


def _job(items: tuple[tuple[str, str], ...]) -> Job:
    told = dict(items).get
    return Job(told("run_id", ""), told("master", ""), told("slurm", ""))


def _merged(answers: Mapping[str, OwnStacks]) -> tuple[dict[int, RankStack], list[Unreadable]]:
    found: dict[int, RankStack] = {}
    told_by: dict[int, str] = {}
    unread = []
    for host, said in answers.items():
        unread += [Unreadable(f"{host}: {it.file}", it.why) for it in said.unread]
        if not said.stacks and not said.unread:
            unread.append(Unreadable(host, "it has no rank of this job"))
        for stack in said.stacks:
            if stack.rank in found:
                unread.append(Unreadable(f"{host}: rank {stack.rank}", f"is on {told_by[stack.rank]}, too"))
            else:
                found[stack.rank], told_by[stack.rank] = stack, host
    return dict(sorted(found.items())), unread
