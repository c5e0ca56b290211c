"""The page says where the time went: a bar, a table, what is effective and what it cost."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from dash.page.views import healthy
from train_ledger.dash.page import PageView
from train_ledger.dash.page.accounts import accounts_part
from train_ledger.ledger.accounts import CATEGORIES, Accounts, Interruption

SECONDS = {**dict.fromkeys(CATEGORIES, 0.0), "productive": 900.0, "stalled": 60.0, "start_up": 40.0}


def made(**others: object) -> PageView:
    accounts = Accounts("r42", 1000.0, 2000.0, SECONDS, effective={"1h": 0.9, "24h": None, "run": 0.9})
    return replace(healthy(), accounts=replace(accounts, **others))  # type: ignore[arg-type]


def test_the_bar_is_as_wide_as_all_of_it() -> None:
    html = accounts_part(made())
    widths = [
        float(it)
        for it in re.findall(r'<rect class="account [\w-]+" x="[\d.]+" y="0" width="([\d.]+)"', html)
    ]
    assert widths == [900.0, 40.0, 60.0]
    assert "90.0%" in html
    assert "start-up" in html
    assert "rework" not in html
    assert "effective 90.0% of the run" in html
    assert "of the last 1h" not in html  # it is that of the run
    assert "effective 90.0% of the last 1h, effective 90.0% of the run" in accounts_part(made(since_t=-9e3))


def test_what_is_next_to_nothing_of_so_long_a_time_has_no_row() -> None:
    assert "down" not in accounts_part(made(seconds={**SECONDS, "down": 0.0003}))


def test_gpu_hours_and_cost_where_they_are_known() -> None:
    hours = {"productive": 256.0, "stalled": 17.07}
    html = accounts_part(made(gpu_hours=hours, price_per_gpu_hour=2.5))
    assert "<td>256.0</td><td>640</td>" in html
    assert "<td>17.1</td><td>42.67</td>" in html
    assert "USD" in html
    assert "USD" not in accounts_part(made(gpu_hours=hours))
    assert "GPU-hours" not in accounts_part(made())


def test_interruptions_are_counted() -> None:
    stops = tuple(Interruption(t, 0, 5) for t in (1.0, 2.0))
    assert "2 interruptions, 7 min 30 s between two" in accounts_part(made(interruptions=stops, mtbi_s=450.0))


@pytest.mark.parametrize(
    ("view", "said"),
    [
        (healthy(), "Being made."),
        (made(until_t=1000.0), "Nothing was heard of the run."),
    ],
)
def test_before_there_are_any_that_is_said(view: PageView, said: str) -> None:
    assert said in accounts_part(view)
