"""How do the drills go that the preflight takes over: the hang, and the page?

Each is the verb itself as a process of its own, so that it ends, with all that it started, where we end.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from train_ledger.chaos import servers
from train_ledger.ops.preflight import HangDrilled, PageDrilled

__all__ = ["HangDrill", "PageDrill", "hang_drill", "hang_drilled", "page_drill", "pages_drilled"]

_HANG_WITHIN_S = 240.0
_PAGE_WITHIN_S = 300.0
_THRESHOLD_S = 5.0
_MODE = "sleep"


class HangDrill:
    """The hang drill, while other things go on."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, culprit: int) -> None:
        self._process, self._log, self._culprit = process, log, culprit

    def result(self) -> HangDrilled:
        """Wait for its end; what it found."""
        try:
            self._process.wait(_HANG_WITHIN_S)
        except subprocess.TimeoutExpired:
            return HangDrilled(why_not=f"the drill was not over within {_HANG_WITHIN_S:.0f} s")
        return hang_drilled(_answer(self._log), self._culprit, _last(self._log))


@contextlib.contextmanager
def hang_drill(folder: Path, ranks: int) -> Iterator[HangDrill]:
    """Begin to hang a job of so many ranks in `folder`, which is not there yet."""
    culprit = ranks - 1
    words = ["hang", "--run", str(folder), "--ranks", str(ranks), "--mode", _MODE, "--culprit", str(culprit)]
    log = folder.with_name(f"{folder.name}.log")
    with _verb(words, log) as process:
        yield HangDrill(process, log, culprit)


def hang_drilled(answer: dict[str, Any] | None, culprit: int, said: str = "") -> HangDrilled:
    """What the verb's JSON says; None where there is none, and then what it said last."""
    if answer is None:
        return HangDrilled(why_not=f"the drill did not run: {said or 'it said nothing'}")
    dumps = answer.get("dumps") or {}
    missing = tuple(f"rank {rank}: {why}" for rank, why in (dumps.get("missing") or {}).items())
    if not dumps:
        missing = ("nobody looked for dumps",)
    return HangDrilled(
        right=bool(answer.get("right")),
        planted=culprit,
        named=tuple(answer.get("named") or ()),
        cause=str(answer.get("cause") or ""),
        there=len(dumps.get("there") or ()),
        missing=missing,
    )


class PageDrill:
    """The page drill, while other things go on."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process, self._log = process, log

    def result(self) -> tuple[tuple[PageDrilled, ...], str]:
        """Wait for its end; what it found, and why there is nothing where there is not."""
        try:
            self._process.wait(_PAGE_WITHIN_S)
        except subprocess.TimeoutExpired:
            return (), f"the drill was not over within {_PAGE_WITHIN_S:.0f} s"
        return pages_drilled(_answer(self._log), _last(self._log))


def pages_drilled(answer: dict[str, Any] | None, said: str = "") -> tuple[tuple[PageDrilled, ...], str]:
    """What the verb's JSON says of each way of the page."""
    if answer is None:
        return (), f"the drill did not run: {said or 'it said nothing'}"
    found = tuple(
        PageDrilled(
            way=_WAYS.get(str(it.get("path")), str(it.get("path"))),
            notified_s=it.get("notified_s"),
            messages=int(it.get("messages") or 0),
            why_not=str(it.get("why_not") or ""),
        )
        for it in answer.get("drills") or ()
    )
    return found, "" if found else "the drill drilled nothing"


_WAYS = {"embedded": "watch", "prometheus": "Prometheus and Alertmanager"}


@contextlib.contextmanager
def page_drill(folder: Path, run: Path | None, *, prometheus: bool, ring: bool) -> Iterator[PageDrill]:
    """Begin it; `run` is whose thresholds and receivers count, `ring` tells those receivers, too."""
    words = ["page", "--threshold-s", str(_THRESHOLD_S)]
    words += ["--prometheus" if prometheus else "--no-prometheus"]
    words += ["--run", str(run)] if run is not None else []
    words += ["--configured"] if ring else []
    log = folder / "page_drill.log"
    with _verb(words, log) as process:
        yield PageDrill(process, log)


def _verb(words: Sequence[str], log: Path) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    log.touch()
    return servers.child([sys.executable, "-m", "train_ledger", "drill", *words, "--json"], log)


def _answer(log: Path) -> dict[str, Any] | None:
    """The verb's answer: the last line that is a JSON object."""
    for line in reversed(log.read_text(errors="replace").splitlines()):
        if line.startswith("{"):
            try:
                return dict(json.loads(line))
            except ValueError:
                return None
    return None


def _last(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].removeprefix("train-ledger: ")[:300] if lines else ""
