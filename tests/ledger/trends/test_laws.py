"""The figures of speed do not depend on how many lines are read at once, nor on which rank is read first."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from train_ledger.config import Alerts, Config
from train_ledger.facts import Event, Fact, Step, Stretch
from train_ledger.fields import FIELDS
from train_ledger.ledger import Fold
from train_ledger.ledger.memo import from_plain, put_down, take_up, to_plain

_EXAMPLES = int(os.environ.get("TRAIN_LEDGER_EXAMPLES", "80"))

_SHORT = Config(
    alerts=Alerts(
        step_recent_s=20.0,
        step_usual_window_s=60.0,
        step_usual_offset_s=30.0,
        step_usual_least_steps=5,
        mfu_window_s=60.0,
        data_wait_window_s=25.0,
        outlier_least_steps=3,
        fragmentation_window_s=60.0,
        grad_norm_steps=20,
    )
)
"""Windows of as many lines as are drawn here."""

Line = msgspec.defstruct(
    "Line", [("t", float), ("step", int), *((name, float | None, None) for name in FIELDS)]
)

_TOLD: dict[str, st.SearchStrategy[float]] = {
    "step_time_s": st.sampled_from([1.0, 1.0, 3.0, 0.0, -1.0, 1e6]),
    "ckpt_s": st.sampled_from([0.0, 0.0, 0.0, 1.0]),
    "data_wait_s": st.sampled_from([0.01, 0.1, 0.7, 0.0, -1.0, 1e6]),
    "mfu": st.sampled_from([40.0, 33.3, 41.7, -1.0, 1e30]),
    "mfu_baseline": st.sampled_from([40.0, 45.0, 0.0]),
    "compute_s": st.sampled_from([0.7, 0.71, 0.9, 0.0]),
    "grad_norm": st.sampled_from([0.1, 0.11, 0.12, 5.0, 0.0, 1e200]),
    "num_alloc_retries": st.sampled_from([0.0, 1.0, 2.0]),
    "mem_inactive_split": st.sampled_from([1e9, 2e9]),
}


@st.composite
def rows(draw: st.DrawFn, rank: int) -> list[list[Any]]:
    """Rows of plain lines of one rank, and events between them; each row rises in time and step."""
    t, step = 1000.0, 0
    rest: list[list[Any]] = []
    for _ in range(draw(st.integers(1, 4))):
        names = draw(st.lists(st.sampled_from(sorted(_TOLD)), unique=True) | st.just(sorted(_TOLD)))
        usual = {name: draw(_TOLD[name]) for name in names}
        seconds, odd = draw(st.sampled_from([1.0, 0.4, 7.0])), draw(st.sets(st.integers(0, 60), max_size=6))
        row: list[Any] = []
        for place in range(draw(st.integers(4, 60))):
            t, step = t + seconds, step + 1
            told = {name: draw(_TOLD[name]) for name in names} if place in odd else usual
            if place in odd and draw(st.booleans()):
                told = {}
            row.append(Line(t, step, **told))
        rest.append(row)
        name = draw(st.sampled_from(["", "eval_start", "back"]))
        if name == "eval_start":
            rest.append([Event(t, name, rank), Event(t + 1.0, "eval_end", rank)])
        step -= 20 if name == "back" else 0
        step = max(0, step)
    return rest


def one_by_one(rank: int, attempt: int, rows: Sequence[Sequence[Any]]) -> Iterator[Fact]:
    for row in rows:
        yield from (it if isinstance(it, Event) else _step(it, rank, attempt) for it in row)


def _step(line: Any, rank: int, attempt: int) -> Step:
    values = {name: value for name in FIELDS if (value := getattr(line, name)) is not None}
    return Step(line.t, line.step, rank, attempt, f"n{rank // 2}", values=values)


def at_once(fold: Fold, rank: int, rows: Sequence[Sequence[Any]], cut: int) -> None:
    for row in rows:
        if isinstance(row[0], Event):
            fold.add_all(row)
            continue
        for start in range(0, len(row), cut):
            here = row[start : start + cut]
            fold.add_stretch(Stretch(here[:-1], _step(here[-1], rank, 0)))


def shown(fold: Fold) -> str:
    return repr(fold.state(1100.0))


@settings(deadline=None, max_examples=_EXAMPLES)
@given(ranks=st.lists(rows(0), min_size=1, max_size=3), cut=st.integers(1, 64))
def test_lines_at_once_are_as_one_by_one(ranks: list[list[list[Any]]], cut: int) -> None:
    single, many = Fold("r", _SHORT), Fold("r", _SHORT)
    for rank, lines in enumerate(ranks):
        single.add_all(one_by_one(rank, 0, lines))
        at_once(many, rank, lines, cut)
    assert shown(single) == shown(many)


@settings(deadline=None, max_examples=_EXAMPLES)
@given(ranks=st.tuples(rows(0), rows(1), rows(2), rows(3)), order=st.permutations(range(4)))
def test_which_rank_is_read_first_does_not_matter(
    ranks: tuple[list[list[Any]], ...], order: list[int]
) -> None:
    in_order, permuted = Fold("r", _SHORT), Fold("r", _SHORT)
    for rank, lines in enumerate(ranks):
        in_order.add_all(one_by_one(rank, rank % 2, lines))
    for rank in order:
        permuted.add_all(one_by_one(rank, rank % 2, ranks[rank]))
    assert shown(in_order) == shown(permuted)


@settings(deadline=None, max_examples=_EXAMPLES)
@given(lines=rows(0), place=st.integers(0, 200))
def test_another_process_goes_on_where_one_stopped(lines: list[list[Any]], place: int) -> None:
    facts = list(one_by_one(0, 0, lines))
    steady, anew = Fold("r", _SHORT), Fold("r", _SHORT)
    steady.add_all(facts)
    anew.add_all(facts[:place])
    anew.state(1100.0)
    parts = from_plain(msgspec.msgpack.decode(msgspec.msgpack.encode(to_plain(put_down(anew)))))
    anew = Fold("r", _SHORT)
    take_up(anew, parts)
    anew.add_all(facts[place:])
    assert shown(anew) == shown(steady)
