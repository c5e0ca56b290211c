"""Where does what lie in a run directory?

The run directory is the contract between the job that writes and everybody who reads. Paths are asked for
here and nowhere else spelled out. Only `signals` creates run.json; others merge single keys into it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train_ledger.small_files import parsed_json, read_small, write_atomically

__all__ = ["RunDir", "RunDirError", "parsed_json", "read_small", "users_folder", "write_atomically"]

_SIGNAL_FILE = re.compile(r"rank_(\d+)\.jsonl(?:\.\d+)?\Z", re.ASCII)


class RunDirError(Exception):
    """A run directory or a file in it cannot be used; the text says which file and what to do."""


def users_folder(variable: str, below_home: str) -> Path | None:
    """Our folder in the user's one that `variable` names, else the one below their home.

    None where the user has no home, as a container's may: neither HOME nor the user table tells one.
    """
    home = os.path.expanduser("~")
    named = os.environ.get(variable) or (os.path.join(home, below_home) if os.path.isabs(home) else None)
    return None if named is None else Path(named) / "train-ledger"


@dataclass(frozen=True, slots=True)
class RunDir:
    """Paths and small files of one run.

    >>> RunDir(Path("/runs/r42")).signals_of(5)
    PosixPath('/runs/r42/signals/rank_00005.jsonl')
    >>> RunDir(Path("/runs/r42")).comm_trace_of(5, attempt=1)
    PosixPath('/runs/r42/comm_traces/attempt_1/rank_5')
    """

    path: Path

    @classmethod
    def existing(cls, path: str | os.PathLike[str]) -> RunDir:
        """The run directory at `path`; raises RunDirError where there is none."""
        folder = Path(path)
        if not folder.exists():
            raise RunDirError(f"{folder}: there is no such run directory; check the path")
        if not folder.is_dir():
            raise RunDirError(f"{folder}: is a file, but a run directory is wanted")
        return cls(folder)

    @property
    def run_json(self) -> Path:
        return self.path / "run.json"

    @property
    def ranks_jsonl(self) -> Path:
        return self.path / "ranks.jsonl"

    @property
    def signals(self) -> Path:
        return self.path / "signals"

    @property
    def structured_logs(self) -> Path:
        return self.path / "structured_logs"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def hardware(self) -> Path:
        return self.path / "hardware"

    @property
    def requests(self) -> Path:
        return self.path / "requests"

    @property
    def notes(self) -> Path:
        """What people on call wrote down, a file a note: the ledger folder is the keeper's alone."""
        return self.path / "notes"

    @property
    def ledger(self) -> Path:
        return self.path / "ledger"

    @property
    def journal(self) -> Path:
        return self.ledger / "journal.jsonl"

    @property
    def incidents(self) -> Path:
        return self.ledger / "incidents"

    @property
    def reports(self) -> Path:
        return self.ledger / "reports"

    @property
    def keeper_lock(self) -> Path:
        return self.ledger / "keeper.lock"

    @property
    def config_file(self) -> Path:
        return self.path / "train-ledger.toml"

    def signals_of(self, rank: int) -> Path:
        return self.signals / f"rank_{rank:05d}.jsonl"

    def signal_files(self) -> Iterator[tuple[int, Path]]:
        """(rank, file) of every signal file there is, rotated ones too, by rank."""
        if not self.signals.is_dir():
            return
        for path in sorted(self.signals.iterdir()):
            if match := _SIGNAL_FILE.match(path.name):
                yield int(match[1]), path

    def comm_traces(self, attempt: int = 0) -> Path:
        """Folder of the Flight Recorder dumps of one attempt."""
        return _of_attempt(self.path / "comm_traces", attempt)

    def comm_trace_of(self, rank: int, attempt: int = 0) -> Path:
        return self.comm_traces(attempt) / f"rank_{rank}"

    def stacks(self, attempt: int = 0) -> Path:
        """Folder of the stacks of one attempt."""
        return _of_attempt(self.path / "stacks", attempt)

    def traces(self, attempt: int = 0) -> Path:
        """Folder of the profiles that ranks of one attempt were asked for."""
        return _of_attempt(self.path / "traces", attempt)

    def memory_snapshots(self, attempt: int = 0) -> Path:
        """Folder of the allocators' snapshots that ranks of one attempt were asked for."""
        return _of_attempt(self.path / "memory_snapshots", attempt)

    def request(self, request_id: str) -> Path:
        return self.requests / f"{request_id}.json"

    def reply(self, request_id: str, rank: int) -> Path:
        return self.requests / f"{request_id}.rank_{rank}.json"

    def read_run(self) -> dict[str, Any]:
        """The content of run.json; {} where there is none.

        Raises RunDirError where the file is no JSON object.
        """
        return self._read_object(self.run_json)

    def name_in(self, run: Mapping[str, Any]) -> str:
        """What the run is called: as `run`, the content of its run.json, says, else as its folder.

        >>> RunDir(Path("/runs/r42")).name_in({}), RunDir(Path("/runs/r42")).name_in({"run": "big"})
        ('r42', 'big')
        """
        told = run.get("run")
        name = str(told) if isinstance(told, str | int) and told else self.path.resolve().name
        return name.encode("utf-8", "replace").decode()  # a folder's name may be no text

    def log_folders(self) -> tuple[Path, ...]:
        """Where the run's logs lie, there or not: its own folder, and the one that run.json names."""
        try:
            told = self.read_run().get("log_dir")
        except RunDirError:  # whoever needs run.json says so
            told = None
        if not isinstance(told, str) or not told or "\0" in told:  # which no folder can be called
            return (self.logs,)
        return self.logs, self.path / told  # pathlib takes an absolute path as it is

    def merge_run(self, keys: Mapping[str, Any]) -> None:
        """Set single keys of run.json and keep the others, by a temporary file and rename."""
        merged = {**self.read_run(), **keys}
        write_atomically(self.run_json, json.dumps(merged, indent=1).encode() + b"\n")

    def _read_object(self, path: Path) -> dict[str, Any]:
        try:
            content = parsed_json(read_small(path, limit_bytes=16 << 20))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise RunDirError(f"{path}: {why}; mend or remove the file") from error
        if not isinstance(content, dict):
            raise RunDirError(f"{path}: must be one JSON object, is {type(content).__name__}")
        return content


def _of_attempt(folder: Path, attempt: int) -> Path:
    return folder / f"attempt_{attempt}" if attempt else folder
