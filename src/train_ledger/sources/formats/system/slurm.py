"""What does Slurm tell of a job: who ended it, and why?

`slurmstepd` tells why a step was cancelled and what the cgroup killed, `srun` how each task ended. A task is
what srun started: a rank, or a node's launcher; its number is not taken for a rank.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from train_ledger.facts import Fact, Fault
from train_ledger.sources.lines.log_line import LogLine
from train_ledger.sources.lines.log_time import TIME, log_time

__all__ = ["Slurm"]

_CANCELLED = re.compile(
    r"\*\*\* (?:STEP|JOB) (?P<job>[\w.+\[\]-]{1,40})(?: ON (?P<host>[\w.\[\],-]{1,255}))? CANCELLED AT "
    rf"(?P<t>{TIME})(?: DUE (?:TO|to) (?P<why>[A-Za-z][A-Za-z _-]{{0,80}}?))?(?: \*\*\*|,|$)"
)
_STEP_FAILED = re.compile(
    r"\*\*\* (?:STEP|JOB) (?P<job>[\w.+\[\]-]{1,40}) ON (?P<host>[\w.\[\],-]{1,255}) "
    r"FAILED \((?P<why>[^)]{1,200})\)"
)
_TASKS = re.compile(
    r"srun: error: (?P<host>[\w.\[\],-]{1,255}): tasks? (?P<tasks>[\d,-]{1,200}): (?P<how>\S.{0,200})"
)
_NODE = re.compile(r"srun: error: Node failure on (?P<host>[\w.\[\],-]{1,255})")
_MEMORY = re.compile(
    r"Detected \d{1,9} oom[-_ ]kill events?(?:\(s\))? in (?:StepId=|step )?(?P<job>[\w.]{0,40}\w)"
    r"|Exceeded (?:job|step) memory limit"
)
_EXIT = re.compile(r"Exited with exit code (\d{1,6})")
_SIGNALS = {
    "Killed": signal.SIGKILL,
    "Terminated": signal.SIGTERM,
    "Aborted": signal.SIGABRT,
    "Segmentation fault": signal.SIGSEGV,
    "Bus error": signal.SIGBUS,
    "Interrupt": signal.SIGINT,
    "Floating point exception": signal.SIGFPE,
}


class Slurm:
    """Lines of slurmstepd and srun."""

    name: ClassVar[str] = "Slurm"
    marks: ClassVar[tuple[bytes, ...]] = (b"slurmstepd: ", b"srun: error: ", b" CANCELLED AT ")
    knows: ClassVar[frozenset[str]] = frozenset()
    speaks_for_its_rank: ClassVar[bool] = False

    def read(self, line: LogLine, source: str) -> Iterable[Fact]:
        text = line.text
        if match := _CANCELLED.search(text):
            yield self._fault("killed", match["host"], _cancelled(match), source, log_time(match["t"]))
        elif match := _STEP_FAILED.search(text):
            yield self._fault("killed", match["host"], {"job": match["job"], "why": match["why"]}, source)
        elif match := _NODE.search(text):
            yield self._fault("killed", match["host"], {"why": "NODE FAILURE"}, source)
        elif match := _TASKS.search(text):
            yield from self._tasks(match, source)
        elif match := _MEMORY.search(text):
            details = {"why": "out of host memory", **({"job": match["job"]} if match["job"] else {})}
            yield self._fault("killed", line.host, details, source)

    def _tasks(self, match: re.Match[str], source: str) -> Iterator[Fault]:
        how = match["how"]
        details: dict[str, Any] = {"tasks": match["tasks"], "why": how.strip()}
        number = next((int(it) for word, it in _SIGNALS.items() if how.startswith(word)), None)
        if exited := _EXIT.search(how):
            details["exit_code"] = int(exited[1])
            code = "exception"
        elif number is not None:
            details["number"] = number
            code = "signal" if number != signal.SIGKILL else "killed"
        elif how.startswith("Out Of Memory"):
            code = "killed"
        else:
            return
        yield self._fault(code, match["host"], details, source)

    def _fault(
        self, code: str, host: str | None, details: dict[str, Any], source: str, t: float | None = None
    ) -> Fault:
        return Fault(t, code, None, host=host, source=source, details=details)

    def end(self) -> Iterable[Fact]:
        return ()


def _cancelled(match: re.Match[str]) -> dict[str, Any]:
    return {"job": match["job"], "why": (match["why"] or "cancelled").strip()}
