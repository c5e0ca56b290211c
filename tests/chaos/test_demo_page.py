"""The demo's incident appears on the page that stands open since the job began, without being loaded again.

With TRAIN_LEDGER_SCREENSHOTS=docs/images the pictures of the documentation are made anew.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from dash.page.opened import PHONE, WIDE, Open
from train_ledger.chaos import plan_of
from train_ledger.ledger import journal
from train_ledger.run_dir import RunDir
from waiting import wait_until

pytest.importorskip("torch", reason="the demo trains with torch: pip install 'train-ledger[demo]'")
pytestmark = pytest.mark.slow

APPEARS_WITHIN_S = 5.0
"""After the keeper has found its verdict."""

CONFIGURATION = """
[alerts]
stall_floor_s = 5
process_gone_s = 5
evaluation_interval_s = 1

[respond]
on_page = ["dump", "stacks", "diagnose"]

[cost]
gpu_price_per_hour = 2.5
"""
"""As the demo's own."""

SCREENS: dict[str, dict[str, Any]] = {
    "page": {"viewport": WIDE, "color_scheme": "light"},
    "page-dark": {"viewport": WIDE, "color_scheme": "dark"},
    "page-on-a-phone-light": {"viewport": PHONE, "color_scheme": "light", "device_scale_factor": 2},
    "page-on-a-phone": {"viewport": PHONE, "color_scheme": "dark", "device_scale_factor": 2},
}
WATCHES_HEADLINE = """
  window.opened = Math.random();
  window.appeared = null;
  new MutationObserver(() => {
    const said = document.querySelector("h1")?.textContent ?? "";
    if (appeared === null && /culprit/i.test(said)) appeared = Date.now();
  }).observe(document, { childList: true, subtree: true });
"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDir]:
    """Of the demo's job and its keeper, which serves a page on a port of its own, and goes on."""
    run = RunDir(tmp_path / "runs" / "r42")
    run.path.mkdir(parents=True)
    run.config_file.write_text(CONFIGURATION)
    watch = [sys.executable, "-m", "train_ledger", "watch", "runs/r42", "--port", "0"]
    job = plan_of("loader", 3, 4, hang_at=20).command(RunDir(Path("runs/r42")))
    with contextlib.ExitStack() as stack:
        for name, command in (("watch", watch), ("job", job)):
            stack.enter_context(started(command, tmp_path, tmp_path / f"{name}.log"))
        yield run


@contextlib.contextmanager
def started(command: Sequence[str], folder: Path, log: Path) -> Iterator[None]:
    """A command with all that it starts, until it is no longer wanted."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=folder, stdout=file, stderr=file, env=environment, start_new_session=True
        )
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):  # the launcher ends its ranks by the first
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, number)
                process.wait(timeout=60)


def test_the_incident_appears_without_a_reload_within_five_seconds(
    browser: Any, run: RunDir, tmp_path: Path
) -> None:
    address = address_in(tmp_path / "watch.log")
    pages = {name: Open(browser, address, WATCHES_HEADLINE, **screen) for name, screen in SCREENS.items()}
    began = {name: opened.page.evaluate("opened") for name, opened in pages.items()}
    assert [opened.page.evaluate("appeared") for opened in pages.values()] == [None] * len(SCREENS)
    for opened in pages.values():
        opened.wait_for("appeared !== null", 240.0)
    verdict_t = next(it["t"] for it in journal.read(run.journal).entries if it["kind"] == "verdict")
    delays_s = {name: it.page.evaluate("appeared") / 1000 - verdict_t for name, it in pages.items()}
    print(f"seconds from the verdict to the page: {delays_s}")
    assert min(delays_s.values()) < APPEARS_WITHIN_S

    pictured(pages, Path(os.environ.get("TRAIN_LEDGER_SCREENSHOTS") or tmp_path))
    for name, opened in pages.items():
        assert opened.page.evaluate("opened") == began[name], "it was loaded again"
        assert opened.page.locator("h1").inner_text().lower().startswith("culprit: rank 3")
        assert opened.width <= SCREENS[name]["viewport"]["width"]
        assert opened.complaints == []


def address_in(log: Path) -> str:
    """Of the page that the keeper says it serves."""

    def said() -> re.Match[str] | None:
        return re.search(r"web page on (\S+)", log.read_text()) if log.exists() else None

    wait_until(said, 120.0, "for a page")
    found = said()
    assert found is not None
    return found[1]


def pictured(pages: dict[str, Open], folder: Path) -> None:
    """A picture of each page, with its curves, as a whole where the screen is wide."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, opened in pages.items():
        opened.page.locator("#curves .main-svg").first.wait_for(timeout=60_000)
        opened.wait_for("!asking")
        path = folder / f"{name}.png"
        is_wide = SCREENS[name]["viewport"] is WIDE
        # Closed, they tell no paths of the machine on which this runs.
        opened.page.evaluate(
            "document.querySelectorAll('#stacks details').forEach((it) => { it.open = false; })"
        )
        opened.page.screenshot(path=path, full_page=is_wide)
        assert path.stat().st_size > 20_000
