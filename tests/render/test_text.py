"""The text that a person reads at three in the morning."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.answer import (
    Diagnosis,
    Finding,
    Group,
    HangAnswer,
    Impact,
    NextCommand,
    RuledOut,
    Unreadable,
)
from train_ledger.render import as_text, wants_colour

WORLD = Group("0", "default_pg", (0, 1, 2, 3))

MISSING = HangAnswer(
    verdict="hang",
    culprits=(3,),
    confidence="high",
    kind="missing_ranks",
    seq=41,
    op="all_reduce",
    group=WORLD,
    findings=(
        Finding(
            kind="missing_ranks",
            culprits=(3,),
            group=WORLD,
            seq=41,
            op="all_reduce",
            state="scheduled",
            waiting=(0, 1, 2),
            frame="train.py:88 wait_for_batch",
            cause_suspected="the rank waits for its data loader",
            evidence=(
                "ranks 0-2 have enqueued sequence number 41, rank 3 stopped at 40",
                "the stack of rank 3 holds no collective",
            ),
        ),
    ),
    victims_of={3: (0, 1, 2)},
    unreadable=(Unreadable("comm_traces/rank_9", "ends in the middle of a record"),),
    stale=("comm_traces/rank_1.old",),
    ruled_out=(RuledOut("collective_type_mismatch", "all who came brought all_reduce"),),
    not_observed=("the GPUs: there is no hardware file",),
    next=(NextCommand("see what rank 3 does now", "py-spy dump --pid 4711"),),
)

GOLDEN = """\
culprit: rank 3
  what        rank 3 never came to all_reduce (missing_ranks)
  group       default_pg (0) – ranks 0-3
  operation   all_reduce, sequence number 41, state scheduled
  stands in   train.py:88 wait_for_batch
  who waits   ranks 0-2 wait for rank 3
  suspected   the rank waits for its data loader
  confidence  high

evidence
  - ranks 0-2 have enqueued sequence number 41, rank 3 stopped at 40
  - the stack of rank 3 holds no collective

ruled out
  - collective_type_mismatch: all who came brought all_reduce

not observed
  - the GPUs: there is no hardware file

not read
  - comm_traces/rank_9: ends in the middle of a record
  - comm_traces/rank_1.old: stale, left out

next
  # see what rank 3 does now
  py-spy dump --pid 4711
"""


def test_a_missing_rank_of_four() -> None:
    assert as_text(MISSING) == GOLDEN


def test_colour_changes_nothing_but_colour() -> None:
    coloured = as_text(MISSING, colour=True)
    assert coloured.startswith("\x1b[1;31mculprit: rank 3\x1b[0m\n")
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == GOLDEN


@pytest.mark.parametrize(
    ("answer", "first_line"),
    [
        (replace(MISSING, culprits=(7, 3)), "culprits: ranks 3, 7"),
        (
            HangAnswer(
                "hang", kind="no_mismatch", findings=(Finding("no_mismatch", (), WORLD, 9, "barrier"),)
            ),
            "nobody to blame: all ranks came and none finishes: "
            "the network or a GPU, not the code of one rank",
        ),
        (
            HangAnswer("cannot_tell", not_observed=("no dump was read",)),
            "cannot tell, because no dump was read",
        ),
        (
            HangAnswer("cannot_tell", unreadable=(Unreadable("a", "empty"),)),
            "cannot tell, because 1 file(s) could not be read, a among them: empty",
        ),
        (
            HangAnswer("cannot_tell", missing_dumps=(1, 2)),
            "cannot tell, because there is no dump of ranks 1-2",
        ),
        (HangAnswer("no_hang"), "no hang: nobody waits for anybody in what was read"),
        (Diagnosis("running", "none"), "nothing wrong: the run is running"),
        (Diagnosis("restarting", "none"), "no cause is known: the run is restarting"),
        (
            Diagnosis("stalled", "unknown", not_observed=("no dumps",)),
            "cannot tell, because no dumps",
        ),
        (Diagnosis("stalled", "hang.host", ranks=(3,), hosts=("node-b",)), "culprit: rank 3 on node-b"),
        (Diagnosis("hardware_fault", "hardware.nic", hosts=("node-b",)), "culprit: host node-b"),
        (
            Diagnosis("stalled", "hang.fabric"),
            "nobody to blame: all came, none finishes, no hardware fault seen",
        ),
    ],
)
def test_the_verdict_is_the_first_line(answer: HangAnswer | Diagnosis, first_line: str) -> None:
    assert as_text(answer).splitlines()[0] == first_line


def test_a_diagnosis_says_what_it_costs_and_what_the_dumps_say() -> None:
    told = as_text(
        Diagnosis(
            state="stalled",
            cause="hang.host",
            ranks=(3,),
            hosts=("node-b",),
            confidence="high",
            since_step=20,
            since_t=1_800_000_000.0,
            impact=Impact(wall_s=312.0, gpu_hours=0.3467, cost=1.04),
            evidence=("the step clock stands at 20", MISSING.findings[0].evidence[0]),
            details=MISSING,
        ),
        currency="USD",
    )
    assert told.startswith("culprit: rank 3 on node-b\n")
    assert "  cause       hang.host – a rank stands in host code, by its stack\n" in told
    assert "  since       step 20, 2027-01-15 08:00:00 UTC\n" in told
    assert "  impact      5 min 12 s of wall time, 0.35 GPU-hours, 1.04 USD\n" in told
    assert "  group       default_pg (0) – ranks 0-3\n" in told
    assert told.count(MISSING.findings[0].evidence[0]) == 1, "said by both, shown once"
    assert "py-spy dump --pid 4711" in told


def test_a_healthy_run_is_told_in_few_lines() -> None:
    told = as_text(Diagnosis("running", "none", evidence=("the step clock moved 2 s ago",)))
    assert told == (
        "nothing wrong: the run is running\n  state  running\n\nevidence\n  - the step clock moved 2 s ago\n"
    )


def test_those_who_wait_through_others_are_named_apart() -> None:
    told = as_text(replace(MISSING, victims_of={3: (0, 1, 2, 4, 5)}))
    assert "ranks 0-2 wait for rank 3; ranks 4-5 wait for rank 3 through others" in told


def test_several_roots_are_numbered() -> None:
    other = replace(MISSING.findings[0], culprits=(7,), evidence=())
    told = as_text(replace(MISSING, culprits=(3, 7), findings=(MISSING.findings[0], other)))
    assert "\nfinding 1 of 2\n" in told
    assert "\nfinding 2 of 2\n  what        rank 7 never came to all_reduce" in told


def test_a_command_is_never_wrapped_and_prose_is() -> None:
    command = "py-spy dump --pid 4711 " + "--an-option-with-a-long-name " * 20 + "[bold]{x}[/bold]"
    told = as_text(replace(MISSING, next=(NextCommand("because " * 30, command),)), width=60)
    assert f"\n  {command}\n" in told
    assert all(len(line) <= 60 for line in told.splitlines() if command not in line)


def test_thousands_of_missing_dumps_do_not_push_the_verdict_off_the_screen() -> None:
    unreadable = tuple(Unreadable(f"rank_{rank}", "empty") for rank in range(5000))
    told = as_text(replace(MISSING, unreadable=unreadable))
    assert len(told.splitlines()) < 70
    assert "  - 5000 files and folders: empty – " in told


HOSTILE = "all\x1b[2J\x1b]52;c;cm0gLXJm\x07_reduce\r\n\x9b31m\u202egnp\x00\ud800[red]"


def test_a_hostile_operation_name_moves_nothing() -> None:
    finding = replace(
        MISSING.findings[0], op=HOSTILE, frame=HOSTILE, evidence=(HOSTILE,), cause_suspected=HOSTILE
    )
    answer = replace(
        MISSING,
        findings=(finding,),
        group=Group(HOSTILE, HOSTILE, (0,)),
        not_observed=(HOSTILE,),
        next=(NextCommand(HOSTILE, HOSTILE),),
        unreadable=(Unreadable(HOSTILE, HOSTILE),),
    )
    told = as_text(answer)
    assert "all_reduce" in told
    assert "[red]" in told, "markup is text"
    assert "52;c" not in told, "nothing of the clipboard sequence is left"
    assert _is_tame(told)
    assert len(told.splitlines()) == len(GOLDEN.splitlines()) - 1, "a newline in a name makes no line"


@given(st.text())
def test_no_text_whatsoever_makes_a_line_or_a_control_character(text: str) -> None:
    told = as_text(HangAnswer("cannot_tell", not_observed=(text,), next=(NextCommand(text, text),)))
    assert _is_tame(told)
    assert len(told.split("\n")) == 9 if text else True


def _is_tame(told: str) -> bool:
    told.encode()  # lone surrogates would raise here, and on a terminal
    return all(character == "\n" or character.isprintable() for character in told)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "wanted"),
    [
        (_Terminal(), {}, True),
        (_Terminal(), {"NO_COLOR": "1"}, False),
        (_Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
        (io.StringIO(), {"CLICOLOR_FORCE": "1"}, True),
        (io.StringIO(), {"CLICOLOR_FORCE": "0"}, False),
        (_Terminal(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(
    stream: io.StringIO, environment: dict[str, str], wanted: bool
) -> None:
    assert wants_colour(stream, environment) is wanted


def test_many_files_that_are_not_read_for_one_reason_are_counted() -> None:
    unread = [Unreadable(f"rank_{rank}", "empty file") for rank in range(1000)]
    told = as_text(
        HangAnswer("cannot_tell", unreadable=(*unread, Unreadable("rank_7.log", "no regular file")))
    )
    assert "  - 1000 files and folders: empty file – rank_0, rank_1, rank_2, …; --json lists all\n" in told
    assert "  - rank_7.log: no regular file\n" in told
    assert told.count("\n") < 10
