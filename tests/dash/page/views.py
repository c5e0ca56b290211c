"""Views of the page, as a keeper would hand them over."""

from __future__ import annotations

from dataclasses import replace

from dash.states import T0, running, with_rank
from train_ledger.answer import (
    Diagnosis,
    Finding,
    Group,
    HangAnswer,
    Impact,
    NextCommand,
    RuledOut,
    to_json,
)
from train_ledger.dash.incident import Incident, Incidents
from train_ledger.dash.judge import Alert, Transition
from train_ledger.dash.page import PageView
from train_ledger.ledger.state import Checkpoints

HOSTILE = "<script>alert('host')</script>"


def healthy() -> PageView:
    return PageView(running(t=T0 + 500))


def stall() -> Alert:
    summary = "r42: no step completed for 97 s (limit 90 s); the last was step 51300, attempt 0"
    return Alert("TrainingStepStalled", "page", {"run": "r42"}, T0 + 4990, summary, 97.0)


def incident() -> Incident:
    (opened,) = Incidents().apply([Transition("fired", stall(), T0 + 4990)], T0 + 4990)
    return opened.incident


def diagnosis(ranks: int = 8, culprit: int = 5) -> Diagnosis:
    others = tuple(rank for rank in range(ranks) if rank != culprit)
    group = Group("0", "default_pg", tuple(range(ranks)))
    finding = Finding(
        "missing_ranks",
        (culprit,),
        group,
        2891,
        "all_reduce",
        waiting=others,
        frame="train.py:88 _check_batch",
        evidence=(f"rank {culprit} stands at 2890 of group default_pg; the others are at 2891",),
    )
    details = HangAnswer(
        "hang", (culprit,), "high", "missing_ranks", 2891, "all_reduce", group, (finding,), {culprit: others}
    )
    return Diagnosis(
        state="stalled",
        cause="hang.host",
        ranks=(culprit,),
        hosts=("node0",),
        confidence="high",
        since_t=T0 + 4903,
        impact=Impact(97.0, 0.22),
        evidence=("no step completed since 51300",),
        ruled_out=(RuledOut("hang.fabric", f"rank {culprit} never came to the collective"),),
        not_observed=("dcgm: no exporter was reached",),
        next=(NextCommand(f"see what rank {culprit} waits for", "py-spy dump --pid 1005 && echo '<done>'"),),
        details=details,
    )


def hung(ranks: int = 8, culprit: int = 5) -> PageView:
    """A run whose `culprit` stands in its loader, with the verdict; its host has a hostile name."""
    state = running(
        t=T0 + 5000, ranks=ranks, step=51300, last_step_t=T0 + 4903, state="stalled", since_t=T0 + 4990
    )
    state = with_rank(state, culprit, host=HOSTILE, phase="data", step=51299)
    state = replace(
        state, checkpoints=Checkpoints(saved_step=51000, saved_t=(T0 + 1400,), durations_s=(44.0,))
    )
    journal = (
        {"t": T0, "kind": "keeper_started", "host": "login1"},
        {"t": T0 + 4990, "kind": "alert_fired", "summary": stall().summary},
        {
            "t": T0 + 4999,
            "kind": "verdict",
            "incident": incident().id,
            "diagnosis": to_json(diagnosis(ranks, culprit)),
        },
    )
    return PageView(state, (stall(),), (incident(),), diagnosis(ranks, culprit), journal, ("3 × not JSON",))
