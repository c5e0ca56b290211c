"""Where do this run's things lie, how is it restarted, and who is called?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train_ledger.fields import read_number, read_world_size
from train_ledger.ops.contacts import contacts_of
from train_ledger.run_dir import RunDir

__all__ = ["CardLine", "card"]


@dataclass(frozen=True, slots=True)
class CardLine:
    """One line of the card. `value` is None where nothing tells; `wanted` then says what would."""

    what: str
    value: str | None
    wanted: str = ""


def card(run_dir: RunDir) -> tuple[CardLine, ...]:
    """The card of a run, filled from its run.json and from what lies in its folder.

    Raises RunDirError where run.json is no JSON object.
    """
    return tuple(_lines(run_dir, run_dir.read_run()))


def _lines(run_dir: RunDir, run: Mapping[str, Any]) -> Iterator[CardLine]:
    yield CardLine("run", run_dir.name_in(run))
    world_size = read_world_size(run.get("world_size"))
    yield CardLine("world size", None if world_size is None else str(world_size), "`world_size` in run.json")
    yield _folder("dumps", run_dir.comm_traces(), "TORCH_FR_DUMP_TEMP_FILE of the ranks points elsewhere")
    yield _folder("stacks", run_dir.stacks(), "none were taken; `train-ledger stacks RUN --launcher ssh`")
    logs = [str(folder) for folder in run_dir.log_folders() if folder.is_dir()]
    yield CardLine("logs", ", ".join(logs) or None, "`log_dir` in run.json, or logs in RUN/logs")
    there = run_dir.ranks_jsonl.is_file()
    yield CardLine("rank map", str(run_dir.ranks_jsonl) if there else None, "rank 0's monitor writes it")
    yield _given(run, "exclude_file", "exclusion list")
    yield _given(run, "restart_command", "restart")
    price = read_number(run.get("gpu_price_per_hour"))
    yield CardLine("GPU-hour", None if price is None else f"{price:g}", "`gpu_price_per_hour` in run.json")
    yield from _contacts(run)


def _folder(what: str, folder: Path, wanted: str) -> CardLine:
    return CardLine(what, str(folder) if folder.is_dir() else None, wanted)


def _given(run: Mapping[str, Any], key: str, what: str) -> CardLine:
    value = run.get(key)
    given = value if isinstance(value, str) and value.strip() else None
    return CardLine(what, given, f"`{key}` in run.json")


def _contacts(run: Mapping[str, Any]) -> Iterator[CardLine]:
    contacts = contacts_of(run)
    for it in contacts:
        what = "contacts" if it.role is None else f"contact, {it.role}"
        yield CardLine(what, ", ".join(it.names) or None, "nobody is named")
    if not contacts:
        yield CardLine("contacts", None, "`contacts` in run.json: nobody can be woken by an empty one")
