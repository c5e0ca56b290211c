"""What does Megatron's progress.txt tell: each start and each checkpoint of a run, over all of its restarts?

`--log-progress` appends to it; the pieces of a line are separated by tabs: time, `Job ID: `, `# GPUs: `, what
happened, and after it `name: value`. It carries the world size and survives restarts. "Saving async
checkpoint" is not on its storage before "Saved async checkpoint"; a local one is on its node alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from math import isfinite
from typing import Any, ClassVar

from train_ledger.facts import Event, Fact
from train_ledger.sources.formats.own_name import own_name
from train_ledger.sources.formats.pairs import pairs_in
from train_ledger.sources.lines.log_line import LogLine
from train_ledger.sources.lines.log_number import log_number
from train_ledger.sources.lines.log_time import log_time

__all__ = ["MegatronProgress"]

_HEAD = re.compile(rb"\A\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\tJob ID: [^\t\n]{0,200}\t# GPUs: \d")
_TEXT_VALUES = re.compile(r"[\w.+-]{0,80}\Z")
_EVENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "starting job": ("run_start", {}),
    "saved checkpoint": ("ckpt_saved", {"durable": True}),
    "saving async checkpoint": ("ckpt_start", {"async": True}),
    "saved async checkpoint": ("ckpt_saved", {"durable": True, "async": True}),
    "saved async local checkpoint": ("ckpt_saved", {"durable": False, "async": True, "local": True}),
    "saved local checkpoint": ("ckpt_saved", {"durable": False, "local": True}),
}


class MegatronProgress:
    """An `OwnedFormat`. Details hold `job_id`, `world_size`, `consumed_tokens`, throughputs, operations."""

    name: ClassVar[str] = "Megatron's progress.txt"
    marks: ClassVar[tuple[bytes, ...]] = ()
    knows: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        self.damaged: Counter[str] = Counter()

    @classmethod
    def fits(cls, head: bytes, file_name: str) -> bool:
        return _HEAD.match(head.lstrip()) is not None

    def read(self, line: LogLine, source: str) -> Iterator[Fact]:
        pieces = [it.strip() for it in line.text.split("\t")]
        t = log_time(pieces[0])
        if len(pieces) < 4 or t is None or not pieces[1].startswith("Job ID:"):
            if line.text.strip():
                self.damaged["no line of a progress file"] += 1
            return
        name, about = _EVENTS.get(pieces[3].lower(), ("note", {"what": pieces[3][:200]}))
        details = dict(about)
        if _TEXT_VALUES.match(job := pieces[1].removeprefix("Job ID:").strip()) and job:
            details["job_id"] = job
        gpus = log_number(pieces[2].rpartition(":")[2])
        if gpus is not None and isfinite(gpus):
            details["world_size"] = int(gpus)
        details |= _told(pieces[4:])
        step = details.pop("iteration", None)
        whole = int(step) if isinstance(step, float) and step.is_integer() else None
        yield Event(t, name, line.rank, whole, 0, line.host, source, details)

    def end(self) -> Iterator[Fact]:
        return iter(())


def _told(pieces: list[str]) -> dict[str, float]:
    """The numbers behind what happened; throughput is TFLOP/s per GPU, tokens are printed in billions."""
    found: dict[str, float] = {}
    for name, text in pairs_in(pieces):
        number = log_number(text.removesuffix("TFLOP/s/GPU"))
        if number is None:
            continue
        if name.startswith("Tokens (in billions)"):
            found["consumed_tokens"] = number * 1e9
        elif text.endswith("TFLOP/s/GPU"):
            found[f"{own_name(name)}_tflops"] = number
        else:
            found[own_name(name)] = number
    return found
