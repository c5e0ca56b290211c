"""What W&B writes offline, read back from its own file."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from train_ledger.signals.integrations.wandb import wandb_writer

wandb_internal_pb2 = pytest.importorskip("wandb.proto.wandb_internal_pb2")

_BLOCK_BYTES = 32768
_FILE_HEAD_BYTES = 7
_RECORD_HEAD = struct.Struct("<IHB")


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")


def _write(run: Path, attempt: int, steps: range, **given: Any) -> list[str]:
    warnings: list[str] = []
    writer = wandb_writer(run, attempt, lambda about, text: warnings.append(text), given, {"world_size": 8})
    writer.start()
    for step in steps:
        writer.put(step, 1000.0 + step, {"loss": 1.0 / (step + 1), "eval/loss": 2.0})
    writer.wait()
    return warnings


def _records(run: Path) -> list[list[Any]]:
    """The records of each W&B run below the folder, the oldest first."""
    paths = sorted(run.glob("wandb/offline-run-*/*.wandb"), key=lambda it: it.stat().st_mtime)
    return [[wandb_internal_pb2.Record.FromString(it) for it in _stored(path.read_bytes())] for path in paths]


def _stored(content: bytes) -> Iterator[bytes]:
    """What a W&B file holds: pieces of records in blocks, as LevelDB's log has them."""
    at, record = _FILE_HEAD_BYTES, b""
    while at + _RECORD_HEAD.size <= len(content):
        if _BLOCK_BYTES - at % _BLOCK_BYTES < _RECORD_HEAD.size:
            at += _BLOCK_BYTES - at % _BLOCK_BYTES
        _, length, kind = _RECORD_HEAD.unpack_from(content, at)
        at += _RECORD_HEAD.size
        record += content[at : at + length]
        at += length
        if kind in (1, 4):  # whole, or its last piece
            yield record
            record = b""


def _history(records: list[Any]) -> list[dict[str, Any]]:
    rows = [it.history.item for it in records if it.WhichOneof("record_type") == "history"]
    return [{it.key or "/".join(it.nested_key): json.loads(it.value_json) for it in row} for row in rows]


def test_a_step_that_goes_back_is_kept(tmp_path: Path) -> None:
    run = tmp_path / "r42"
    run.mkdir()
    assert _write(run, 0, range(12)) == []
    assert _write(run, 1, range(8, 14)) == []
    first, second = map(_history, _records(run))
    assert [row["train/step"] for row in first] == list(range(12))
    assert [row["train/step"] for row in second] == list(range(8, 14))
    assert {row["train/attempt"] for row in second} == {1}
    assert first[3]["train/loss"] == 0.25
    assert first[3]["eval/loss"] == 2.0


def test_the_step_is_the_axis_and_the_runs_are_a_group(tmp_path: Path) -> None:
    run = tmp_path / "r42"
    run.mkdir()
    _write(run, 0, range(2), project="big")
    _write(run, 1, range(2), project="big")
    shown = [it.run for records in _records(run) for it in records if it.WhichOneof("record_type") == "run"]
    assert {(it.display_name, it.run_group, it.project) for it in shown} == {
        ("r42", "r42", "big"),
        ("r42 attempt 1", "r42", "big"),
    }
    metrics = [it.metric for it in _records(run)[0] if it.WhichOneof("record_type") == "metric"]
    axes = {it.name or it.glob_name: it.step_metric for it in metrics}
    assert axes["*"] == "train/step"
