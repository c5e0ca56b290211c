"""A page in a browser, as whoever watches a run has it open."""

from __future__ import annotations

import json
import time
from typing import Any

from waiting import wait_until

__all__ = ["PHONE", "WIDE", "Open", "Tasks", "Tools"]

WIDE = {"width": 1400, "height": 1000}
PHONE = {"width": 390, "height": 844}

_PAINTED = "performance.getEntriesByName('first-contentful-paint').map((paint) => paint.startTime)"


class Open:
    """A page in a browser, what the browser complained of, and what it asked for.

    `script` is run in it before its own; `context` says what kind of screen it is on.
    """

    def __init__(self, browser: Any, url: str, script: str = "", **context: Any) -> None:
        self.page = browser.new_context(**{"viewport": WIDE, **context}).new_page()
        self.page.add_init_script(script)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._refuse)
        self.page.on("request", lambda request: self.requests.append(request.url))
        started = time.monotonic()
        self.page.goto(url)
        self.opened_s = time.monotonic() - started

    def _refuse(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def wait_for(self, holds: str, timeout_s: float = 60.0) -> None:
        """Until this holds in the page, which lets nobody wait within it: its policy evaluates no text."""
        wait_until(lambda: self.page.evaluate(holds), timeout_s, f"for {holds}")

    def painted_s(self) -> float:
        """Seconds from asking for the page to its first paint with something in it."""
        self.wait_for(f"{_PAINTED}.length > 0")
        return float(self.page.evaluate(_PAINTED)[0]) / 1000

    @property
    def width(self) -> int:
        """Of all that the page holds, in pixels: more than its window's where it can be pushed sideways."""
        return int(self.page.evaluate("document.documentElement.scrollWidth"))

    def close(self) -> None:
        """Close the page, and what else its context holds."""
        self.page.context.close()


class Tools:
    """What the browser's own tools say of an open page, once its garbage went."""

    def __init__(self, opened: Open) -> None:
        self._session = opened.page.context.new_cdp_session(opened.page)
        self._session.send("Performance.enable")

    def held(self, looks: int = 5) -> dict[str, int]:
        """Bytes of script objects, nodes and listeners; the least of some looks, since drawing goes on."""
        seen = [self._look() for _ in range(looks)]
        return {name: min(it[name] for it in seen) for name in seen[0]}

    def _look(self) -> dict[str, int]:
        self._session.send("HeapProfiler.collectGarbage")
        told = {it["name"]: it["value"] for it in self._session.send("Performance.getMetrics")["metrics"]}
        return {name: int(told[name]) for name in ("JSHeapUsedSize", "Nodes", "JSEventListeners")}


class Tasks:
    """How long the page's own thread was held up by each task while this lasts.

    Counted in the thread's own time: how long it waited for a core among whatever else runs says nothing of
    the page.
    """

    def __init__(self, browser: Any, opened: Open) -> None:
        self._browser, self._page = browser, opened.page
        self.longest_ms = 0.0

    def __enter__(self) -> Tasks:
        self._browser.start_tracing(page=self._page, categories=["toplevel", "__metadata"])
        return self

    def __exit__(self, *_: object) -> None:
        events = json.loads(self._browser.stop_tracing())["traceEvents"]
        threads = {
            (event["pid"], event["tid"])
            for event in events
            if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
        }
        taken = [
            event["tdur"] / 1000
            for event in events
            if event["name"].endswith("RunTask")
            and (event["pid"], event["tid"]) in threads
            and "tdur" in event
        ]
        assert taken, "the browser told of no task"
        self.longest_ms = max(taken)
