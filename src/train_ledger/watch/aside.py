"""What is found out about a run beside the keeper's turns, since it takes too long for one?

The accounts of the whole run, what each incident cost, and what could not be told of it tonight. A thread of
its own makes them anew every minute, at first more often, since a run that begins tells more with every step,
and more rarely where that takes long; nobody waits for them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from train_ledger.answer import Impact
from train_ledger.config import Config
from train_ledger.ledger.accounts import Accounts
from train_ledger.ops.account import account
from train_ledger.ops.coverage import coverage
from train_ledger.ops.postmortem import losses
from train_ledger.run_dir import RunDir
from train_ledger.watch.mishaps import Mishaps

__all__ = ["Aside", "next_pause_s"]

_EVERY_S = 60.0
_SHARE_OF_TIME = 50
_FIRST_AFTER_S = 5.0


class Aside:
    """`accounts` are those made last, without their spans, and `cannot_tell` what coverage said last.

    Both are None before the first time. `losses` is what each incident cost by these accounts. `mishaps` are
    what kept one of them from being made the last time; `remark` is told of each, once.
    """

    def __init__(
        self, run_dir: RunDir, config: Config, remark: Callable[[str], None], every_s: float = _EVERY_S
    ) -> None:
        self._run_dir, self._config = run_dir, config
        self.mishaps = Mishaps(remark)
        self._every_s = every_s
        self.accounts: Accounts | None = None
        self.losses: Mapping[str, Impact] = {}
        self.cannot_tell: tuple[str, ...] | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._make_again, name="aside", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Make no more; what is being made is left to itself."""
        self._ending.set()
        self._thread.join(timeout=1)

    def _make_again(self) -> None:
        pause_s = min(_FIRST_AFTER_S, self._every_s)
        while not self._ending.wait(pause_s):
            began_s = time.monotonic()
            with self.mishaps.of("no accounts"):
                self.accounts = replace(account(self._run_dir, self._config), spans=())
            with self.mishaps.of("no cost of incidents"):
                if self.accounts is not None:
                    self.losses = losses(self._run_dir, self._config, self.accounts)
            with self.mishaps.of("no coverage"):
                self.cannot_tell = coverage(self._run_dir, self._config).verdicts
            pause_s = next_pause_s(pause_s, self._every_s, time.monotonic() - began_s)


def next_pause_s(last_s: float, every_s: float, took_s: float) -> float:
    """Twice as long as the last one up to `every_s`, but so long that all this takes a fiftieth of the time.

    >>> next_pause_s(5.0, every_s=60.0, took_s=0.1)
    10.0
    """
    return max(min(2 * last_s, every_s), _SHARE_OF_TIME * took_s)
