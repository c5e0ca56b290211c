"""What does the kernel's log tell of GPUs and of killed processes, as facts?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from train_ledger.facts import Fact
from train_ledger.sources.lines.log_line import LogLine
from train_ledger.sources.logs.kernel_log import MARKS, fault_of, fault_told

__all__ = ["Kernel"]


class Kernel:
    """XIDs of the NVIDIA driver, and the out-of-memory killer, in every print of the kernel log."""

    name: ClassVar[str] = "kernel log"
    marks: ClassVar[tuple[bytes, ...]] = MARKS
    knows: ClassVar[frozenset[str]] = frozenset()
    speaks_for_its_rank: ClassVar[bool] = False

    written_t: float | None = None
    """When the file was written last, for the year that some prints leave out."""

    def read(self, line: LogLine, source: str) -> Iterable[Fact]:
        found = fault_told(line.text, host=line.host, written_t=self.written_t, source=source)
        if found is not None:
            yield fault_of(found)

    def end(self) -> Iterable[Fact]:
        return ()
