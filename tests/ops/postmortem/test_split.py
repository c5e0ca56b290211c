"""Into which parts a recovery falls, and what stays unknown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.answer import Diagnosis
from train_ledger.ledger.accounts import PARTS, Accounts, Interruption, Recovery
from train_ledger.ledger.notes import Note
from train_ledger.ops.postmortem.incident import Happened, Incident
from train_ledger.ops.postmortem.split import split

T = 1_800_000_000.0


def incident(*happened: tuple[str, float, dict[str, Any]], since_t: float | None = T) -> Incident:
    found = Diagnosis("stalled", "hang.host", since_t=since_t, since_step=41)
    verdict = Happened("verdict", T + 99, {}, 1, found)
    told = [Happened(kind, t, entry, 2) for kind, t, entry in happened]
    return Incident("i1", (*told, verdict), is_closed=False)


def accounts(*recoveries: Recovery) -> Accounts:
    return Accounts("r42", T - 1000, T + 9000, {}, recoveries=recoveries)


def recovery(over_t: float | None = T + 4000, t: float = T, **parts_s: float) -> Recovery:
    return Recovery(
        Interruption(t, 0, 41), 1, t, first_step_t=t + 3000, over_t=over_t, redone_steps=9, parts_s=parts_s
    )


def state(name: str, t: float) -> tuple[str, float, dict[str, Any]]:
    return "state_changed", t, {"state": name, "attempt": 1}


def test_by_the_journal_alone() -> None:
    found = split(
        incident(
            ("alert_fired", T + 100, {}),
            ("response_done", T + 110, {}),
            ("notification_intended", T + 111, {}),
            state("restarting", T + 1000),
            state("recovering", T + 1500),
            state("running", T + 2500),
        ),
        [Note(T + 500, "restarted", "ada", "h", T + 500, decision=True)],
        None,
    )
    assert found.parts_s == {
        "detect": 100,
        "dump": 10,
        "decide": 390,
        "restart": 500,
        "load": None,
        "redo": None,
    }
    assert (found.down_s, found.redo_s, found.whole_s) == (1500, 1000, 2500)
    assert found.redone_steps is None


def test_the_accounts_fill_in_what_the_journal_does_not_say() -> None:
    told = incident(("alert_fired", T + 100, {}))
    own = recovery(detect=90.0, dump=60.0, decide=850.0, restart=500.0, load=500.0, redo=2000.0)
    found = split(told, [], accounts(own))
    assert found.marks == {
        "noticed": T + 100,
        "dumped": T + 150,
        "decided": T + 1000,
        "started": T + 1500,
        "loaded": T + 2000,
        "over": T + 4000,
    }
    assert (found.down_s, found.redone_steps) == (3000, 9)


def test_parts_are_known_from_the_end_back_where_the_beginning_is_not() -> None:
    found = split(incident(), [], accounts(recovery(load=400.0, redo=1000.0)))
    assert found.parts_s["redo"] == 1000
    assert found.parts_s["load"] == 400
    assert found.parts_s["detect"] is None


def test_a_run_that_is_not_back_yet() -> None:
    found = split(incident(("alert_fired", T + 100, {})), [], accounts(recovery(over_t=None)))
    assert (found.parts_s["detect"], found.whole_s, found.redo_s) == (100, None, None)


def test_of_several_interruptions_in_one_incident_the_last_ends_it() -> None:
    found = split(incident(), [], accounts(recovery(over_t=None), recovery(T + 9000, T + 5000)))
    assert (found.whole_s, found.redone_steps) == (9000, 18)


def test_what_the_run_got_done_between_two_interruptions_is_not_lost() -> None:
    first, second = recovery(T + 4000, redo=1000.0), recovery(T + 24_000, T + 20_000, redo=1000.0)
    found = split(incident(), [], accounts(first, second))
    assert (found.down_s, found.redo_s, found.whole_s) == (6000, 2000, 8000)
    assert (found.over_t, found.marks["over"], found.parts_s["redo"]) == (T + 24_000, T + 4000, 1000)


def test_a_recovery_from_before_the_incident_is_none_of_it() -> None:
    assert split(incident(), [], accounts(recovery(t=T - 5000))).recoveries == ()


def test_nothing_is_known_where_no_verdict_says_since_when() -> None:
    found = split(incident(since_t=None), [], None)
    assert set(found.parts_s.values()) == {None}
    assert found.whole_s is None


def test_running_before_any_restart_is_not_the_end_of_it() -> None:
    on_the_way = ("state_changed", T + 50, {"state": "running", "attempt": 0})
    assert split(incident(on_the_way), [], None).over_t is None


@given(st.lists(st.tuples(st.sampled_from(PARTS), st.floats(0, 1e5)), max_size=6), st.floats(-1e4, 1e5))
def test_no_part_is_negative_and_known_parts_never_exceed_the_whole(
    lengths: list[tuple[str, float]], noticed_s: float
) -> None:
    told = incident(("alert_fired", T + noticed_s, {}))
    found = split(told, [], accounts(recovery(**dict(lengths))))
    known = [it for it in found.parts_s.values() if it is not None]
    assert all(it >= 0 for it in known)
    if None not in found.parts_s.values():
        assert sum(known) == pytest.approx(found.whole_s)


def test_the_keepers_own_restart_is_the_decision() -> None:
    hook = ("hook_decided", T + 300, {"hook": "restart", "does": "act", "dry_run": False})
    dry = ("hook_decided", T + 200, {"hook": "restart", "does": "act", "dry_run": True})
    assert split(incident(dry, hook), [], None).marks["decided"] == T + 300


def test_first_answers_without_dumps_end_no_part() -> None:
    told = incident(
        ("alert_fired", T + 100, {}),
        ("response_started", T + 100, {"on_page": ["diagnose"]}),
        ("response_done", T + 110, {}),
    )
    assert split(told, [], None).parts_s["dump"] is None


def test_what_the_keeper_found_of_the_way_back() -> None:
    checked = {"redone_steps": 300, "loss_joins_on": False, "data_agrees": True}
    found = split(incident(("recovered", T + 900, {"recovery": checked})), [], None)
    assert (found.redone_steps, found.loss_joins_on, found.data_agrees) == (300, False, True)
    odd = split(
        incident(("recovered", T + 900, {"recovery": {"redone_steps": "x", "data_agrees": 5}})), [], None
    )
    assert (odd.redone_steps, odd.data_agrees) == (None, None)


def test_a_decision_behind_the_restart_is_that_of_another_incident() -> None:
    told = incident(
        ("alert_fired", T + 100, {}), ("response_done", T + 110, {}), state("restarting", T + 1000)
    )
    later = Note(T + 90_000, "restarted", "ada", "h", T + 90_000, decision=True)
    assert split(told, [later], None).parts_s["decide"] is None
    own = Note(T + 500, "restarted", "ada", "h", T + 500, decision=True)
    assert split(told, [own, later], None).parts_s["decide"] == 390


def test_what_came_before_the_first_step_is_no_load_where_none_was_told() -> None:
    told = incident(("alert_fired", T + 100, {}), state("restarting", T + 2000))
    found = split(told, [], accounts(recovery(redo=1000.0)))
    assert (found.parts_s["load"], found.parts_s["redo"]) == (None, 1000)
    found = split(told, [], accounts(recovery(load=700.0, redo=1000.0)))
    assert (found.parts_s["load"], found.parts_s["redo"]) == (1000, 1000)
