"""What is hostile in a run's own files does nothing on its page: it is read there, cut and made visible."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from dash.page.opened import PHONE, WIDE, Open, Tasks
from hang.recorder import Job
from train_ledger.run_dir import RunDir
from watch.test_loop import Watching

pytestmark = pytest.mark.slow

MARKUP = "<img src=x onerror=alert('markup')><script>alert('script')</script></script></title></textarea>"
QUOTES = "\"><svg onload=alert('quote')>' onmouseover='alert(1)' x=\"`${alert(2)}`"
UNSEEN = "\x00\x1b[2J\x1b]0;owned\x07\u202egnp.exe\u2066\u200b\ud800\ufeff\r\x85\u2028"
ADDRESS = "javascript:alert('address')"
ALL = f"{MARKUP} {QUOTES} {UNSEEN} {ADDRESS} https://evil.invalid/x.js"
LONG = "W" * 1_000_000
TOO_LONG = 1_500_000
RANKS = 4

STACK = f"""\
Current thread 0x00007f0a3bfff6c0 (most recent call first):
  File "/job/{QUOTES}.py", line 8 in {MARKUP.replace(" ", "_")}
  File "/job/train.py", line 88 in <module>
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """Every place that a name or a text comes from holds all of it; rank 1 never came, rank 2 raised."""
    run = RunDir(tmp_path_factory.mktemp("runs") / "<b>&quot;r42")
    run.signals.mkdir(parents=True)
    run.logs.mkdir()
    run.run_json.write_text(json.dumps({"run": ALL, "world_size": RANKS, "device": ALL}))
    run.config_file.write_text("[alerts]\nstall_floor_s = 5\n\n[respond]\non_page = ['diagnose']\n")
    t = time.time() - 90
    for rank in range(RANKS):
        run.signals_of(rank).write_text("".join(json.dumps(it) + "\n" for it in lines(rank, t)))
    with run.signals_of(3).open("a") as file:
        file.write(json.dumps({"t": t + 61, "rank": 3, "event": ALL, "x": "W" * TOO_LONG}) + "\n")
        file.write(f"{ALL.encode('utf-8', 'replace').decode()}\n\x00\x00\n{'[' * 5000}\n")
    write_dumps_and_stacks(run)
    for name in ("<img src=x onerror=alert('file')>.log", "\udcff\udcfe.log", "javascript:alert(1).log"):
        (run.logs / name).write_bytes(log(is_text=name.startswith("<")))
    run.notes.mkdir()
    (run.notes / "note.json").write_text(json.dumps({"t": t + 70, "by": ALL, "text": ALL}))
    return run


def lines(rank: int, t: float) -> Iterator[dict[str, Any]]:
    """A rank whose host is called by something hostile, steps, and an end or none."""
    host = (MARKUP, QUOTES, UNSEEN, ADDRESS)[rank]
    start = {"event": "run_start", "world_size": RANKS, "host": host, "gpu": ALL, "uuid": ALL}
    yield {"t": t, "rank": rank, **start}
    for step in range(1, 61):
        yield {"t": t + step, "step": step, "rank": rank, "loss": 2.0, "step_time_s": 1.0, ALL: 1.0}
    yield {"t": t + 60, "rank": rank, "event": "phase_start", "phase": ALL}
    if rank == 2:
        yield {"t": t + 60.2, "rank": rank, "event": "exception", "type": MARKUP, "message": ALL + LONG}


def write_dumps_and_stacks(run: RunDir) -> None:
    frames = [{"name": ALL, "filename": f"/job/{QUOTES}.py", "line": 8}]
    job = Job(RANKS)
    job.groups["0"] = (ALL, list(range(RANKS)))
    job.issue(range(RANKS), "nccl:" + MARKUP, done=True, frames=frames)
    job.issue([0, 2, 3], "nccl:" + QUOTES, dtype=ALL, frames=frames)
    job.write(run.comm_traces(), as_json=True)
    run.stacks().mkdir(parents=True)
    for rank in range(RANKS):
        (run.stacks() / f"rank_{rank}.txt").write_text(STACK)


def log(*, is_text: bool) -> bytes:
    """A traceback of rank 2, and a line that is longer than any is read."""
    hostile = ALL if not is_text else "".join(it for it in ALL if it >= " ").replace("\ud800", "")
    told = (
        f"[rank2]: Traceback (most recent call last):\n"
        f'[rank2]:   File "{QUOTES}", line 1, in {MARKUP}\n'
        f"[rank2]: RuntimeError: {hostile}{LONG}\n"
        f"{hostile}\n{'W' * TOO_LONG}\n"
    )
    return told.encode("utf-8", "surrogatepass")


@pytest.fixture(scope="module")
def address(run: RunDir) -> Iterator[str]:
    """Of the page of its keeper, once there is a verdict."""
    watching = Watching(str(run.path), "--port", "0")
    try:
        yield re.sub(r".*web page on ", "", watching.line("web page on"))
    finally:
        watching.process.kill()
        watching.process.wait()


STRANGE = "img, iframe, object, embed, textarea, form, base, [onload], [onerror], [onmouseover], [onclick]"
SHOWN = """() => {
  const texts = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) texts.push(walk.currentNode.data);
  return texts;
}"""
UNSEEABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


@pytest.mark.parametrize("screen", [WIDE, PHONE], ids=["wide", "phone"])
def test_what_is_hostile_does_nothing(browser: Any, address: str, screen: dict[str, int]) -> None:
    opened = Open(browser, address, viewport=screen)
    page = opened.page
    page.locator("h1", has_text=re.compile("culprit: rank [12]", re.IGNORECASE)).wait_for(timeout=120_000)
    page.locator("#curves .main-svg").first.wait_for(timeout=60_000)
    with Tasks(browser, opened) as tasks:
        for _ in range(3):
            before = page.evaluate("stateT")
            opened.wait_for(f"stateT > {before}")
    assert tasks.longest_ms < 100

    assert opened.complaints == []
    assert opened.width <= screen["width"]
    assert {urlsplit(url).netloc for url in opened.requests} == {urlsplit(address).netloc}
    scripts = page.evaluate("Array.from(document.scripts, (it) => it.getAttribute('src'))")
    assert sorted(scripts) == ["static/page.js", "static/plotly.min.js", "static/plots.js"]
    assert page.evaluate(f"document.querySelectorAll({STRANGE!r}).length") == 0
    links = page.evaluate("Array.from(document.links, (it) => it.href)")
    assert links
    assert all(link.startswith(f"{address}/") for link in links)

    texts = page.evaluate(SHOWN)
    assert any("<script>alert('script')</script>" in text for text in texts)
    assert [text for text in texts if UNSEEABLE.search(text)] == []
    assert max(map(len, texts)) < 3000
    assert any("WWW…" in text or text.endswith("…") for text in texts)
    assert "too_long" in page.locator("#unobserved").inner_text()
