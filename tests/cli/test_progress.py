"""Who waits for long work sees how far it is, and nothing of that is left behind or in the answer."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from terminals import Terminal
from train_ledger.cli.progress import Lines, amount
from train_ledger.headway import Headway

_WORK = """
import sys, time
import train_ledger.cli.command_line as it
from train_ledger.cli.leave import ends_well
from train_ledger.cli.output import show
from train_ledger.cli.progress import with_progress
from train_ledger.headway import tell

def work():
    for done in range(100):
        time.sleep({pause_s})
        tell("reading dumps", done * 1e6, 100e6, "bytes")
        {each}
    show("the answer\\n")
    return 1

it.app.registered_commands = []
it.app.command("hang")(ends_well(with_progress(work)))
sys.argv = ["train-ledger", "hang"]
it.main()
"""


def working(each: str = "pass", pause_s: float = 0.02) -> list[str]:
    return [sys.executable, "-c", _WORK.format(each=each, pause_s=pause_s)]


def test_the_bar_tells_share_and_amount_and_is_gone_when_the_answer_comes() -> None:
    with Terminal(working()) as terminal:
        terminal.until(lambda: "of 100.0 MB" in terminal.screen.text)
        bar = terminal.screen.lines[0]
        assert bar.startswith("reading dumps ━")
        assert " %, " in bar
        assert terminal.end() == 1
        assert terminal.screen.text == "the answer"
        assert terminal.screen.shows_cursor


def test_short_work_shows_none() -> None:
    with Terminal(working(pause_s=0.0)) as terminal:
        assert terminal.end() == 1
        assert terminal.said == b"the answer\r\n"


def test_ctrl_c_leaves_a_clean_terminal() -> None:
    with Terminal(working(pause_s=0.2)) as terminal:
        terminal.until(lambda: "reading dumps" in terminal.screen.text)
        terminal.type(b"\x03")
        assert terminal.end() == 130
        assert terminal.screen.lines[0] in ("", "^C")
        assert "reading" not in terminal.screen.text
        assert terminal.screen.shows_cursor


def test_a_narrow_terminal_is_told_the_share_alone() -> None:
    with Terminal(working(), columns=40) as terminal:
        terminal.until(lambda: "reading dumps" in terminal.screen.text)
        assert terminal.screen.lines[0].removeprefix("reading dumps ").split(" %")[0].isdigit()
        assert terminal.end() == 1
        assert terminal.screen.text == "the answer"


def test_what_is_complained_of_meanwhile_stands_on_lines_of_its_own() -> None:
    complaining = "if done == 60: it.complain('rank 3 is missing')"
    with Terminal(working(complaining)) as terminal:
        assert terminal.end() == 1
        assert terminal.screen.text == "train-ledger: rank 3 is missing\nthe answer"


def test_the_answer_in_a_file_has_nothing_of_it(tmp_path: Path) -> None:
    with (tmp_path / "answer").open("w") as answer, Terminal(working(), stdout=answer.fileno()) as terminal:
        terminal.until(lambda: "reading dumps" in terminal.screen.text)
        assert terminal.end() == 1
        assert terminal.screen.text == ""
    assert (tmp_path / "answer").read_text() == "the answer\n"


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"TERM": "unknown"}])
def test_a_terminal_that_cannot_go_back_has_no_bar(environment: dict[str, str]) -> None:
    with Terminal(working(), environment=environment) as terminal:
        assert terminal.end() == 1
        assert terminal.said == b"the answer\r\n"


def test_without_colour_there_is_a_bar_without_colour() -> None:
    with Terminal(working(), environment={"NO_COLOR": "1"}) as terminal:
        terminal.until(lambda: "reading dumps" in terminal.screen.text)
        assert terminal.end() == 1
        assert b"m" not in {it[-1:] for it in terminal.said.split(b"\x1b[3")[1:]}
        assert terminal.screen.text == "the answer"


def test_where_no_terminal_reads_nothing_is_said() -> None:
    ended = subprocess.run(working(), capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout, ended.stderr) == ("the answer\n", "")


def test_of_work_that_takes_very_long_a_line_now_and_then() -> None:
    now_s, told = [0.0], StringIO()
    lines = Lines(told, clock=lambda: now_s[0])
    for now_s[0] in range(60):
        lines(Headway("reading logs", now_s[0], 60, "files"))
    assert told.getvalue().splitlines() == [
        "train-ledger: reading logs: 17 %, 10 of 60 files",
        "train-ledger: reading logs: 67 %, 40 of 60 files",
    ]


def test_how_much_in_words() -> None:
    assert amount(Headway("", 3e6, 12e6, "bytes")) == "25 %, 3.0 of 12.0 MB"
    assert amount(Headway("", 3e6, 12e6, "bytes"), brief=True) == "25 %"
    assert amount(Headway("", 3e6, None, "bytes"), brief=True) == "3.0 MB"
    assert amount(Headway("", 2000, None, "files")) == "2,000 files"
    assert amount(Headway("", 12.2, None, "seconds")) == "12 seconds"
    assert amount(Headway("", 30, 40, "seconds")) == "75 %"
