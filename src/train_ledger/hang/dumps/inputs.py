"""What is read in the place of what was named?

Files and folders as they are, archives unpacked into folders that go when the answer is given, and of several
attempts the latest. Of a folder that holds no dumps itself the one folder that does.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from train_ledger.answer import Unreadable
from train_ledger.config import Limits
from train_ledger.hang.dumps.archive import is_archive, unpack
from train_ledger.hang.dumps.attempts import latest_attempts
from train_ledger.hang.dumps.dump_files import Dumps, read_dumps, shown
from train_ledger.hang.dumps.nearby import folder_meant

__all__ = ["Unpacked", "read_named", "unpacked"]


@dataclass(slots=True)
class Unpacked:
    """The paths to read in the place of those that were named, and what of archives and attempts is not read.

    `named` turns a path in an unpacked folder into the name of the archive and of its member.
    """

    paths: list[Path] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    _archives: dict[str, str] = field(default_factory=dict)

    def meant_by(self, path: Path) -> Path:
        """The folder of dumps in the folder that was named, where that one holds none; it is listed."""
        meant = folder_meant(path)
        if meant is not path:
            why = f"holds no dumps itself: those in its folder {shown(Path(meant.name))} were read"
            self.unreadable.append(Unreadable(shown(path), why))
        return meant

    def named(self, file: str) -> str:
        for folder, archive in self._archives.items():
            file = file.replace(folder, f"{archive}: ")
        return file


@contextlib.contextmanager
def unpacked(paths: Sequence[Path], limits: Limits) -> Iterator[Unpacked]:
    """The named files and folders as they are, archives unpacked for as long as the context lasts.

    Of a folder or archive that holds several attempts the latest is taken, and the others are listed. Raises
    OSError where there is no place to unpack to.
    """
    found = Unpacked()
    with contextlib.ExitStack() as stack:
        whole: list[Path] = []
        for path in paths:
            if is_archive(path):
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="train-ledger-tar-")))
                found._archives[f"{folder}/"] = shown(path)
                found.unreadable += unpack(path, folder, limits)
                whole += _folders_with_files(folder)
            else:
                whole.append(found.meant_by(path))
        found.paths, left_out = latest_attempts(dict.fromkeys(whole))
        found.unreadable += [Unreadable(found.named(it.file), it.why) for it in left_out]
        yield found


def read_named(paths: Sequence[Path], limits: Limits, since_t: float | None = None) -> Dumps:
    """`read_dumps` of files, folders and archives, of several attempts of the latest."""
    with unpacked(paths, limits) as found:
        read = read_dumps(found.paths, limits, since_t)
        dumps = tuple(msgspec.structs.replace(it, file=found.named(it.file)) for it in read.dumps)
        unreadable = (Unreadable(found.named(it.file), it.why) for it in read.unreadable)
        return dataclasses.replace(
            read,
            dumps=dumps,
            unreadable=(*found.unreadable, *unreadable),
            stale=tuple(map(found.named, read.stale)),
        )


def _folders_with_files(folder: Path) -> list[Path]:
    """Where dumps can lie: of a whole run directory only its comm_traces; attempts go with their parent."""
    holding = [Path(where) for where, _, files in os.walk(folder) if files]
    traces = [it for it in holding if "comm_traces" in it.relative_to(folder).parts]
    parents = (it.parent if it.name.startswith("attempt_") else it for it in traces or holding)
    return sorted(set(parents))
