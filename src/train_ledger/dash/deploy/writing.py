"""How are the files put down without taking from anybody what they changed?

What was written is remembered by its digest, in one small file beside them. A file that is still as it was
written may be replaced; one that somebody changed may not, unless asked for.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from train_ledger.dash.deploy.settings import DeployError
from train_ledger.dash.deploy.tree import DeployedFile
from train_ledger.run_dir import parsed_json, read_small, write_atomically

__all__ = ["WRITTEN", "changed_by_hand", "put"]

WRITTEN = ".written.json"

Outcome = Literal["written", "as it was"]


def changed_by_hand(folder: Path, files: Iterable[DeployedFile]) -> list[str]:
    """Which of the files are there, and are neither what would be written nor what was written last."""
    known = _known(folder)
    changed = []
    for file in files:
        there = _digest_of(folder / file.path)
        if there is not None and there not in (_digest(file.text.encode()), known.get(file.path)):
            changed.append(file.path)
    return changed


def put(folder: Path, files: Sequence[DeployedFile], *, force: bool = False) -> dict[str, Outcome]:
    """Write the files below `folder`; by path, what became of each.

    Raises DeployError, before anything is written, for a link that leads out of the folder, and for files
    that somebody changed, unless `force`; and OSError as the system does.
    """
    _want_within(folder, files)
    changed = [] if force else changed_by_hand(folder, files)
    if changed:
        raise DeployError(
            f"changed by hand, so nothing was written: {', '.join(changed)}; "
            "--force overwrites them, --only leaves them out"
        )
    known = _known(folder)
    outcomes: dict[str, Outcome] = {}
    try:
        for file in files:
            outcomes[file.path] = _put(folder / file.path, file)
            known[file.path] = _digest(file.text.encode())
    finally:  # on a full disk, too, what was written is not taken for somebody's change the next time
        if outcomes:
            content = json.dumps(known, indent=1, sort_keys=True) + "\n"
            _put(folder / WRITTEN, DeployedFile(WRITTEN, content, ""))
    return outcomes


def _want_within(folder: Path, files: Iterable[DeployedFile]) -> None:
    whole = Path(os.path.realpath(folder))
    for parent in dict.fromkeys((folder / file.path).parent for file in files):
        if not Path(os.path.realpath(parent)).is_relative_to(whole):
            raise DeployError(f"{parent}: is a link that leads out of {folder}; nothing was written")


def _put(path: Path, file: DeployedFile) -> Outcome:
    data = file.text.encode()
    if _digest_of(path) == _digest(data) and path.stat().st_mode & 0o777 == file.mode:
        return "as it was"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data, mode=file.mode)
    return "written"


def _known(folder: Path) -> dict[str, str]:
    path = folder / WRITTEN
    try:
        said = parsed_json(read_small(path))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise DeployError(f"{path}: is no JSON; remove it, and use --force once") from error
    if not isinstance(said, Mapping) or not all(isinstance(value, str) for value in said.values()):
        raise DeployError(f"{path}: is not what deploy writes; remove it, and use --force once")
    return dict(said)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _digest_of(path: Path) -> str | None:
    try:
        return _digest(read_small(path))
    except FileNotFoundError:
        return None
