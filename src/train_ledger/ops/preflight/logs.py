"""Does every rank leave a log, and is it known where each rank runs? (item 11)"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from train_ledger.ops.preflight.records import Check, failed, passed
from train_ledger.render import ranks_in_brief
from train_ledger.run_dir import RunDir, parsed_json, read_small

__all__ = ["Place", "log_checks", "log_files", "places"]

_MOST_FILES = 200_000
_TORCHRUN = re.compile(r"attempt_(\d+)/(\d+)/(?:stdout|stderr)\.log\Z")
_NAMED = re.compile(r"(?:^|[_.\-/])(?:global_)?rank[_\-]?(\d+)\b|(?:^|[_.\-])(\d+)\.(?:out|err|log)\Z")

Place = tuple[str | None, str | None]
"""Host and GPU of a rank, as far as they are known."""


def places(run_dir: RunDir) -> dict[int, Place]:
    """Of each rank its host and its GPU's UUID or number, by ranks.jsonl and the ranks' own run_start."""
    found: dict[int, Place] = {}
    for line in _lines(run_dir.ranks_jsonl):
        _put(found, line)
    for _, path in run_dir.signal_files():
        for line in _starts(path):
            _put(found, line)
    return found


def _put(found: dict[int, Place], line: Mapping[str, Any]) -> None:
    rank, gpu = line.get("rank"), line.get("uuid", line.get("gpu"))
    if isinstance(rank, int) and not isinstance(rank, bool):
        host, card = found.get(rank, (None, None))
        found[rank] = (str(line["host"]) if line.get("host") else host, card if gpu is None else str(gpu))


def _lines(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        text = read_small(path)
    except OSError:
        return
    for line in text.splitlines():
        try:
            told = parsed_json(line)
        except ValueError:
            continue
        if isinstance(told, dict):
            yield told


def _starts(path: Path) -> Iterator[Mapping[str, Any]]:
    """The first line of a signal file is its rank's own run_start."""
    try:
        with path.open("rb") as file:
            line = json.loads(file.readline(1 << 16))
    except (OSError, ValueError):
        return
    if isinstance(line, dict) and line.get("event") == "run_start":
        yield line


def log_files(folders: Iterable[Path]) -> list[Path]:
    """Every file below those folders, at most some hundred thousand."""
    found: list[Path] = []
    for folder in folders:
        if folder.is_dir():
            for path in folder.rglob("*"):
                if len(found) >= _MOST_FILES:
                    return found
                if path.is_file():
                    found.append(path)
    return found


def log_checks(
    folders: Iterable[Path], ranks: int | None, known: Mapping[int, Place], on_gpu: bool, whose: str
) -> Iterator[Check]:
    """`ranks` is how many there are; `whose` says in words whose logs and map these are."""
    folders = tuple(folders)
    yield _logs(folders, ranks, whose)
    yield _map(ranks, known, on_gpu, whose)


def _logs(folders: tuple[Path, ...], ranks: int | None, whose: str) -> Check:
    name = "logs"
    files = log_files(folders)
    if not files:
        where = " and ".join(map(str, folders)) or "a log folder"
        fix = "torchrun --log-dir RUN/logs --redirects 3, or log_dir in run.json where they are elsewhere"
        return failed(name, f"{whose}: there is no log in {where}", fix)
    by_rank = {number for path in files if (number := _rank_of(path)) is not None}
    if not ranks or len(by_rank) >= ranks:
        return passed(name, f"{whose}: {len(files)} files, of {len(by_rank) or 'unnamed'} ranks")
    said = f"{whose}: {len(files)} files of {len(by_rank)} ranks, and there are {ranks} ranks"
    return failed(name, said, "let each rank write a file of its own: torchrun --redirects 3 on every node")


def _rank_of(path: Path) -> str | None:
    """Which process a log is of; of torchrun's, the folder of its node's agent tells nodes apart."""
    if match := _TORCHRUN.search(path.as_posix()):
        return f"{path.parents[2]}/{match[2]}"
    match = _NAMED.search(path.name)
    return None if match is None else match[1] or match[2]


def _map(ranks: int | None, known: Mapping[int, Place], on_gpu: bool, whose: str) -> Check:
    name = "rank map"
    missing = [rank for rank in range(ranks or 0) if known.get(rank, (None, None))[0] is None]
    if not known or missing:
        who = ranks_in_brief(missing) if missing else "any rank"
        said = f"{whose}: the host of {who} is not known"
        return failed(name, said, "train_ledger.start(RUN) on every rank writes it")
    hosts = len({host for host, _ in known.values()})
    lacking = [rank for rank, (_, gpu) in known.items() if gpu is None]
    if lacking and on_gpu:
        said = f"{whose}: the GPU of {ranks_in_brief(lacking)} is not known"
        return failed(name, said, "the NVIDIA driver's library must be visible in the job's container")
    of_gpus = "host and GPU" if not lacking else "host (they have no GPU)"
    return passed(
        name, f"{whose}: {of_gpus} of {len(known)} ranks on {hosts} {'host' if hosts == 1 else 'hosts'}"
    )
