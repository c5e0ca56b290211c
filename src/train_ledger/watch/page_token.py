"""What must somebody know who opens the page from another machine?"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from train_ledger.run_dir import RunDir, RunDirError, read_small, write_atomically

__all__ = ["TOKEN_VARIABLE", "page_token"]

TOKEN_VARIABLE = "TRAIN_LEDGER_TOKEN"  # noqa: S105  (the name of a variable)
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,200}", re.ASCII)


def page_token(run_dir: RunDir, environment: Mapping[str, str]) -> str:
    """The token of a run's page: TRAIN_LEDGER_TOKEN, else that of an earlier keeper, else a new one.

    It is kept in ledger/page.token, which only the keeper's user may read, so that an address that somebody
    has saved still works when the keeper is started anew; one that others could read or put there is not
    used again. Raises RunDirError for a token that could be
    guessed, or that cannot stand in an address.
    """
    given = environment.get(TOKEN_VARIABLE)
    if given:
        if not _TOKEN.fullmatch(given):
            raise RunDirError(
                f"{TOKEN_VARIABLE}: wanted are 16 to 200 letters, digits, - and _; "
                "`python3 -c 'import secrets; print(secrets.token_urlsafe())'` makes one"
            )
        return given
    path = run_dir.ledger / "page.token"
    kept = _kept(path)
    if _TOKEN.fullmatch(kept):
        return kept
    made = secrets.token_urlsafe(24)
    try:
        write_atomically(path, made.encode() + b"\n", mode=0o600)
    except OSError as error:
        raise RunDirError(f"{path}: {error.strerror}; the page needs it to let nobody else in") from error
    return made


def _kept(path: Path) -> str:
    """What was kept, where nobody but us could read it or put it there; else ""."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            return ""
        return read_small(path, limit_bytes=1000).decode("ascii", "replace").strip()
    except OSError:
        return ""
