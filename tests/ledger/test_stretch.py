"""Folding steps in a row at once gives what folding them one by one gives, whatever else the lines say."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from train_ledger.config import Config
from train_ledger.facts import Event, Step, Stretch
from train_ledger.ledger import Fold
from train_ledger.run_dir import RunDir
from train_ledger.sources import RunFiles
from train_ledger.sources.signal_lines.plain import runs

_EXAMPLES = int(os.environ.get("TRAIN_LEDGER_EXAMPLES", "60"))
"""Thousands are for who changes the fold."""

_ODD = st.sampled_from(
    [
        {"event": "run_start", "host": "n1", "world_size": 2, "pid": 7},
        {"event": "run_start", "host": "n2"},
        {"event": "ckpt_start"},
        {"event": "ckpt_saved", "duration_s": 3.0},
        {"event": "ckpt_failed", "error": "disk"},
        {"event": "phase_start", "phase": "evaluation"},
        {"event": "phase_end", "phase": "evaluation"},
        {"event": "exception", "type": "OSError"},
        {"event": "signal", "number": 15},
        {"event": "run_end"},
        {"event": 7},
        {"loss": "NaN"},
        {"loss": math.nan},
        {"grad_norm": "Infinity"},
        {"lr": "high", "num_ooms": 3},
        {"rank": 5},
        {"t": None},
        {"step": -1},
    ]
)
_RAW = st.sampled_from([b"torn {", b"", b"[1]", b'{"t":1,"step":1,"note":"\xff"}'])


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """What one stretch of lines has in common and how it goes on."""
    fields = draw(
        st.lists(
            st.sampled_from(
                ["loss", "step_time_s", "ckpt_s", "num_ooms", "skipped", "consumed_samples", "mine"]
            ),
            unique=True,
        )
    )
    every = draw(st.sampled_from([1, 1, 2, 7]))
    seconds = draw(st.sampled_from([1.0, 1.0, 0.5, 30.0, 100.0]))
    timed = draw(st.sampled_from([seconds, 1.0, 0.0, -1.0]))
    sparse = draw(st.sampled_from([0, 0, 3]))
    odd_at, odd = draw(st.integers(0, 50)), draw(st.sampled_from([(-2.0, 1), (8.0, 1), (seconds, 3)]))
    uneven = draw(st.sampled_from([99, 99, 5]))
    lines = []
    for place in range(draw(st.integers(1, 40))):
        values = {
            "loss": 2.0 + place,
            "step_time_s": timed,
            "ckpt_s": float(place % 5 == 0),
            "num_ooms": place,
            "skipped": 1,
            "consumed_samples": 64 * place if place < uneven else place * place,
        }
        told = {name: values.get(name, 1.5) for name in fields if not sparse or place % sparse == 0}
        passed_s, stride = odd if place == odd_at else (seconds, every)
        lines.append({"step": stride, "t": passed_s, **told})
    return lines


@st.composite
def files(draw: st.DrawFn, rank: int) -> list[bytes]:
    """The lines of one rank's file: rows of steps, and between them whatever may come."""
    t, step, attempt = 1000.0 + draw(st.sampled_from([0.0, 0.25, 300.0])), draw(st.integers(0, 3)), 0
    lines: list[bytes] = []
    for _ in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from(["row"] * 5 + ["odd", "odd", "raw", "back", "jump", "attempt", "stray"]))
        if kind == "row":
            for line in draw(rows()):
                t, step = t + line["t"], step + line["step"]
                lines.append(_written({**line, "t": t, "step": step, "rank": rank, "attempt": attempt}))
        elif kind == "odd":
            t += 1.0
            odd = {"t": t, "step": step + 1, "rank": rank, "attempt": attempt, **draw(_ODD)}
            lines.append(_written({**odd, "rank": odd["rank"] + rank} if odd["rank"] == 5 else odd))
        elif kind == "raw":
            lines.append(draw(_RAW))
        elif kind == "stray":
            lines.append(_written({"t": t, "step": step, "rank": rank, "attempt": attempt + 3}))
        else:
            step -= draw(st.sampled_from([1, 1, 2, 30])) if kind == "back" else 0
            step = max(0, step)
            t += draw(st.sampled_from([-400.0, -2.0, 7.0, 500.0])) if kind == "jump" else 0.0
            attempt += kind == "attempt"
    return lines


def _written(line: dict[str, Any]) -> bytes:
    return json.dumps(line).encode()


def folded(run: RunDir, files: Sequence[bytes], cuts: Sequence[int], *, at_once: bool) -> tuple[Any, ...]:
    """All that can be seen of a run whose files were read when they had grown to each of the sizes."""
    reader, fold, events = RunFiles(run), Fold("r", Config()), []
    for start, cut in pairwise((0, *cuts, 1 << 30)):
        for rank, content in enumerate(files):
            with run.signals_of(rank).open("ab") as file:
                file.write(content[start:cut])
        if at_once:
            events += reader.fold_into(fold)
        else:
            facts = reader.poll()
            fold.add_all(facts)
            events += [fact for fact in facts if not isinstance(fact, Step)]
    bad = reader.bad_lines
    reader.close()
    states = [repr(dataclasses.asdict(fold.state(t))) for t in (1000.0, 1500.0, 9000.0)]
    clocks = [fold.clock_of(rank) for rank in (0, 1)]
    return states, clocks, fold.heard_t, fold.carried(0.0), bad, sorted(map(repr, events))


@settings(deadline=None, max_examples=_EXAMPLES)
@given(ranks=st.tuples(files(0), files(1)), cuts=st.lists(st.integers(1, 6000), max_size=3).map(sorted))
def test_at_once_is_as_one_by_one(ranks: tuple[list[bytes], list[bytes]], cuts: list[int]) -> None:
    contents = [b"".join(line + b"\n" for line in lines) for lines in ranks]
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        at_once = folded(_run(one), contents, cuts, at_once=True)
        assert at_once == folded(_run(other), contents, [], at_once=False)


def same(tmp_path: Path, *lines: dict[str, Any]) -> bool:
    content = b"".join(_written({"rank": 0, **line}) + b"\n" for line in lines)
    both = []
    for way in ("at_once", "one_by_one"):
        (tmp_path / way).mkdir()
        both.append(folded(_run(str(tmp_path / way)), [content], [], at_once=way == "at_once"))
    return both[0] == both[1]


def test_a_step_that_follows_a_pause_is_no_steady_one_though_its_line_comes_twice(tmp_path: Path) -> None:
    before = [{"t": float(step), "step": step} for step in range(1, 4)]
    pause = {"t": 4.0, "event": "phase_start", "phase": "evaluation"}
    after = [{"t": t, "step": step} for step, t in enumerate((63.0, 100.0, 140.0), start=4)]
    assert same(tmp_path, *before, pause, {"t": 4.5, "step": 3}, *after)


def test_a_clock_that_went_back_a_little_at_the_last_step_had_come_further(tmp_path: Path) -> None:
    steps = [{"t": 1000.0 + step, "step": step} for step in range(1, 11)]
    assert same(tmp_path, *steps, {"t": 1008.0, "step": 11}, {"t": 1004.5, "event": "eval_start"})


def _run(folder: str) -> RunDir:
    run = RunDir(Path(folder))
    run.signals.mkdir()
    return run


def test_a_stretch_stands_for_its_steps() -> None:
    lines = [b'{"t":%d,"step":%d,"lr":0.1,"mine":7}' % (number, number) for number in (1, 2, 3, 4)]
    (run,) = runs(b"\n".join(lines), 0)
    assert run.plain is not None
    stretch = Stretch(run.plain[:3], Step(4.0, 4, 0, values={"mine": 7.0}))
    assert [(fact.t, fact.step, fact.rank, dict(fact.values)) for fact in stretch.steps()] == [
        (1.0, 1, 0, {"lr": 0.1}),
        (2.0, 2, 0, {"lr": 0.1}),
        (3.0, 3, 0, {"lr": 0.1}),
        (4.0, 4, 0, {"mine": 7.0}),
    ]


def test_a_counter_that_the_last_line_does_not_tell_keeps_its_number_in_its_attempt() -> None:
    """Else it would fall to 0 between two scrapes, and its return would look like an increase."""
    fold = Fold("r", Config())
    fold.add(Step(1.0, 1, 0, values={"num_ooms": 2.0, "loss": 3.0}))
    fold.add(Step(2.0, 2, 0, values={"loss": 2.0}))
    assert fold.state(3.0).ranks[0].values == {"num_ooms": 2.0, "loss": 2.0}
    fold.add(Event(4.0, "run_start", 0, attempt=1))
    fold.add(Step(5.0, 3, 0, attempt=1, values={"lr": 0.1}))
    assert fold.state(6.0).ranks[0].values == {"lr": 0.1}


def test_a_gauge_is_that_of_the_last_line_alone() -> None:
    fold = Fold("r", Config())
    fold.add(Step(1.0, 1, 0, values={"ckpt_s": 9.0}))
    fold.add(Step(2.0, 2, 0, values={"loss": 2.0}))
    assert fold.state(3.0).ranks[0].values == {"loss": 2.0}
