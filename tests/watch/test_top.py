"""The terminal shows what is wrong first, and the ranks of which there is most to say."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from rich.console import Console

from dash.page.views import HOSTILE, healthy, hung, stall
from train_ledger.dash.page import PageView
from train_ledger.watch.top import screen


def shown(view: PageView, ranks: int = 8, width: int = 140, height: int | None = None) -> list[str]:
    """What stands on a screen; of a limited `height` where it is given."""
    console = Console(width=width, height=height, no_color=True)
    with console.capture() as capture:
        console.print(screen(view, ranks=ranks, foot="q quits", fits=height is not None))
    return [line.rstrip() for line in capture.get().splitlines()]


def with_work(view: PageView, work: dict[int, float]) -> PageView:
    ranks = {
        rank: replace(it, values={**it.values, "compute_s": work.get(rank, 1.0), "tps": 100.0, "mfu": 40.0})
        for rank, it in view.state.ranks.items()
    }
    return replace(view, state=replace(view.state, ranks=ranks))


def test_a_figure_beyond_all_measure_pushes_nothing_away() -> None:
    view = healthy()
    told = {"tps": 1e308, "mfu": 1e307, "loss": 1e308, "mem_reserved_peak": 1e308, "rss_bytes": -1e308}
    ranks = {number: replace(it, values={**it.values, **told}) for number, it in view.state.ranks.items()}
    view = replace(view, state=replace(view.state, ranks=ranks))
    lines = shown(view, width=100)
    assert len(lines) <= len(shown(healthy(), width=100)) + 6
    assert not any("inf" in line or "0" * 20 in line for line in lines)
    assert any("9.31e+298 GiB" in line for line in lines)


def test_a_run_that_goes_well() -> None:
    lines = shown(with_work(healthy(), {}))
    assert lines[0].startswith("r42  nothing wrong: step 100")
    assert any("tokens/s" in line for line in lines)
    assert any("400" in line and "40.0 %" in line for line in lines)
    assert "not told: GPU memory, saved" in lines
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


@pytest.mark.parametrize(("width", "height"), [(40, 20), (80, 24), (200, 60)])
def test_nothing_but_ranks_is_left_out_of_a_small_terminal(width: int, height: int) -> None:
    lines = shown(with_work(hung(ranks=64), {}), ranks=40, width=width, height=height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("r42  culprit: rank 5")
    assert any(line.startswith("page   TrainingStepStalled") for line in lines)
    assert "not observed: 3 × not JSON" in lines
    assert lines[-1] == "q quits"
    listed = [line.split()[0] for line in lines if line[:4].strip().isdigit()]
    assert listed[0] == "5"
    assert len(listed) >= 3


def test_of_many_alerts_those_that_fit() -> None:
    alerts = tuple(replace(stall(), name=f"Alert{number}") for number in range(12))
    lines = shown(replace(hung(), alerts=alerts), width=80, height=24)
    assert len(lines) <= 24
    assert "and 9 more" in lines


def test_what_to_run_next_stands_below_the_verdict_and_can_be_copied() -> None:
    lines = shown(hung())
    assert lines[1:3] == ["next: see what rank 5 waits for", "  py-spy dump --pid 1005 && echo '<done>'"]


def test_of_a_page_without_a_verdict_it_is_said_what_finds_one() -> None:
    view = replace(hung(), diagnosis=None, journal=(), run_path="runs/r42")
    lines = shown(view)
    assert lines[1:3] == ["next: why, and which rank", "  train-ledger diagnose runs/r42"]
    assert not any("next:" in line for line in shown(healthy()))


def test_how_old_the_data_is() -> None:
    view = healthy()
    late = replace(view, state=replace(view.state, t=view.state.t + 75))
    assert "1 min 15 s ago" in " ".join(shown(late))


def test_a_run_that_cannot_be_read_any_more_says_why() -> None:
    view = healthy()
    lost = replace(view, state=replace(view.state, unreadable="runs/r42: No such file or directory"))
    assert "cannot be read any more: runs/r42: No such file or directory" in shown(lost)


def test_figures_are_never_cut_words_are() -> None:
    work = with_work(hung(), {rank: 1.25 + rank for rank in range(8)})
    lines = shown(work, width=80, height=24)
    (culprit,) = [line for line in lines if line.split()[:1] == ["5"]]
    assert "1 min 37 s" in culprit
    assert "51,299" in culprit
    assert "6.25 s" in culprit
    assert "culprit" in culprit


def test_of_ranks_in_no_trouble_those_that_work_longest_come_first() -> None:
    lines = shown(with_work(healthy(), {0: 1.0, 1: 3.0, 2: 2.0, 3: math.nan}))
    table = lines[next(at for at, line in enumerate(lines) if line.split()[:1] == ["rank"]) + 1 :]
    assert [line.split()[0] for line in table if line.strip()[:1].isdecimal()] == ["1", "2", "0", "3"]
