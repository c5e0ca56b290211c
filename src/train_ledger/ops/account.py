"""What did the run do with its time, by all that lies in its run directory?

Every line is read, since the accounts are of the whole run: of eight ranks with two hundred thousand steps
each in a few seconds.
"""

from __future__ import annotations

import time

from train_ledger.config import Config
from train_ledger.ledger import gpu_price_per_hour
from train_ledger.ledger.accounts import Accounts, History, Price, accounts_of
from train_ledger.run_dir import RunDir
from train_ledger.sources import RunFacts

__all__ = ["account"]


def account(
    run_dir: RunDir, config: Config, at: float | None = None, *, since: float | None = None
) -> Accounts:
    """The accounts of the run as known at `at` (unix seconds; None: now), from `since` on (None: all of it).

    Raises RunDirError where run.json or the signals cannot be used.
    """
    run = run_dir.read_run()
    history = History(run_dir.name_in(run), run)
    files = RunFacts(run_dir)
    try:
        files.fold_into(history)
        while not files.caught_up:
            files.fold_into(history)
    finally:
        files.close()
    until_t = time.time() if at is None else at
    price = Price(gpu_price_per_hour(run, config.cost.gpu_price_per_hour), config.cost.currency)
    return accounts_of(history, config.alerts, until_t, since_t=since, price=price)
