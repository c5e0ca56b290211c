"""A page that stays open for two days holds no more on its second evening than on its first."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dash.page.days import Days
from dash.page.opened import Open, Tools
from train_ledger.dash.page import RunPage, serve
from waiting import wait_until

pytestmark = pytest.mark.slow

MOST_GROWN = {"JSHeapUsedSize": 1_500_000, "Nodes": 500, "JSEventListeners": 20}
"""In a day of 288 updates: what is kept of each adds up to more, as a leak shows that is planted."""
SERVER_MOST_GROWN_BYTES = 12_000_000

REDRAW = "async () => { for (const entry of drawn.values()) entry.text = ''; await refresh(); }"
LEAK = """() => {
  window.kept = [];
  const [ownTake, ownReplace] = [take, replaceHtml];
  window.take = (update) => { kept.push(JSON.stringify(update)); ownTake(update); };
  window.replaceHtml = (part, html) => { kept.push(part.firstChild); ownReplace(part, html); };
}"""


def test_two_days_on_the_open_page_leave_nothing_behind(browser: Any) -> None:
    days = Days()
    days.until = 1
    with serve(RunPage(days.look, days), port=0, interval_s=0.02) as url:
        opened = Open(browser, url)
        opened.page.locator("#curves .main-svg").first.wait_for(timeout=60_000)
        tools = Tools(opened)
        first, server_first_bytes = held_after(opened, tools, days, Days.A_DAY), resident_bytes()
        second, server_second_bytes = held_after(opened, tools, days, Days.A_DAY), resident_bytes()
        print(f"after a day {first}, {server_first_bytes}; after two {second}, {server_second_bytes}")
        assert grown(first, second) == set()
        assert server_second_bytes - server_first_bytes < SERVER_MOST_GROWN_BYTES
        assert opened.complaints == []

        opened.page.evaluate(LEAK)
        leaked = held_after(opened, tools, days, Days.A_DAY // 3)
        print(f"with a leak {leaked}")
        assert grown(second, leaked) >= {"JSHeapUsedSize", "Nodes"}, "such a leak would not be seen"


def held_after(opened: Open, tools: Tools, days: Days, looks: int) -> dict[str, int]:
    """What the browser holds once it has taken so many looks more, and drawn the curves now and then."""
    for _ in range(6):
        days.until += looks // 6
        wait_until(lambda: days.looks == days.until, 120.0, "for the page to be told of the run")
        opened.page.evaluate(REDRAW)
    opened.wait_for(f"stateT === {days.look().state.t}")
    opened.page.evaluate(REDRAW)
    return tools.held()


def grown(before: dict[str, int], after: dict[str, int]) -> set[str]:
    return {name for name, most in MOST_GROWN.items() if after[name] - before[name] > most}


def resident_bytes() -> int:
    """Of this process, which serves the page."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
