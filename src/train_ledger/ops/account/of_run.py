"""What did the run do with its time, by all that lies in its run directory?

Every signal line is read, since the accounts are of the whole run: of eight ranks with two hundred thousand
steps each in a few seconds.
"""

from __future__ import annotations

import time
from dataclasses import replace

from train_ledger.config import Config
from train_ledger.ledger import gpu_price_per_hour, has_gpus
from train_ledger.ledger.accounts import Accounts, History, Price, accounts_of
from train_ledger.ops.account.launcher import launcher_signs
from train_ledger.ops.account.signs import signs_beside
from train_ledger.ops.account.undated import DatedHistory
from train_ledger.run_dir import RunDir
from train_ledger.sources import RunFacts

__all__ = ["account"]

_LOGS_WHOLE_BYTES = 64 << 20
_MOST_ATTEMPTS = 1000
_ABANDONED_S = 86_400.0
_AFTER_THE_LAST = "what came after the last line, which is more than a day old"


def account(
    run_dir: RunDir,
    config: Config,
    at: float | None = None,
    *,
    since: float | None = None,
    may_be_abandoned: bool | None = None,
) -> Accounts:
    """The accounts of the run as known at `at` (unix seconds; None: now), from `since` on (None: all of it).

    Those of a run that `may_be_abandoned` (None: where no `at` is given) reach to its last line, where it
    wrote none for a day. Raises RunDirError where run.json cannot be used, and JournalError where the
    keeper's journal cannot be read.
    """
    run = run_dir.read_run()
    history = DatedHistory(run_dir.name_in(run), run)
    told = [*_read(run_dir, history), *history.not_observed]
    signs = signs_beside(run_dir, min(_MOST_ATTEMPTS, 1 + max(history.attempts, default=0)))
    if not history.by_logs:
        signs += launcher_signs(run_dir)
    until_t = time.time() if at is None else at
    heard_t = history.heard_t
    may_be = at is None if may_be_abandoned is None else may_be_abandoned
    if may_be and heard_t is not None and until_t - heard_t > _ABANDONED_S:
        until_t = heard_t if since is None else max(heard_t, since)
        told.append(_AFTER_THE_LAST + (": --at says up to when" if may_be_abandoned is None else ""))
    price = Price(
        gpu_price_per_hour(run, config.cost.gpu_price_per_hour),
        config.cost.currency,
        has_gpus=has_gpus(run, history.places.values()),
    )
    accounts = accounts_of(history, config.alerts, until_t, since_t=since, signs=signs, price=price)
    return replace(accounts, not_observed=(*told, *accounts.not_observed))


def _read(run_dir: RunDir, history: History) -> list[str]:
    """Tell the history all that there is; what was not read is returned in words."""
    files = RunFacts(run_dir)
    files.begin_logs_at_tail(_LOGS_WHOLE_BYTES)
    files.begin_hardware_at_tail(0)
    try:
        files.fold_into(history)
        while not files.caught_up:
            files.fold_into(history)
        files.give_up_tails()
        source = "logs" if files.by_logs else "signals"
        left_out = [it for it in files.left_out_in_words if "hardware" not in it]
        return [f"{source} not read: {it}" for it in (*files.not_read, *left_out)]
    finally:
        files.close()
