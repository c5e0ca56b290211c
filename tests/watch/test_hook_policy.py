"""When a node may be left out and a run restarted with nobody awake."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from train_ledger.answer import STATES
from train_ledger.config import Respond
from train_ledger.ledger import Checkpoints, RunState
from train_ledger.watch.hook_policy import Decision, Done, decide

T = 1_764_000_000.0
BOTH = Respond(exclude_command=("exclude",), restart_command=("restart",), dry_run=False)
STALLED = RunState("r42", T, state="stalled")
XID = {"cause": "hardware.xid", "confidence": "high", "hosts": ["node037"], "ranks": [293]}
HOST_CODE = {"cause": "hang.host", "confidence": "high", "hosts": ["node001"], "ranks": [3]}


def does(
    diagnosis: dict[str, Any], state: RunState = STALLED, config: Respond = BOTH, done: Done | None = None
) -> dict[str, str]:
    return {it.hook: it.does for it in decide(config, diagnosis, state, T, done)}


def why(diagnosis: dict[str, Any], hook: str, state: RunState = STALLED) -> Decision:
    return next(it for it in decide(BOTH, diagnosis, state, T) if it.hook == hook)


def test_what_is_not_configured_is_not_decided_on() -> None:
    assert does(XID, config=Respond()) == {}


def test_a_failed_gpu_leaves_its_node_out_first_and_restarts_behind_that() -> None:
    assert does(XID) == {"exclude": "act", "restart": "wait"}
    begun = frozenset({"exclude"})
    assert does(XID, done=Done(begun, {})) == {"restart": "wait"}
    assert does(XID, done=Done(begun, {"exclude": 0})) == {"restart": "act"}
    assert does(XID, done=Done(begun, {"exclude": 1})) == {"restart": "withheld"}
    assert does(XID, done=Done(begun, {"exclude": None})) == {"restart": "withheld"}


@pytest.mark.parametrize(("code", "said"), [(None, "it is not known"), (1, "has failed")])
def test_of_a_hook_whose_end_nobody_saw_it_is_not_said_that_it_failed(code: int | None, said: str) -> None:
    config = Respond(exclude_command=("leave",), restart_command=("again",), dry_run=False)
    done = Done(frozenset({"exclude"}), {"exclude": code})
    (decision,) = decide(config, XID, STALLED, T, done)
    assert decision.does == "withheld"
    assert said in decision.why


def test_each_acts_once() -> None:
    assert does(XID, done=Done(frozenset({"exclude", "restart"}), {"exclude": 0, "restart": 0})) == {}


def test_a_node_is_not_left_out_for_what_its_code_does() -> None:
    assert does(HOST_CODE) == {"exclude": "withheld", "restart": "act"}
    assert why(HOST_CODE, "exclude").why == "hang.host is not known to be the fault of a node"


@pytest.mark.parametrize(
    "change",
    [
        {"confidence": "medium"},
        {"hosts": []},
        {"hosts": ["node001", "node002"]},
        {"hosts": ["node001; reboot"]},
        {"hosts": ["-rf"]},
        {"cause": "unknown"},
        {"cause": "none"},
    ],
)
def test_without_certainty_nothing_is_done(change: dict[str, Any]) -> None:
    assert does({**XID, **change}) == {"exclude": "withheld", "restart": "withheld"}


@pytest.mark.parametrize("state", [it for it in STATES if it not in ("stalled", "hardware_fault")])
def test_a_run_is_restarted_only_out_of_states_that_a_restart_ends(state: str) -> None:
    run = replace(STALLED, state=state, finished=state == "finished")
    assert does(HOST_CODE, run)["restart"] == "withheld"


@pytest.mark.parametrize("state", ["escalated", "stopped", "numeric_fault"])
def test_where_a_restart_did_not_help_a_person_decides(state: str) -> None:
    assert why(XID, "restart", replace(STALLED, state=state)).why == f"out of {state} a person starts the run"


def test_steps_that_go_on_are_saved_before_the_restart() -> None:
    saved = Checkpoints(saved_step=100, saved_t=(T - 10,))
    goes_on = replace(STALLED, state="hardware_fault", checkpoints=saved)
    done = Done(frozenset({"exclude"}), {"exclude": 0})
    assert does(XID, goes_on, done=done) == {"restart": "wait"}
    again = replace(goes_on, checkpoints=Checkpoints(saved_step=200, saved_t=(T - 10, T + 50)))
    assert does(XID, again, done=done) == {"restart": "act"}


def test_a_slow_node_is_left_out_and_the_restart_is_left_to_people() -> None:
    slow = {**XID, "cause": "slow.straggler.clock"}
    assert does(slow, replace(STALLED, state="running")) == {"exclude": "act", "restart": "withheld"}


def test_a_dry_run_says_all_that_would_be_done() -> None:
    assert does(XID, config=replace(BOTH, dry_run=True)) == {"exclude": "act", "restart": "act"}
