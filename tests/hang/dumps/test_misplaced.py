"""The wrong folder is named, and the right command is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from train_ledger.config import Limits
from train_ledger.hang import analyse
from train_ledger.hang.dumps.misplaced import meant_instead

DUMP = b'{"version": "2.5", "entries": []}'
STACK = b'[{"pid": 1, "frames": []}]'


@pytest.mark.parametrize(
    ("file", "data", "command"),
    [
        ("fr/nccl_trace_rank_0", DUMP, "train-ledger hang {0}/fr"),
        ("fr/rank_0", b"\x80\x05N.", "train-ledger hang {0}/fr"),
        ("r42/comm_traces/rank_0", DUMP, "train-ledger hang --run {0}/r42"),
        ("stacks/rank_0.json", STACK, "train-ledger stacks --from {0}/stacks"),
        ("stacks/rank_0.txt", b"Process 7: python\n", "train-ledger stacks --from {0}/stacks"),
        ("logs/none_x/attempt_0/3/stderr.log", b"", "train-ledger hang --logs {0}/logs"),
        ("two words/rank_0", DUMP, "train-ledger hang '{0}/two words'"),
        ("data/shard_0", b"PK", None),
        ("empty/notes.txt", b"", None),
    ],
)
def test_the_folder_above_is_named(tmp_path: Path, file: str, data: bytes, command: str | None) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    found = [it.command for it in meant_instead([str(it) for it in tmp_path.iterdir()])]
    assert found == ([command.format(tmp_path)] if command else [])


def test_stacks_that_are_named_as_dumps_are_told_from_them_once(tmp_path: Path) -> None:
    for rank in range(4):
        (tmp_path / f"rank_{rank}.json").write_bytes(STACK)
    answer = analyse([tmp_path], limits=Limits())
    assert answer.verdict == "cannot_tell"
    commands = [it.command for it in answer.next]
    assert commands == [f"train-ledger stacks --from {tmp_path}", "train-ledger stacks"]


def test_what_vanishes_or_cannot_be_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "rank_0").symlink_to(tmp_path / "rank_0")
    assert not list(meant_instead([str(tmp_path / "rank_0"), "no\0name_1", str(tmp_path / "gone_2")]))
