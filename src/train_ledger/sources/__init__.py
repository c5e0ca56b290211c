"""What was written? One module a format; all yield the same facts."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from train_ledger.sources.folder import FolderFollower
from train_ledger.sources.follow import Follower
from train_ledger.sources.jsonl import SignalDecoder
from train_ledger.sources.kernel_log import KernelFault, pci_address
from train_ledger.sources.log_files import LogReading, read_log_files
from train_ledger.sources.memory import FilesMemory
from train_ledger.sources.process import Liveness
from train_ledger.sources.run_facts import RunFacts, RunReading, read_run
from train_ledger.sources.run_files import Reading, RunFiles, read_all, read_whole
from train_ledger.sources.said import Brought, Said
from train_ledger.sources.stream import Line
from train_ledger.sources.torchrun import Ended
from train_ledger.sources.traceback import Raised

if TYPE_CHECKING:
    from train_ledger.sources.fact_reader import FactReader
    from train_ledger.sources.incidents import Incident, Incidents
    from train_ledger.sources.program import FormatSeen
    from train_ledger.sources.progress import Attempt, Evaluated, Progress
    from train_ledger.sources.reading import FactReading, FileRead, read_facts
    from train_ledger.sources.run_logs import RunLogs

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
    "FactReader": "fact_reader",
    "Incident": "incidents",
    "Incidents": "incidents",
    "FormatSeen": "program",
    "Attempt": "progress",
    "Evaluated": "progress",
    "Progress": "progress",
    "FactReading": "reading",
    "FileRead": "reading",
    "read_facts": "reading",
    "RunLogs": "run_logs",
}
"""What knows every format, by its module: loaded when it is asked for, since most commands read no logs."""


def __getattr__(name: str) -> Any:
    if name not in _READING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_READING[name]}"), name)
