"""What does a person type next about a run that is slow?

The cheapest look first: figures are there already, then a stack, then a profile. Of a rank that drags the
same is asked of a peer, since only the difference says something.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from train_ledger.answer import Diagnosis, NextCommand, SlowAnswer
from train_ledger.ledger import RunState
from train_ledger.ops.commands import look_at_rank
from train_ledger.ops.hosts import is_host
from train_ledger.ops.slow.straggler_control import straggler_port
from train_ledger.run_dir import RunDir

__all__ = ["slow_commands"]

_CLOCKS = "nvidia-smi -i {} -q -d CLOCK,PERFORMANCE,TEMPERATURE,POWER"
_LINKS = "nvidia-smi nvlink -e -i {}; nvidia-smi -i {} -q -d PCIE; ibstat"
_MOST_RANKS = 2


def slow_commands(
    run_dir: RunDir, state: RunState, found: Diagnosis, answer: SlowAnswer
) -> tuple[NextCommand, ...]:
    """In the order of their cost; empty where nothing is wrong."""
    if found.cause == "none":
        return ()
    is_over = state.state in ("finished", "stopped")
    looks = () if is_over else (*_at_cards(state, found), *_at_ranks(state, found, answer))
    profiles = () if is_over or not state.ranks or state.by_logs else tuple(_profiles(run_dir, found, answer))
    remedies = (*_of_cause(run_dir, state, found), *_detector(run_dir, state, is_over), *_mend(found, answer))
    return tuple(dict.fromkeys((*looks, *remedies, *profiles)))


def _at_cards(state: RunState, found: Diagnosis) -> Iterator[NextCommand]:
    """The state of the culprits' GPUs now; of steps that nothing explains, of one of them."""
    if not found.cause.startswith("slow.straggler") and found.cause != "unknown":
        return
    look = _LINKS if found.cause.endswith(".link") else _CLOCKS
    first = [min(state.ranks)] if found.cause == "unknown" and state.ranks else []
    for rank in found.ranks[:_MOST_RANKS] or first:
        known = state.ranks.get(rank)
        name = known and (known.uuid or known.pci or (None if known.gpu is None else str(known.gpu)))
        if known is None or not name or not known.host or not is_host(known.host):
            continue
        command = look.replace("{}", shlex.quote(name))
        yield NextCommand(
            f"the GPU of rank {rank} now", f"ssh {shlex.quote(known.host)} {shlex.quote(command)}"
        )


def _at_ranks(state: RunState, found: Diagnosis, answer: SlowAnswer) -> Iterator[NextCommand]:
    """The stack of a culprit and of a peer; where nobody is to blame, of the first rank."""
    if found.ranks:
        yield from (it for rank in found.ranks[:_MOST_RANKS] for it in look_at_rank(state, rank))
        yield from (it for rank in answer.victims[:1] for it in look_at_rank(state, rank))
    elif (
        found.cause in ("unknown", "slow.data", "slow.logging", "slow.host_memory", "slow.gc") and state.ranks
    ):
        yield from look_at_rank(state, min(state.ranks))


def _profiles(run_dir: RunDir, found: Diagnosis, answer: SlowAnswer) -> Iterator[NextCommand]:
    here = shlex.quote(str(run_dir.path))
    pair = [*found.ranks[:1], *answer.victims[:1]] if found.ranks else [0]
    ranks = ",".join(str(rank) for rank in pair)
    if found.cause == "slow.fragmentation":
        yield NextCommand(
            "where the memory comes from", f"train-ledger ask {here} memory_snapshot --ranks {ranks}"
        )
    who = "of that rank and of a peer" if found.ranks else "of a rank"
    yield NextCommand(
        f"a profile {who}, to be compared with an earlier one by train-ledger trace diff",
        f"train-ledger ask {here} profile --ranks {ranks}",
    )


def _of_cause(run_dir: RunDir, state: RunState, found: Diagnosis) -> Iterator[NextCommand]:
    logs = shlex.quote(str(run_dir.path / "logs"))
    if found.cause == "slow.logging":
        count = f"cat {logs}/*/*/* 2>/dev/null | cut -c1-80 | sort | uniq -c | sort -rn | head"
        yield NextCommand("which lines the log is full of", count)
    elif found.cause == "slow.checkpoint":
        yield NextCommand("is the storage full, or slow?", "df -h; iostat -x 1 3")
    elif found.cause == "slow.host_memory":
        yield NextCommand(
            "which processes hold the memory, and whether the host swaps", "free -g; vmstat 1 3"
        )
    elif found.cause == "slow.communication":
        yield NextCommand(
            "do ports count errors?", "ibstat; grep . /sys/class/infiniband/*/ports/*/counters/*err*"
        )


def _detector(run_dir: RunDir, state: RunState, is_over: bool) -> Iterator[NextCommand]:
    """Megatron's own StragglerDetector, where its log shows how to reach it."""
    folders = [it for it in run_dir.log_folders() if it.is_dir()]
    port = straggler_port(path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file())
    if port is None or is_over:
        return
    first = state.ranks.get(0)
    host = first.host if first and first.host and is_host(first.host) else "localhost"
    why = "Megatron's StragglerDetector, on or off: it logs the slowest ranks, their clocks and their power"
    yield NextCommand(why, f"curl {shlex.quote(host)}:{port}")


def _mend(found: Diagnosis, answer: SlowAnswer) -> Iterator[NextCommand]:
    if found.cause == "slow.fragmentation":
        yield NextCommand(
            answer.remedy or "before the next start",
            "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        )
