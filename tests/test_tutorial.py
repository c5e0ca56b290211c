"""The tutorial is true: each of its commands is executed, in its order, and says what it promises.

A browser stands open beside it, where there is one: what happens appears on its page without being loaded
again.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shell import Shell, blocks, commands
from train_ledger.chaos.servers import free_port
from waiting import wait_until

pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.slow

CHROMIUM = shutil.which("chromium")

TUTORIAL = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = blocks(TUTORIAL)
COMMANDS = [command for kind, text in BLOCKS if kind == "sh" for command in commands(text)]


def wait_for(holds: Callable[[], bool], what: str) -> None:
    wait_until(holds, 90.0, f"for: {what}")


def steps(run: Path, rank: int) -> int:
    path = run / "signals" / f"rank_{rank:05d}.jsonl"
    return path.read_text().count('"step"') if path.exists() else 0


def kinds(run: Path) -> list[str]:
    path = run / "ledger" / "journal.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line)["kind"] for line in lines]


class OpenPage:
    """The page in a browser, or nothing where there is no browser."""

    def __init__(self, browser: Any, url: str) -> None:
        self._page = browser.new_page(viewport={"width": 1400, "height": 1000})
        self._page.goto(url)
        self._page.locator("#curves .main-svg").first.wait_for(timeout=60_000)

    def shows(self, headline: str, within_s: float) -> None:
        said = self._page.locator("h1", has_text=re.compile(headline, re.IGNORECASE))
        said.wait_for(timeout=within_s * 1000)


@pytest.fixture
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        yield None
        return
    play = pytest.importorskip("playwright.sync_api").sync_playwright()
    with play as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    started = Shell(tmp_path)
    yield started
    started.close()


def test_the_tutorial_as_it_stands(tmp_path: Path, shell: Shell, browser: Any) -> None:
    run = tmp_path / "runs" / "first"
    run.mkdir(parents=True)
    files = {kind: text for kind, text in BLOCKS if kind != "sh"}
    (tmp_path / "train.py").write_text(files["python"])
    (run / "train-ledger.toml").write_text(files["toml"])
    port = str(free_port())
    typed = iter(command.replace("9467", port) for command in COMMANDS)

    shell.type(next(typed))  # torchrun
    wait_for(lambda: steps(run, 3) > 5, "four ranks train")
    shell.type(next(typed))  # watch
    wait_for(lambda: steps(run, 3) > 25, "they go on")
    assert "nothing wrong" in shell.type(next(typed))  # top
    assert "could not be told" in shell.type(next(typed))  # coverage

    page = None if browser is None else OpenPage(browser, f"http://127.0.0.1:{port}")

    assert next(typed) == "touch storage_is_down"
    shell.type("touch storage_is_down")
    wait_for(lambda: "verdict" in kinds(run), "a verdict")
    if page is not None:
        page.shows("culprit: rank 2", 60.0)  # how soon is measured beside the demo
    diagnosis = shell.type(next(typed))
    assert "culprit: rank 2" in diagnosis
    assert "next_batch" in diagnosis
    assert "train.py" in shell.type(next(typed))  # rank
    assert f"train-ledger hang --run {Path('runs/first')}" in shell.type(next(typed))  # runbook

    assert next(typed) == "rm storage_is_down"
    before = steps(run, 0)
    shell.type("rm storage_is_down")
    wait_for(lambda: steps(run, 0) > before + 5, "steps go on")
    if page is not None:
        page.shows("nothing wrong", 60.0)
    assert "productive" in shell.type(next(typed))  # account
    assert "rank 2" in shell.type(next(typed))  # postmortem
    assert kinds(run).count("incident_opened") == 1
    shell.type(next(typed))  # kill
    assert list(typed) == []
