"""What was written? One module a format; all yield the same facts."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from train_ledger.sources.files.folder import FolderFollower
from train_ledger.sources.files.follow import Follower
from train_ledger.sources.files.memory import FilesMemory
from train_ledger.sources.files.stream import Line
from train_ledger.sources.logs.kernel_log import KernelFault, pci_address
from train_ledger.sources.logs.log_files import LogReading, read_log_files
from train_ledger.sources.logs.said import Brought, Said
from train_ledger.sources.logs.torchrun import Ended
from train_ledger.sources.logs.traceback import Raised
from train_ledger.sources.processes.process import Liveness
from train_ledger.sources.run_facts import RunFacts
from train_ledger.sources.run_reading import RunReading, read_run
from train_ledger.sources.signal_lines.jsonl import SignalDecoder
from train_ledger.sources.signal_lines.run_files import RunFiles
from train_ledger.sources.signal_lines.whole_run import Reading, read_all, read_whole

if TYPE_CHECKING:
    from train_ledger.sources.reading.fact_reader import FactReader
    from train_ledger.sources.reading.incidents import Incident, Incidents
    from train_ledger.sources.reading.program import FormatSeen
    from train_ledger.sources.reading.progress import Attempt, Evaluated, Progress
    from train_ledger.sources.reading.reading import FactReading, FileRead, read_facts
    from train_ledger.sources.reading.run_logs import RunLogs

__all__ = [
    "Attempt",
    "Brought",
    "Ended",
    "Evaluated",
    "FactReader",
    "FactReading",
    "FileRead",
    "FilesMemory",
    "FolderFollower",
    "Follower",
    "FormatSeen",
    "Incident",
    "Incidents",
    "KernelFault",
    "Line",
    "Liveness",
    "LogReading",
    "Progress",
    "Raised",
    "Reading",
    "RunFacts",
    "RunFiles",
    "RunLogs",
    "RunReading",
    "Said",
    "SignalDecoder",
    "pci_address",
    "read_all",
    "read_facts",
    "read_log_files",
    "read_run",
    "read_whole",
]

_READING = {
    "FactReader": "reading.fact_reader",
    "Incident": "reading.incidents",
    "Incidents": "reading.incidents",
    "FormatSeen": "reading.program",
    "Attempt": "reading.progress",
    "Evaluated": "reading.progress",
    "Progress": "reading.progress",
    "FactReading": "reading.reading",
    "FileRead": "reading.reading",
    "read_facts": "reading.reading",
    "RunLogs": "reading.run_logs",
}
"""What knows every format, by its module: loaded when it is asked for, since most commands read no logs."""


def __getattr__(name: str) -> Any:
    if name not in _READING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_READING[name]}"), name)
