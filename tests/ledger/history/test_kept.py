"""A history is found again where it was kept; what cannot be it is refused, whoever wrote it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ledger.history.made import step, told
from train_ledger.facts import HardwareReading
from train_ledger.ledger.history import (
    History,
    HistoryUnusableError,
    curves,
    gpu_strips,
    read_history,
    strips,
    write_history,
)
from train_ledger.sources import FilesMemory

MAGIC = b"train-ledger history 1\n"


def kept(folder: Path) -> tuple[Path, History]:
    path, history = folder / "history", told()
    history.add_hardware(HardwareReading(1e9, "n0", gpu=0, values={"DCGM_FI_DEV_SM_CLOCK": 1.0}))
    write_history(path, "r42", history, FilesMemory())
    return path, history


def test_what_was_kept_is_found_again_and_goes_on(tmp_path: Path) -> None:
    path, history = kept(tmp_path)
    again = History()
    assert read_history(path, "r42", again) == FilesMemory()
    for either in (history, again):
        either.add(step(131, 2, 1, loss=3.0))
    assert curves(again) == curves(history)
    assert again.marks == history.marks
    for own, other in zip(
        (*strips(again), *gpu_strips(again)), (*strips(history), *gpu_strips(history)), strict=True
    ):
        assert np.array_equal(own.cells, other.cells, equal_nan=True)


def test_where_nothing_was_kept_there_is_nothing_to_go_on_from(tmp_path: Path) -> None:
    assert read_history(tmp_path / "history", "r42", History()) is None


@pytest.mark.parametrize("cut", [0, 5, 40, 60, 2000, -1])
def test_what_is_cut_short_is_refused_and_leaves_nothing_behind(tmp_path: Path, cut: int) -> None:
    path, _ = kept(tmp_path)
    path.write_bytes(path.read_bytes()[:cut])
    history = History()
    with pytest.raises(HistoryUnusableError, match="made again"):
        read_history(path, "r42", history)
    assert history.curves == {}


def test_another_runs_is_not_used(tmp_path: Path) -> None:
    path, _ = kept(tmp_path)
    with pytest.raises(HistoryUnusableError, match="another run"):
        read_history(path, "r43", History())


def rewritten(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """The file as somebody could write it who knows its form: its digest fits, and so does its size."""
    data = path.read_bytes()[len(MAGIC) + 32 :]
    end = 8 + int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8:end]), data[end:]
    change(header)
    size = 8 * sum(int(np.prod(it["shape"])) for it in header["arrays"])
    head = json.dumps(header).encode()
    data = len(head).to_bytes(8, "little") + head + body[:size].ljust(size, b"\0")
    path.write_bytes(MAGIC + hashlib.sha256(data).digest() + data)


def a_time_alone(header: dict[str, Any]) -> None:
    array(header, "curves 0 first_t")["shape"] = []


def counts_that_are_no_counts(header: dict[str, Any]) -> None:
    array(header, "curves 0 worst")["kind"] = "f"


def strips_of_counts(header: dict[str, Any]) -> None:
    array(header, "strips total")["kind"] = "i"


def a_step_of_no_machine(header: dict[str, Any]) -> None:
    header["curves"]["0"]["base"] = 2**64 - 1


def columns_too_wide(header: dict[str, Any]) -> None:
    header["gpus"]["width"] = 2**64 - 1


def array(header: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(it for it in header["arrays"] if it["name"] == name)
    return found


@pytest.mark.parametrize(
    "change",
    [a_time_alone, counts_that_are_no_counts, strips_of_counts, a_step_of_no_machine, columns_too_wide],
)
def test_what_somebody_else_wrote_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    path, _ = kept(tmp_path)
    rewritten(path, change)
    history = History()
    with pytest.raises(HistoryUnusableError, match="made again"):
        read_history(path, "r42", history)
    assert history.curves == {}


def test_the_same_written_anew_is_taken(tmp_path: Path) -> None:
    path, history = kept(tmp_path)
    rewritten(path, lambda header: None)
    again = History()
    read_history(path, "r42", again)
    assert curves(again) == curves(history)
