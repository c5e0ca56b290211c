"""Who makes the accounts of a run while it is followed?

A thread of its own makes them anew every minute, or more rarely where that takes long: they are of the whole
run, and nobody waits for them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from train_ledger.config import Config
from train_ledger.ledger import JournalError
from train_ledger.ledger.accounts import Accounts
from train_ledger.ops.account import account
from train_ledger.run_dir import RunDir, RunDirError

__all__ = ["AccountsKeeping"]

_EVERY_S = 60.0
_SHARE_OF_TIME = 50
_FIRST_AFTER_S = 5.0


class AccountsKeeping:
    """`newest` are the accounts as they were made last, without their spans; None before the first.

    `remark` is told of trouble.
    """

    def __init__(
        self, run_dir: RunDir, config: Config, remark: Callable[[str], None], every_s: float = _EVERY_S
    ) -> None:
        self._run_dir, self._config, self._remark = run_dir, config, remark
        self._every_s = every_s
        self.newest: Accounts | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._make_again, name="accounts", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Make no more; one that is being made is left to itself."""
        self._ending.set()
        self._thread.join(timeout=1)

    def _make_again(self) -> None:
        pause_s, said = min(_FIRST_AFTER_S, self._every_s), ""
        while not self._ending.wait(pause_s):
            began_s = time.monotonic()
            try:
                self.newest = replace(account(self._run_dir, self._config), spans=())
            except (RunDirError, JournalError, OSError) as error:
                if str(error) != said:
                    said = str(error)
                    self._remark(f"no accounts: {said}")
            pause_s = max(self._every_s, _SHARE_OF_TIME * (time.monotonic() - began_s))
