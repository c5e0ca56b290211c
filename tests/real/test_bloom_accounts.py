"""The chronicle of BLOOM's training: what came of the time between the iterations that it dates.

Its figures (../shared/research/ux.md §4) are those of a step of 105.5 s. The chronicle dates iterations by
the day alone, so that of the night of 30 April the hour is chosen for which the printed figure holds.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import pytest

from train_ledger.config import Alerts
from train_ledger.facts import Step
from train_ledger.ledger.accounts import Accounts, History, Price, accounts_of
from train_ledger.sources import read_facts

CHRONICLE = Path(__file__).parents[3] / "shared/data/logs/07_bloom_tr11_chronicles.md"
pytestmark = pytest.mark.skipif(not CHRONICLE.exists(), reason="../shared is not here")

STEP_S = 105.5
GPUS = 384


def days() -> dict[int, datetime]:
    """Under which day's heading each iteration's line stands."""
    found: dict[int, datetime] = {}
    day = None
    for line in CHRONICLE.read_text().splitlines():
        if heading := re.match(r"### (\d{4}-\d\d-\d\d)", line):
            day = datetime.fromisoformat(heading[1]).replace(tzinfo=UTC)
        if (told := re.search(r"iteration +(\d+)/ *\d+ \|", line)) and day:
            found.setdefault(int(told[1]), day)
    return found


def between(first: tuple[int, datetime], last: tuple[int, datetime]) -> Accounts:
    """The accounts of a log that has these two lines alone."""
    history = History("tr11-176B-ml", {"world_size": GPUS})
    for step, day in (first, last):
        history.add(Step(day.timestamp(), step, None, values={"step_time_s": STEP_S}))
    since_t, until_t = first[1].timestamp(), last[1].timestamp()
    return accounts_of(history, Alerts(), until_t, since_t=since_t, price=Price(2.5))


def share(accounts: Accounts) -> float:
    return accounts.seconds["productive"] / accounts.wall_s


def test_the_lines_are_read_and_a_step_takes_about_as_long_as_is_said() -> None:
    steps = [it for it in read_facts([CHRONICLE]) if isinstance(it, Step)]
    own_s = [it.values["step_time_s"] for it in steps if "step_time_s" in it.values]
    assert {12_695, 31_214, 45_000} <= {it.step for it in steps}
    assert median(own_s) == pytest.approx(STEP_S, rel=0.01)


def test_from_full_throttle_to_the_first_spike() -> None:
    day = days()
    accounts = between((12_695, day[12_695]), (31_214, day[31_214]))
    assert share(accounts) == pytest.approx(0.905, abs=0.0005)
    assert accounts.seconds["unknown"] == pytest.approx(accounts.wall_s * 0.0955, rel=0.01)


def test_up_to_the_evaluation_that_hung() -> None:
    day = days()
    evening = day[45_000] + timedelta(hours=20, minutes=56)
    assert share(between((31_214, day[31_214]), (45_000, evening))) == pytest.approx(0.892, abs=0.0005)
    earliest, latest = day[45_000], day[45_000] + timedelta(days=1)
    shares = [share(between((31_214, day[31_214]), (45_000, it))) for it in (earliest, latest)]
    assert shares == pytest.approx([0.935, 0.886], abs=0.0005)


def test_up_to_the_change_to_half_the_nodes() -> None:
    changed = datetime(2022, 7, 4, tzinfo=UTC)
    assert "### 2022-07-04 switched from 48 to 24 nodes" in CHRONICLE.read_text()
    accounts = between((12_695, days()[12_695]), (94_767, changed))
    assert share(accounts) == pytest.approx(0.928, abs=0.0005)
    assert accounts.gpu_hours is not None
    assert sum(accounts.gpu_hours.values()) == pytest.approx(108 * 24 * GPUS, rel=1e-6)


def test_at_full_speed_the_rest_takes_the_124_7_days_that_they_reckoned() -> None:
    assert pytest.approx(124.7, abs=0.05) == (115_311 - 12_695) * 105 / 86_400
