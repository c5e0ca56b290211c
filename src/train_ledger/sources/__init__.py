"""What was written? One module a format; all yield the same facts."""

from __future__ import annotations

from train_ledger.sources.follow import FolderFollower, Follower
from train_ledger.sources.jsonl import SignalDecoder
from train_ledger.sources.process import Liveness
from train_ledger.sources.run_files import Reading, RunFiles, read_all, read_whole
from train_ledger.sources.stream import Line

__all__ = [
    "FolderFollower",
    "Follower",
    "Line",
    "Liveness",
    "Reading",
    "RunFiles",
    "SignalDecoder",
    "read_all",
    "read_whole",
]
