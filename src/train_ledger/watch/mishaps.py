"""What became of work that is done beside the keeper's turns, and did not go well?

Such work must neither end the keeper nor end for good by one bad file, and what it made earlier is not to
stand there as if it were fresh. So each mishap is told once where the keeper speaks, and stands on the page
for as long as it lasts; what was not made is tried again. A mishap that nobody foresaw is told as the fault
of this program that it is, with its place.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from train_ledger.ledger import JournalError
from train_ledger.render import harmless
from train_ledger.run_dir import RunDirError

__all__ = ["Mishaps"]

_FORESEEN = (RunDirError, JournalError, OSError)
"""Of files and disks: their text says what is wrong and what to do."""
_LONGEST = 300


class Mishaps:
    """Those that last, in words; `remark` is told of each once."""

    def __init__(self, remark: Callable[[str], None]) -> None:
        self._remark = remark
        self._lasting: dict[str, str] = {}
        self._said: dict[str, str] = {}

    @property
    def lasting(self) -> tuple[str, ...]:
        """What could not be made the last time that it was tried, and why."""
        return tuple(self._lasting.copy().values())

    def of(self, what: str) -> _Attempt:
        """Within it an attempt at something is made; `what` is said in front of why it failed."""
        return _Attempt(self, what)

    def _note(self, what: str, error: Exception | None) -> None:
        if error is None:
            self._lasting.pop(what, None)
            return
        said = f"{what}: {_in_words(error)}"
        self._lasting[what] = said
        if said != self._said.get(what):
            self._said[what] = said
            self._remark(said)


class _Attempt:
    def __init__(self, mishaps: Mishaps, what: str) -> None:
        self._mishaps, self._what = mishaps, what

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> bool:
        if error is not None and not isinstance(error, Exception):
            return False  # somebody ends it all
        self._mishaps._note(self._what, error)
        return error is not None


def _in_words(error: Exception) -> str:
    if isinstance(error, _FORESEEN):
        return str(error)
    last = traceback.extract_tb(error.__traceback__)[-1:]
    at = "".join(f" at {Path(it.filename).name}:{it.lineno}" for it in last)
    told = f"{type(error).__name__}{at}: {harmless(error, longest=_LONGEST)}"
    return f"{told} – a fault of train-ledger, to be reported; it is tried again"
