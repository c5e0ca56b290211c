"""How does the state of a run read as Prometheus metrics?

One text a look, made of an immutable state; whoever scrapes reads finished text. The labels of a rank
are made once. Only the ranks of the current attempt are in it: nothing of an earlier one is left over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import is_

from train_ledger.config import Config
from train_ledger.dash.conditions import lost_ranks, silent_ranks
from train_ledger.dash.goodput_metrics import goodput_metrics
from train_ledger.dash.hardware_metrics import hardware_text
from train_ledger.dash.metric_text import LONGEST_NAME, escaped, family, labels
from train_ledger.dash.rank_metrics import Member, rank_metrics
from train_ledger.dash.run_metrics import run_metrics
from train_ledger.dash.spans import is_span, spans_of
from train_ledger.dash.speed_metrics import outliers_text, speed_text
from train_ledger.fields import FIELDS
from train_ledger.ledger.state import RankState, RunState

__all__ = ["Exposition"]

_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_]")


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
        of_run, facts = run_metrics(state, members, self._config.alerts), self._facts(state, members)
        of_ranks = self._of_ranks(members, silent_ranks(state))
        told = (speed_text(state, self._config.alerts), *goodput_metrics(state), hardware_text(state))
        return "".join([*of_run, of_ranks, *facts, *told, *self._unknown_fields(members)])

    def _of_ranks(self, members: list[Member], silent: frozenset[int]) -> str:
        """What the ranks' own lines say; made anew only where one of them said something, or fell silent."""
        states = [member.state for member in members]
        same = len(states) == len(self._rendered) and all(map(is_, states, self._rendered))
        if not same or silent != self._silent:
            self._rendered, self._silent = states, silent
            heard = [member for member in members if member.state.rank not in silent]
            spans, self._spans_left_out = spans_of(
                [member.labels for member in heard], [member.state.values for member in heard]
            )
            self._text_of_ranks = "".join([*rank_metrics(members, silent), spans])
        return self._text_of_ranks

    def text_of_run(self, state: RunState) -> str:
        """The metrics of the run alone, without times from which an age could be reckoned.

        For a keeper: its own clock and its own death must not speak for the ranks, of which the exporters on
        their nodes tell.
        """
        of_run = run_metrics(state, self._members(state), self._config.alerts, ages=False)
        return "".join([*of_run, outliers_text(state)])

    def _members(self, state: RunState) -> list[Member]:
        return [
            Member(rank, self._labels_of(state.run, rank.rank))
            for _, rank in sorted(state.ranks.items())
            if rank.attempt == state.attempt
        ]

    def _labels_of(self, run: str, rank: int) -> str:
        known = self._labels.get((run, rank))
        if known is None:
            known = self._labels[run, rank] = labels(run=run, rank=rank)
        return known

    def _facts(self, state: RunState, members: list[Member]) -> Iterator[str]:
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

    def _unknown_fields(self, members: list[Member]) -> Iterator[str]:
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
