"""How does the state of a run read as Prometheus metrics?

One text a look, made of an immutable state; whoever scrapes reads finished text. The labels of a rank
are made once. Only the ranks of the current attempt are in it: nothing of an earlier one is left over.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from operator import is_

from train_ledger.config import Alerts, Config
from train_ledger.dash.conditions import (
    exported_due_t,
    first_started_t,
    knows_usual_interval,
    last_loss_finite,
    lost_ranks,
    restarts_since,
    silent_ranks,
    slow_saves,
)
from train_ledger.dash.goodput_metrics import goodput_metrics
from train_ledger.dash.hardware_metrics import hardware_text
from train_ledger.dash.metric_text import (
    LONGEST_NAME,
    escaped,
    family,
    family_of_ranks,
    head_of,
    labels,
)
from train_ledger.dash.spans import is_span, spans_of
from train_ledger.dash.speed_metrics import outliers_text, speed_text
from train_ledger.fields import FIELDS, Field
from train_ledger.ledger.state import STATES, RankState, RunState

__all__ = ["Exposition"]

_RUN_FIELDS = ("restart_total", "ckpt_failed_total", "ckpt_duration_s", "effective_fraction", "mfu_baseline")
"""Fields that a launcher may write into a signal line though they are the run's."""

_RANK_FIELDS = tuple(field for name, field in FIELDS.items() if name not in _RUN_FIELDS)
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_]")


@dataclass(frozen=True, slots=True)
class _Member:
    state: RankState
    labels: str


class Exposition:
    """Makes the text of one run's states; keeps the label strings between them."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._labels: dict[tuple[str, int], str] = {}
        self._infos: dict[int, tuple[tuple[object, ...], str]] = {}
        self._rendered: list[RankState] = []
        self._silent: frozenset[int] = frozenset()
        self._text_of_ranks = ""
        self._spans_left_out = 0
        self.fields_left_out = 0

    def text(self, state: RunState) -> str:
        """All metrics of this state; ends with a newline."""
        members = self._members(state)
        of_run, facts = self._of_run(state, members), self._facts(state, members)
        of_ranks = self._of_ranks(members, silent_ranks(state))
        told = (speed_text(state, self._config.alerts), *goodput_metrics(state), hardware_text(state))
        return "".join([*of_run, of_ranks, *facts, *told, *self._unknown_fields(members)])

    def _of_ranks(self, members: list[_Member], silent: frozenset[int]) -> str:
        """What the ranks' own lines say; made anew only where one of them said something, or fell silent."""
        states = [member.state for member in members]
        same = len(states) == len(self._rendered) and all(map(is_, states, self._rendered))
        if not same or silent != self._silent:
            self._rendered, self._silent = states, silent
            heard = [member for member in members if member.state.rank not in silent]
            spans, self._spans_left_out = spans_of(
                [member.labels for member in heard], [member.state.values for member in heard]
            )
            self._text_of_ranks = "".join([*_of_ranks(members, silent), spans])
        return self._text_of_ranks

    def text_of_run(self, state: RunState) -> str:
        """The metrics of the run alone, without times from which an age could be reckoned.

        For a keeper: its own clock and its own death must not speak for the ranks, of which the exporters on
        their nodes tell.
        """
        of_run = self._of_run(state, self._members(state), ages=False)
        return "".join([*of_run, outliers_text(state)])

    def _members(self, state: RunState) -> list[_Member]:
        return [
            _Member(rank, self._labels_of(state.run, rank.rank))
            for _, rank in sorted(state.ranks.items())
            if rank.attempt == state.attempt
        ]

    def _labels_of(self, run: str, rank: int) -> str:
        known = self._labels.get((run, rank))
        if known is None:
            known = self._labels[run, rank] = labels(run=run, rank=rank)
        return known

    def _of_run(self, state: RunState, members: list[_Member], ages: bool = True) -> Iterator[str]:
        run = labels(run=state.run)
        for name, kind, help, value in self._run_values(state, members):
            if value is not None and (ages or not name.endswith("_timestamp_seconds")):
                yield family(name, kind, help, [(run, value)])
        states = ((labels(run=state.run, state=name), float(name == state.state)) for name in STATES)
        yield family(
            "train_run_state", "gauge", "1 for the state in which the run is, 0 for the others.", states
        )

    def _run_values(
        self, state: RunState, members: list[_Member]
    ) -> Iterator[tuple[str, str, str, float | None]]:
        alerts, saves = self._config.alerts, state.checkpoints
        written = {name: _newest(members, name) for name in _RUN_FIELDS}
        if state.speed.mfu_baseline is not None:
            written["mfu_baseline"] = state.speed.mfu_baseline
        duration_s = saves.durations_s[-1] if saves.durations_s else written["ckpt_duration_s"]
        attempt_t = state.attempts[-1].started_t if state.attempts else None
        restarts = max(float(restarts_since(state, -math.inf)), written["restart_total"] or 0.0)
        failed = max(float(saves.failed_before + len(saves.failed)), written["ckpt_failed_total"] or 0.0)
        gauge, counter = "gauge", "counter"
        yield "train_step_time_seconds_p50", gauge, "Median of the steady step times.", state.p50_step_time_s
        yield (
            "train_stall_threshold_seconds",
            gauge,
            "After this time without a completed step the run counts as stalled, in the phase it is in now.",
            state.stall_threshold_s,
        )
        yield (
            "train_run_finished",
            gauge,
            "1 once the run, or all of it that is followed here, has come to its end.",
            None if state.is_part and not state.ranks else float(state.finished),
        )
        yield (
            "train_run_started_timestamp_seconds",
            gauge,
            "When the first attempt began.",
            first_started_t(state),
        )
        yield "train_attempt_started_timestamp_seconds", gauge, "When this attempt began.", attempt_t
        yield "train_restart_total", counter, "Starts of the run after its first.", restarts
        yield "train_ckpt_failed_total", counter, "Checkpoint saves that failed.", failed
        yield (
            "train_ckpt_last_success_timestamp_seconds",
            gauge,
            "When the last checkpoint was saved.",
            saves.saved_t[-1] if saves.saved_t else None,
        )
        yield "train_ckpt_duration_s", gauge, "How long the last checkpoint took to save.", duration_s
        yield (
            "train_ckpt_due_timestamp_seconds",
            gauge,
            "By when the next checkpoint should be saved, going by the run's own intervals; NaN while a run "
            "stands, which owes none.",
            _due_t(state, alerts),
        )
        yield (
            "train_ckpt_slow_saves",
            gauge,
            "How many of the newest saves in a row, two at most, took far longer than usual.",
            float(slow_saves(state, alerts)),
        )
        known = {"effective_fraction": state.productive.fraction} if state.productive else {}
        for name in ("effective_fraction", "mfu_baseline"):
            told = written[name] if written[name] is not None else known.get(name)
            yield FIELDS[name].metric, gauge, _help(FIELDS[name]), told

    def _facts(self, state: RunState, members: list[_Member]) -> Iterator[str]:
        lost = lost_ranks(state, self._config.alerts)
        up = ((m.labels, float(m.state.rank not in lost)) for m in members if not m.state.ended)
        yield family("train_process_up", "gauge", "0 where the process of a rank is gone before its end.", up)
        gone = ((member.labels, lost[member.state.rank]) for member in members if member.state.rank in lost)
        yield family(
            "train_process_gone_timestamp_seconds",
            "gauge",
            "When a process that is gone was found dead, or was heard last.",
            gone,
        )
        infos = ((self._info_of(state.run, member.state), 1.0) for member in members)
        yield family("train_rank_info", "gauge", "Where a rank runs.", infos)

    def _info_of(self, run: str, rank: RankState) -> str:
        where = (run, rank.rank, rank.host, rank.gpu, rank.uuid)
        known = self._infos.get(rank.rank)
        if known is None or known[0] != where:
            said = labels(run=run, rank=rank.rank, host=rank.host, gpu=rank.gpu, uuid=rank.uuid)
            known = self._infos[rank.rank] = (where, said)
        return known[1]

    def _unknown_fields(self, members: list[_Member]) -> Iterator[str]:
        """Fields that train-ledger does not know, where they are asked for, up to the limit of series."""
        self.fields_left_out = self._spans_left_out
        if not self._config.limits.unknown_fields:
            return
        room = self._config.limits.unknown_field_series
        told = {name for member in members for name in member.state.values} - FIELDS.keys()
        names = sorted(name for name in told if not is_span(name))
        taken: set[str] = set()
        for name in names:
            metric = f"train_field_{_NOT_IN_A_NAME.sub('_', name)}"
            samples = [(m.labels, m.state.values[name]) for m in members if name in m.state.values]
            if metric in taken or len(samples) > room or len(name) > LONGEST_NAME:
                self.fields_left_out += 1
                continue
            taken.add(metric)
            room -= len(samples)
            yield family(metric, "gauge", f"Field {escaped(name)} of the signal lines.", samples)


def _due_t(state: RunState, alerts: Alerts) -> float | None:
    """Never left out once it was there: what a dead exporter said last would come back."""
    due_t = exported_due_t(state, alerts)
    return math.nan if due_t is None and knows_usual_interval(state) else due_t


def _newest(members: list[_Member], name: str) -> float | None:
    """What the ranks wrote for a fact of the run; the largest, where they differ."""
    values = [
        value for m in members if (value := m.state.values.get(name)) is not None and math.isfinite(value)
    ]
    return max(values, default=None)


def _of_ranks(members: list[_Member], silent: frozenset[int]) -> Iterator[str]:
    """A gauge of a rank that fell silent would go on for ever; what is counted, and when, stays true."""
    labelled = [member.labels for member in members]
    values = [member.state.values for member in members]
    gauges = [{} if member.state.rank in silent else member.state.values for member in members]
    for field in _RANK_FIELDS:
        # A counter is born at 0, or its first increase could not be seen.
        is_counter = field.kind == "counter"
        default = 0.0 if is_counter else None
        numbers = [told.get(field.name, default) for told in (values if is_counter else gauges)]
        yield family_of_ranks(_FIELD_HEADS[field.name], field.metric, labelled, numbers)
    for name, kind, help, read in _RANK_FACTS:
        facts = [read(member.state) for member in members]
        yield family_of_ranks(head_of(name, kind, help), name, labelled, facts)
    stale: list[float | None] = [float(member.state.rank in silent) for member in members]
    yield family_of_ranks(_STALE_HEAD, "train_rank_stale", labelled, stale)


def _help(field: Field) -> str:
    unit = f", in {field.unit}" if field.unit else ""
    return f"{field.name}{unit}; taken: {field.taken_at}. Abnormal: {field.abnormal}."


_FIELD_HEADS = {field.name: head_of(field.metric, field.kind, _help(field)) for field in _RANK_FIELDS}


_STALE_HEAD = head_of(
    "train_rank_stale",
    "gauge",
    "1 where nothing was heard of a rank for so long that its gauges are left out.",
)


def _step(rank: RankState) -> float | None:
    return None if rank.step is None else float(rank.step)


def _is_finite(rank: RankState) -> float | None:
    return None if rank.step is None else float(last_loss_finite(rank))


_RANK_FACTS = (
    ("train_step", "gauge", "Last completed step.", _step),
    (
        "train_last_step_completed_timestamp_seconds",
        "gauge",
        "When the last step was completed.",
        lambda rank: rank.step_t,
    ),
    (
        "train_last_log_timestamp_seconds",
        "gauge",
        "Time of the last line of any kind.",
        lambda rank: rank.heard_t,
    ),
    ("train_loss_is_finite", "gauge", "0 where the loss of the last step was no finite number.", _is_finite),
    (
        "train_loss_nonfinite_total",
        "counter",
        "Steps of this attempt with a loss that was no finite number.",
        lambda rank: float(rank.nonfinite_total),
    ),
)
