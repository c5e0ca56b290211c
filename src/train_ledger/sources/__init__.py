"""What was written? One module a format; all yield the same facts."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from train_ledger.sources.reading.fact_reader import FactReader
    from train_ledger.sources.reading.incidents import Incident, Incidents
    from train_ledger.sources.reading.program import FormatSeen
    from train_ledger.sources.reading.progress import Attempt, Evaluated, Progress
    from train_ledger.sources.reading.reading import FactReading, FileRead, read_facts
    from train_ledger.sources.reading.run_logs import RunLogs
    from train_ledger.sources.run_facts import RunFacts
    from train_ledger.sources.run_reading import RunReading, read_run
    from train_ledger.sources.signal_lines.jsonl import SignalDecoder
    from train_ledger.sources.signal_lines.run_files import RunFiles
    from train_ledger.sources.signal_lines.whole_run import Reading, read_all, read_whole

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

_HOME = {
    "Attempt": "reading.progress",
    "Brought": "logs.said",
    "Ended": "logs.torchrun",
    "Evaluated": "reading.progress",
    "FactReader": "reading.fact_reader",
    "FactReading": "reading.reading",
    "FileRead": "reading.reading",
    "FilesMemory": "files.memory",
    "FolderFollower": "files.folder",
    "Follower": "files.follow",
    "FormatSeen": "reading.program",
    "Incident": "reading.incidents",
    "Incidents": "reading.incidents",
    "KernelFault": "logs.kernel_log",
    "Line": "files.stream",
    "Liveness": "processes.process",
    "LogReading": "logs.log_files",
    "Progress": "reading.progress",
    "Raised": "logs.traceback",
    "Reading": "signal_lines.whole_run",
    "RunFacts": "run_facts",
    "RunFiles": "signal_lines.run_files",
    "RunLogs": "reading.run_logs",
    "RunReading": "run_reading",
    "Said": "logs.said",
    "SignalDecoder": "signal_lines.jsonl",
    "pci_address": "logs.kernel_log",
    "read_all": "signal_lines.whole_run",
    "read_facts": "reading.reading",
    "read_log_files": "logs.log_files",
    "read_run": "run_reading",
    "read_whole": "signal_lines.whole_run",
}


def __getattr__(name: str) -> Any:
    """Each name from its module when it is asked for: who reads dumps alone loads no reader of logs."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
