"""Where does what lie in a run directory?

The run directory is the contract between the job that writes and everybody who reads. Paths are asked for
here and nowhere else spelled out. Only `signals` creates run.json; others merge single keys into it.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["RunDir", "RunDirError", "write_atomically"]

_SIGNAL_FILE = re.compile(r"rank_(\d+)\.jsonl(?:\.\d+)?\Z")


class RunDirError(Exception):
    """A run directory or a file in it cannot be used; the text says which file and what to do."""


def write_atomically(path: Path, data: bytes, *, mode: int = 0o644, to_disk: bool = False) -> None:
    """Replace `path` as a whole: a reader sees the old content or the new, never a part.

    `mode` is who may read it; with `to_disk` the content is on the disk when this returns. Raises OSError
    where the folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if to_disk:
                file.flush()
                os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


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

    def request(self, request_id: str) -> Path:
        return self.requests / f"{request_id}.json"

    def reply(self, request_id: str, rank: int) -> Path:
        return self.requests / f"{request_id}.rank_{rank}.json"

    def read_run(self) -> dict[str, Any]:
        """The content of run.json; {} where there is none.

        Raises RunDirError where the file is no JSON object.
        """
        return self._read_object(self.run_json)

    def merge_run(self, keys: Mapping[str, Any]) -> None:
        """Set single keys of run.json and keep the others, by a temporary file and rename."""
        merged = {**self.read_run(), **keys}
        write_atomically(self.run_json, json.dumps(merged, indent=1).encode() + b"\n")

    def _read_object(self, path: Path) -> dict[str, Any]:
        try:
            content = json.loads(path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise RunDirError(f"{path}: {error}; mend or remove the file") from error
        if not isinstance(content, dict):
            raise RunDirError(f"{path}: must be one JSON object, is {type(content).__name__}")
        return content


def _of_attempt(folder: Path, attempt: int) -> Path:
    return folder / f"attempt_{attempt}" if attempt else folder
