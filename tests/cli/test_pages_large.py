"""Pages stay small where runs are large: they can be sent on by mail."""

from __future__ import annotations

import random

import pytest

from hang.recorder import Job, dump_of
from train_ledger.cli.trace_pages import report_of_breakdown
from train_ledger.hang.analysis import examination_of
from train_ledger.hang.dumps.dump_files import Dumps
from train_ledger.render import as_html
from train_ledger.render.accounts import report_of_accounts
from train_ledger.slow.trace.arrivals import Arrivals
from train_ledger.slow.trace.breakdown import Breakdown, RankBreakdown
from train_ledger.slow.trace.buckets import BUCKETS, HELD_BY, Buckets

_LARGEST_BYTES = 300_000


@pytest.mark.slow
def test_a_hang_of_1024_ranks_in_129_groups() -> None:
    job = Job(1024)
    for group in range(128):
        job.group(str(group + 1), range(8 * group, 8 * group + 8), f"tp_{group}")
    for number in range(4):
        for group in range(128):
            ranks = range(8 * group, 8 * group + 8)
            came = [rank for rank in ranks if number < 3 or group % 3 or rank != 8 * group + group % 8]
            job.issue(came, group=str(group + 1), done=number < 3 or group % 3 > 0)
        job.issue(
            [rank for rank in range(1024) if number < 3 or rank != 517], "_allgather_base", done=number < 3
        )
    examined = examination_of(Dumps(tuple(dump_of(job, rank) for rank in range(1024))), world_size=1024)
    page = as_html(examined.answer, title="dumps", picture=examined.picture)
    assert 'class="graph"' in page
    assert len(page.encode()) < _LARGEST_BYTES


def _broken_down(ranks: int) -> Breakdown:
    rng = random.Random(5)
    found = {}
    for rank in range(ranks):
        known = {name: rng.randrange(5, 20) * 1_000_000 for name in BUCKETS if name not in HELD_BY}
        buckets: dict[str, int | None] = {name: known.get(name) for name in BUCKETS}
        step = Buckets(10, sum(known.values()), buckets)
        found[rank] = RankBreakdown(f"rank{rank}.json", (), (step,), step, None, None)  # type: ignore[arg-type]
    return Breakdown(found, (), dict(HELD_BY), Arrivals({}, why="one call alone"))


def test_a_breakdown_of_4096_ranks_draws_those_that_tell() -> None:
    page = as_html(report_of_breakdown(_broken_down(4096)))
    assert len(page.encode()) < _LARGEST_BYTES
    assert page.count('<svg class="parts"') == 49, "48 ranks and the median of all"
    assert "4048 more ranks, nearer to the median of all, are not drawn" in page


def test_the_account_of_months() -> None:
    since_t, until_t, each_s = 1_790_000_000.0, 1_790_000_000.0 + 90 * 86_400, 300.0
    kinds = ("productive", "checkpoint", "rework", "down")
    count = int((until_t - since_t) / each_s)
    spans = [
        {
            "category": kinds[place % 4],
            "since_t": since_t + each_s * place,
            "until_t": since_t + each_s * (place + 1),
        }
        for place in range(count)
    ]
    seconds = dict.fromkeys(
        ("productive", "rework", "checkpoint", "evaluation", "start_up", "stalled", "down", "unknown"), 0.0
    )
    for it in kinds:
        seconds[it] = count * each_s / 4
    stop = {"t": since_t, "step": 5, "attempt": 0, "cause": "exception: " + "x" * 500}
    recovery = {
        "interruption": stop, "began_t": since_t, "over_t": None, "redone_steps": 3, "parts_s": {"load": 3.0},
    }  # fmt: skip
    answer = {
        "run": "r42", "wall_s": until_t - since_t, "since_t": since_t, "until_t": until_t, "seconds": seconds,
        "gpu_hours": {name: value / 36 for name, value in seconds.items()}, "spans": spans,
        "effective": {"run": 0.25}, "steps": 5, "step_time_s": 1.0, "consumed_per_s": {}, "mfu": None,
        "cost": None, "checkpointing": {"saves": 0, "failed": 0, "interval_s": None, "blocking_s": None},
        "interruptions": [stop] * 2000, "mtbi_s": 5.0, "causes": [], "recoveries": [recovery] * 2000,
        "not_observed": [],
    }  # fmt: skip
    page = as_html(report_of_accounts(answer, tone="trouble"))
    assert len(page.encode()) < _LARGEST_BYTES
