"""What would the files of a day look like?"""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import msgspec

from train_ledger.chaos.days.day import Day
from train_ledger.facts import Event, Fact, Fault, HardwareReading, Step
from train_ledger.fields import written_number
from train_ledger.run_dir import RunDir, write_atomically

__all__ = ["write_day"]

_encode = msgspec.json.Encoder().encode


def write_day(path: Path, day: Day) -> RunDir:
    """Write the run directory of a day, as its ranks and whoever records the hardware would have.

    What was seen of processes stands in no file.
    """
    run_dir = RunDir(path)
    run_dir.signals.mkdir(parents=True, exist_ok=True)
    (path / "hardware").mkdir(exist_ok=True)
    write_atomically(run_dir.run_json, _encode(dict(day.run_json)) + b"\n")
    with contextlib.ExitStack() as stack:
        files: dict[Path, IO[bytes]] = {}
        for told in day.told:
            line = _line(run_dir, told.fact)
            if line is None:
                continue
            where, content = line
            if where not in files:
                files[where] = stack.enter_context(where.open("wb"))
            files[where].write(content)
    return run_dir


def _line(run_dir: RunDir, fact: Fact | HardwareReading) -> tuple[Path, bytes] | None:
    if isinstance(fact, HardwareReading):
        return run_dir.path / "hardware" / f"{fact.host}.jsonl", _encode(_reading(fact)) + b"\n"
    if isinstance(fact, Fault):
        text = f"{fact.t:.6f} {fact.host} kernel: {_kernel_text(fact)}\n"
        return run_dir.path / "hardware" / f"{fact.host}.kern.log", text.encode()
    if fact.rank is None or (isinstance(fact, Event) and fact.name == "process_gone"):
        return None
    return run_dir.signals_of(fact.rank), _encode(_signal(fact)) + b"\n"


def _kernel_text(fault: Fault) -> str:
    details = fault.details
    who = f" pid={details['pid']}, name=python," if "pid" in details else ""
    return f"NVRM: Xid (PCI:{details['pci']}): {details['code']},{who} an error of the GPU"


def _signal(fact: Step | Event) -> dict[str, Any]:
    head: dict[str, Any] = {"t": round(fact.t, 6), "rank": fact.rank, "attempt": fact.attempt}
    if fact.step is not None:
        head["step"] = fact.step
    if isinstance(fact, Event):
        return {**fact.details, **head, "event": fact.name}
    return {**head, **{name: written_number(value) for name, value in fact.values.items()}}


def _reading(fact: HardwareReading) -> dict[str, Any]:
    known = {name: value for name, value in asdict(fact).items() if value not in (None, "", {}, ())}
    known.pop("values", None)
    return {**known, **fact.values}
