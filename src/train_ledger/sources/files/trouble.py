"""Which files could not be read, and why?"""

from __future__ import annotations

import errno
import os

from train_ledger.sources.files.stream import Skipped

__all__ = ["Troubles"]

_REASONS = {
    errno.EACCES: "unreadable",
    errno.EPERM: "unreadable",
    errno.EMFILE: "too_many_open_files",
    errno.ENFILE: "too_many_open_files",
    errno.ESTALE: "stale",
    errno.ENOTDIR: "not_a_folder",
}


class Troubles:
    """Counts each trouble of each path once, for as long as it lasts; `last` is the newest in words."""

    def __init__(self, skipped: Skipped) -> None:
        self._skipped = skipped
        self._open: dict[str, str] = {}
        self.last: str | None = None

    def met(self, path: str, error: OSError, *, may_be_absent: bool = False) -> None:
        """A system call on `path` failed; a file that `may_be_absent` is no trouble where it is."""
        if error.errno == errno.ENOENT:
            reason = "dangling_link" if os.path.islink(path) else "vanished"
            if reason == "vanished" and may_be_absent:
                return
        else:
            reason = _REASONS.get(error.errno or 0, "io_error")
        self.count(path, reason, error.strerror or str(error))

    def count(self, path: str, reason: str, why: str) -> None:
        if self._open.get(path) != reason:
            self._open[path] = reason
            self._skipped.count(reason, path)
            self.last = f"{path}: {why}"

    def over(self, path: str) -> None:
        """This path can be read (again)."""
        if self._open:
            self._open.pop(path, None)

    @property
    def open(self) -> dict[str, str]:
        """The reason of each path that is in trouble now."""
        return dict(self._open)

    def recall(self, open_troubles: dict[str, str]) -> None:
        """Take these for counted."""
        self._open.update(open_troubles)
