"""May the node be left out and the run be restarted, with nobody awake?

By the verdict, the state and the table of moves alone. A node is left out only where its own hardware is to
blame for certain, a run restarted only where a restart goes by itself: never where one has not helped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from train_ledger.config import Respond
from train_ledger.ledger import RunState
from train_ledger.ledger.transitions import restarts_by_itself

__all__ = ["HOOKS", "Decision", "Done", "Hook", "decide", "in_words"]

Hook = Literal["exclude", "restart"]

HOOKS: tuple[Hook, ...] = ("exclude", "restart")

_OF_THE_NODE = ("hardware.", "slow.straggler.clock", "slow.straggler.link")
_ENDED_BY_A_RESTART = ("hang.", "hardware.")
_TROUBLED = ("stalled", "hardware_fault")
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}\Z")


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a hook acts now, waits, or does not act on this verdict, and why."""

    hook: Hook
    does: Literal["act", "wait", "withheld"]
    why: str


@dataclass(frozen=True, slots=True)
class Done:
    """What was done about an incident: `exit_codes` of the hooks that ended, None of one that did not end."""

    begun: frozenset[str] = frozenset()
    exit_codes: Mapping[str, int | None] | None = None


def decide(
    config: Respond,
    diagnosis: Mapping[str, Any],
    state: RunState,
    verdict_t: float,
    done: Done | None = None,
) -> Iterator[Decision]:
    """What each configured hook that has not acted yet does about a verdict, which was found at `verdict_t`.

    `diagnosis` is an `answer.Diagnosis` as JSON values, `state` the run now.
    """
    done = done or Done()
    leave_out = _exclude(diagnosis, state)
    if config.exclude_command and "exclude" not in done.begun:
        yield leave_out
    if config.restart_command and "restart" not in done.begun:
        needs = leave_out if config.exclude_command else None
        yield _restart(diagnosis, state, verdict_t, needs, done, dry_run=config.dry_run)


def _exclude(diagnosis: Mapping[str, Any], state: RunState) -> Decision:
    cause, hosts = str(diagnosis.get("cause")), list(diagnosis.get("hosts") or ())
    if state.finished:
        return Decision("exclude", "withheld", "the run is finished")
    if not hosts:
        return Decision("exclude", "withheld", "the verdict names no node")
    if not cause.startswith(_OF_THE_NODE):
        return Decision("exclude", "withheld", f"{cause} is not known to be the fault of a node")
    if diagnosis.get("confidence") != "high":
        return Decision("exclude", "withheld", f"the confidence is {diagnosis.get('confidence')}")
    if len(hosts) > 1:
        return Decision("exclude", "withheld", f"it names {len(hosts)} nodes at once: a person decides")
    if not _NODE.match(str(hosts[0])):
        return Decision("exclude", "withheld", "what it names is no name of a node")
    return Decision("exclude", "act", f"{cause} on {hosts[0]}, confidence high")


def _restart(
    diagnosis: Mapping[str, Any],
    state: RunState,
    verdict_t: float,
    leave_out: Decision | None,
    done: Done,
    *,
    dry_run: bool,
) -> Decision:
    if (reason := _no_restart(diagnosis, state)) is not None:
        return Decision("restart", "withheld", reason)
    cause = str(diagnosis.get("cause"))
    if leave_out is not None and cause.startswith("hardware."):
        held_up = _held_up(leave_out, done, dry_run=dry_run)
        if held_up is not None:
            return held_up
    saved_t = max(state.checkpoints.saved_t, default=None)
    if state.state == "hardware_fault" and (saved_t is None or saved_t < verdict_t):
        return Decision("restart", "wait", "steps go on: behind the next checkpoint nothing is lost by it")
    return Decision("restart", "act", f"{cause}, and the run is {state.state}")


def _no_restart(diagnosis: Mapping[str, Any], state: RunState) -> str | None:
    cause = str(diagnosis.get("cause"))
    if state.finished:
        return "the run is finished"
    if state.state == "restarting":
        return "it is being restarted already"
    if not restarts_by_itself(state.state):
        return f"out of {state.state} a person starts the run"
    if state.state not in _TROUBLED:
        return f"the run is {state.state}"
    if not cause.startswith(_ENDED_BY_A_RESTART):
        return f"of {cause} it is not known that a restart ends it"
    if diagnosis.get("confidence") != "high":
        return f"the confidence is {diagnosis.get('confidence')}"
    return None


def _held_up(leave_out: Decision, done: Done, *, dry_run: bool) -> Decision | None:
    """Where a node failed, the run is restarted without it or not at all."""
    if "exclude" not in done.begun and leave_out.does == "withheld":
        return Decision("restart", "withheld", f"the node was not left out: {leave_out.why}")
    if dry_run:
        return None
    codes = done.exit_codes or {}
    if "exclude" not in codes:
        return Decision("restart", "wait", "the node is being left out first")
    if codes["exclude"] is None:
        return Decision("restart", "withheld", "it is not known that the node was left out")
    if codes["exclude"] != 0:
        return Decision("restart", "withheld", "leaving the node out has failed")
    return None


def in_words(decision: Decision, *, dry_run: bool) -> str:
    """One line for people.

    >>> in_words(Decision("restart", "act", "hang.host, and the run is stalled"), dry_run=True)
    'restart_command would be run now, but for dry_run: hang.host, and the run is stalled'
    """
    command = f"{decision.hook}_command"
    if decision.does == "act":
        said = "would be run now, but for dry_run" if dry_run else "is run"
    else:
        said = "waits" if decision.does == "wait" else "is not run"
    return f"{command} {said}: {decision.why}"
