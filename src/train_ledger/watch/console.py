"""What does the person in front of the terminal read while a run is watched?

One line for each thing that happens, as a sentence or, for scripts, as the journal's own JSON. The verdict
is shown whole.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from train_ledger.answer import STATES, Diagnosis
from train_ledger.render import Picture, as_text, harmless, wants_colour
from train_ledger.watch.hook_policy import Decision, in_words
from train_ledger.watch.recovery_words import recovery_in_words

__all__ = ["Console"]

Entry = Mapping[str, Any]

_TAKEN = {"dump": "Flight Recorder", "stacks": "stacks"}


@dataclass(frozen=True, slots=True)
class Console:
    """Tells entries of the journal through `out`, one call a line or block."""

    out: Callable[[str], None]
    as_json: bool = False
    currency: str = ""

    def tell(self, entry: Entry) -> None:
        """Say one entry; kinds that are of no interest to a person are not said."""
        if self.as_json:
            self.out(json.dumps(entry))
        elif sentence := _SENTENCES.get(str(entry.get("kind"))):
            self.out(f"{_clock(entry.get('t'))}  {harmless(sentence(entry))}")

    def show(self, diagnosis: Diagnosis, picture: Picture | None = None) -> None:
        """The verdict in full (for scripts it is in the entry already)."""
        if not self.as_json:
            self.out("")
            colour = wants_colour(sys.stdout)
            self.out(as_text(diagnosis, colour=colour, currency=self.currency, picture=picture))

    def remark(self, text: str) -> None:
        """Something that is not journalled, to standard error where scripts read the output."""
        if self.as_json:
            print(f"train-ledger: {harmless(text)}", file=sys.stderr, flush=True)
        else:
            self.out(f"          {harmless(text)}")


def _state(entry: Entry) -> str:
    step = f" at step {entry['step']}" if entry.get("step") is not None else ""
    state = str(entry.get("state"))
    return f"run is {state}{step}: {STATES.get(state, 'a state that this version does not know')}"


def _response(entry: Entry) -> str:
    taken = [word for word in entry.get("on_page", ("dump", "stacks")) if word in _TAKEN]
    if not taken:
        return "looking for the cause in what the run has written"
    if not entry.get("living"):
        return "no rank is left to ask: looking at what they wrote before they ended"
    return f"taking every rank's {' and '.join(_TAKEN[word] for word in taken)} while the job lives"


def _hook(entry: Entry) -> str:
    decision = Decision(entry["hook"], entry["does"], str(entry.get("why")))
    return in_words(decision, dry_run=bool(entry.get("dry_run")))


def _alert(entry: Entry) -> str:
    inhibited = ", inhibited: nobody is told" if entry.get("inhibited") else ""
    return f"{entry.get('level')} alert {entry.get('alert')}: {entry.get('summary')}{inhibited}"


_SENTENCES: Mapping[str, Callable[[Entry], str]] = {
    "keeper_started": lambda e: f"watching {e.get('run')} as pid {e.get('pid')} on {e.get('host')}",
    "history_left_out": lambda e: f"{e['left_out_bytes'] / 1e6:,.1f} MB of earlier signal lines are not read",
    "state_changed": _state,
    "recovered": lambda e: f"recovered: {recovery_in_words(e['recovery'])}",
    "alert_fired": _alert,
    "alert_resolved": lambda e: f"resolved {e.get('alert')}",
    "incident_opened": lambda e: f"incident {e.get('incident')}",
    "incident_closed": lambda e: f"incident {e.get('incident')} closed",
    "response_started": _response,
    "response_done": lambda e: str(e.get("summary")),
    "traces_taken": lambda e: str(e.get("summary")),
    "response_failed": lambda e: f"first answers failed: {e.get('error')}",
    "hook_decided": _hook,
    "hook_done": lambda e: f"{e.get('hook')}_command ended with {e.get('exit_code')}: {e.get('said')}",
    "notification_intended": lambda e: f"message {e.get('notification')} handed over for delivery",
    "notification_done": lambda e: f"message {e.get('notification')}: {e.get('outcome')}",
    "verdict": lambda e: f"verdict: {e['diagnosis'].get('cause')}",
}


def _clock(t: object) -> str:
    return f"{datetime.fromtimestamp(t, UTC):%H:%M:%SZ}" if isinstance(t, int | float) else "--:--:--Z"
