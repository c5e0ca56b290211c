"""The terminal shows what is wrong first, and the ranks of which there is most to say."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console

from dash.page.views import HOSTILE, healthy, hung
from train_ledger.dash.page import PageView
from train_ledger.dash.page.rank_rows import rank_rows
from train_ledger.watch.top import screen, worst_first_of


def shown(view: PageView, ranks: int = 8, width: int = 140) -> list[str]:
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(screen(view, ranks=ranks))
    return [line.rstrip() for line in capture.get().splitlines()]


def with_work(view: PageView, work: dict[int, float]) -> PageView:
    ranks = {
        rank: replace(it, values={**it.values, "compute_s": work.get(rank, 1.0), "tps": 100.0, "mfu": 40.0})
        for rank, it in view.state.ranks.items()
    }
    return replace(view, state=replace(view.state, ranks=ranks))


def test_a_run_that_goes_well() -> None:
    lines = shown(with_work(healthy(), {}))
    assert lines[0].startswith("r42  nothing wrong: step 100")
    assert any("tokens/s" in line for line in lines)
    assert any("400" in line and "40.0 %" in line for line in lines)
    assert "no alert holds" in lines


def test_the_rank_that_works_longest_comes_first() -> None:
    lines = shown(with_work(healthy(), {3: 3.0, 2: 2.0}), ranks=2)
    ranks = [line.split()[0] for line in lines if "1 s" in line or "fine" in line]
    assert [rank for rank in ranks if rank.isdigit()] == ["3", "2"]


def test_the_culprit_stands_before_all_others_and_the_verdict_first() -> None:
    lines = shown(with_work(hung(), {2: 9.0}))
    assert lines[0].startswith("r42  culprit: rank 5 on node0")
    listed = [line for line in lines if "culprit" in line or "waiting" in line]
    assert listed[-8].split()[0] == "5" or any(line.split()[0] == "5" for line in listed[:3])
    assert any(line.startswith("page   TrainingStepStalled") for line in lines)


def test_nothing_from_a_log_reaches_the_terminal_as_a_command() -> None:
    text = "\n".join(shown(hung()))
    assert "\x1b" not in text
    assert HOSTILE in text or "alert(" in text


def test_a_narrow_terminal_loses_no_rank() -> None:
    lines = shown(with_work(healthy(), {}), width=60)
    assert sum(line.split()[:1] == [str(rank)] for line in lines for rank in range(4)) == 4
    assert max(map(len, lines)) <= 60
    assert "tokens/s" in " ".join(lines)


def test_equal_words_keep_their_order() -> None:
    rows = rank_rows(healthy())
    assert [row.rank.rank for row in worst_first_of(rows[::-1])] == [3, 2, 1, 0]
