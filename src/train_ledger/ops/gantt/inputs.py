"""Which files tell the Gantt of which rank?"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from train_ledger.fields import LARGEST_WORLD_SIZE
from train_ledger.ops.gantt.selection import GanttError, Selection
from train_ledger.ops.gantt.tally import Tally
from train_ledger.run_dir import RunDir
from train_ledger.sources import Follower, Line, SignalDecoder
from train_ledger.sources.formats.torchtitan.torchtitan_record import read_record

__all__ = ["Inputs", "find_inputs", "lines_of"]

_SIGNALS = re.compile(r"rank_(\d{1,7})\.jsonl(?:\.(\d{1,9}))?\Z", re.ASCII)
_TITAN = re.compile(r"(.{1,200})\.global_rank_(\d{1,7})\.(.{1,60})\.jsonl\Z")
_HEAD_BYTES = 1 << 14
_PARTS = ("run.json", "signals", "structured_logs", "ranks.jsonl")
_WANTED = "a run directory, a folder of torchtitan's structured logs, or such files"


@dataclass(slots=True)
class Inputs:
    """Files by rank, each rank's oldest first, and where ranks run as far as is known."""

    signals: dict[int, list[Path]] = field(default_factory=dict)
    titan: dict[int, list[Path]] = field(default_factory=dict)
    host_of: dict[int, str] = field(default_factory=dict)
    logs: list[Path] = field(default_factory=list)

    @property
    def ranks(self) -> list[int]:
        return sorted({*self.signals, *self.titan})


def find_inputs(paths: Sequence[Path], selection: Selection, tally: Tally) -> Inputs:
    """The files of the selected ranks below `paths`; raises GanttError where there are none."""
    signals: dict[int, list[tuple[int, Path]]] = defaultdict(list)
    titan: dict[int, list[tuple[str, Path]]] = defaultdict(list)
    inputs = Inputs()
    for path in paths:
        for file in _files(path):
            if (match := _SIGNALS.match(file.name)) is not None:
                signals[int(match[1])].append((-int(match[2] or 0), file))
            elif (match := _TITAN.match(file.name)) is not None:
                titan[int(match[2])].append((match[3], file))
            else:
                titan[_rank_by_head(file)].append((file.name, file))
        inputs.logs += _logs(path)
        if (path / "ranks.jsonl").is_file():
            _place(path / "ranks.jsonl", inputs, tally)
    inputs.signals = {rank: [file for _, file in sorted(it)] for rank, it in signals.items()}
    inputs.titan = {rank: [file for _, file in sorted(it)] for rank, it in titan.items()}
    _leave_out_impossible(inputs, tally)
    if not inputs.ranks:
        raise GanttError(f"{paths[0]}: nothing to draw is in it; wanted is {_WANTED}")
    _look_at_heads(inputs)
    for files in (inputs.signals, inputs.titan):
        for rank in [rank for rank in files if rank and not selection.has_rank(rank)]:
            del files[rank]
    if not any(map(selection.has_rank, inputs.ranks)):
        raise GanttError(f"{paths[0]}: none of the ranks that are asked for is in it")
    return inputs


def _leave_out_impossible(inputs: Inputs, tally: Tally) -> None:
    for files in (inputs.signals, inputs.titan):
        for rank in [rank for rank in files if rank >= LARGEST_WORLD_SIZE]:
            for path in files.pop(rank):
                tally.miss("file of a rank that no job has", path.name)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        run = RunDir(path)
        if any((path / part).exists() for part in _PARTS):
            return [file for _, file in run.signal_files()] + _titan_files(run.structured_logs)
        return [it for it in sorted(path.iterdir()) if _SIGNALS.match(it.name)] + _titan_files(path)
    if not path.exists():
        raise GanttError(f"{path}: there is no such file or folder; wanted is {_WANTED}")
    return [path]


def _titan_files(folder: Path) -> list[Path]:
    return [it for it in sorted(folder.iterdir()) if _TITAN.match(it.name)] if folder.is_dir() else []


def _logs(path: Path) -> list[Path]:
    """Those of a run wherever they lie, but of no folder that holds its signals; its kernels' logs."""
    run = RunDir(path)
    kernels = sorted(run.hardware.glob("*.kern.log")) if run.hardware.is_dir() else []
    folders = (it for it in run.log_folders() if it.is_dir())
    return [it for it in folders if not run.path.resolve().is_relative_to(it.resolve())] + kernels


def _rank_by_head(path: Path) -> int:
    """Of a file of torchtitan's that was given another name."""
    record = next((read_record(it.decode(errors="replace")) for it in _head(path)), None)
    rank = record.whose[1] if record is not None else None
    return 0 if rank is None else rank


def _place(path: Path, inputs: Inputs, tally: Tally) -> None:
    decoder = SignalDecoder()
    for line in lines_of(path, tally):
        place = decoder.place(line.data, f"{path.name}:{line.number}")
        if place is not None and place[1] is not None:
            inputs.host_of[place[0]] = place[1]
    for reason, number in decoder.bad_lines.items():
        tally.miss(reason, decoder.where.get(reason, path.name), number)


def _look_at_heads(inputs: Inputs) -> None:
    """Where ranks run, by the first lines of their newest files, for those of which it is not known."""
    decoder = SignalDecoder()
    for rank, files in inputs.signals.items():
        if rank not in inputs.host_of:
            for data in _head(files[-1]):
                fact = decoder.decode(data, rank=rank) if b'"run_start"' in data else None
                host = getattr(fact, "host", None)
                if host is not None:
                    inputs.host_of[rank] = host
    for rank, files in inputs.titan.items():
        for data in _head(files[-1])[:1]:
            record = read_record(data.decode(errors="replace"))
            if record is not None and isinstance(record.host_name, str) and record.host_name:
                inputs.host_of.setdefault(rank, record.host_name)


def _head(path: Path) -> list[bytes]:
    if not path.is_file():  # a FIFO of that name would keep us waiting
        return []
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES).split(b"\n")[:-1]
    except OSError:  # `lines_of` counts it
        return []


def lines_of(path: Path, tally: Tally) -> Iterator[Line]:
    """The whole lines of a file as it is now; what cannot be read is counted."""
    follower = Follower(path)
    try:
        while True:
            lines = follower.poll()
            yield from lines
            if follower.caught_up:
                break
        follower.give_up_tails()
    finally:
        for reason, number in follower.skipped.items():
            tally.miss(reason, follower.skipped.where.get(reason, path.name), number)
        follower.close()
