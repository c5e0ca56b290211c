"""How does a rank tell the nsys that it runs under which steps to record?

nsys that was started with --capture-range=cudaProfilerApi records between cudaProfilerStart and
cudaProfilerStop, and costs next to nothing before and after.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from train_ledger.signals.asking.cannot import CannotError

__all__ = ["REPORT", "nsys_recording"]

REPORT = "TRAIN_LEDGER_NSYS_REPORT"
"""The environment variable in which `train-ledger nsys` names the file that nsys writes."""


def nsys_recording() -> _Range:
    """A recording by nsys; raises CannotError where this process does not run under it, or has no CUDA."""
    report = os.environ.get(REPORT)
    if not report:
        raise CannotError("this rank does not run under nsys; start it with `train-ledger nsys -- CMD`")
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        raise CannotError("this process has not initialised CUDA, by which nsys is told what to record")
    return _Range(Path(report), cuda)


class _Range:
    """The range that nsys captures; it takes one, and writes its file when that ends."""

    _taken = False

    def __init__(self, report: Path, cuda: Any) -> None:
        if _Range._taken:
            raise CannotError(f"nsys has captured its range; it lies in {report}")
        self._report = report
        self._cuda = cuda

    def begin(self, first_step: int | None) -> None:
        _Range._taken = True
        self._cuda.profiler.start()

    def next(self) -> None:
        return

    def end(self) -> Callable[[], Path]:
        self.drop()
        return lambda: self._report

    def drop(self) -> None:
        self._cuda.profiler.stop()
