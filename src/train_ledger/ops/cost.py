"""What has this run cost, and what would be worth mending first in it?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from train_ledger.config import Alerts, Config
from train_ledger.fields import read_number
from train_ledger.ledger.accounts.records import Accounts
from train_ledger.ledger.costs import Costs, Figure, costs
from train_ledger.ops.account import account
from train_ledger.ops.postmortem.recoveries import with_journal
from train_ledger.run_dir import RunDir

__all__ = ["configured_figures", "cost"]


def cost(
    run_dir: RunDir, config: Config, *, given: Mapping[str, Figure] | None = None, at: float | None = None
) -> Costs:
    """The costs of a run as known at `at` (unix seconds; None: now); `given` goes before what was measured.

    Raises RunDirError where run.json or the signals cannot be used, JournalError where the journal cannot.
    """
    accounts = with_journal(account(run_dir, config, at=at), run_dir)
    configured = configured_figures(run_dir.read_run(), config, accounts)
    return costs(accounts, configured=configured, given=given, currency=config.cost.currency)


def configured_figures(run: Mapping[str, Any], config: Config, accounts: Accounts) -> dict[str, Figure]:
    """What run.json and the configuration say of the figures that a cost rests on."""
    found: dict[str, Figure] = {}
    price = accounts.price_per_gpu_hour
    if price is None and config.cost.gpu_price_per_hour is not None:
        price = config.cost.gpu_price_per_hour
    if price is not None:
        found["price"] = Figure(price, "configured")
    baseline = read_number(run.get("mfu_baseline"))
    if baseline is not None and 0 < baseline <= 100:
        found["mfu"] = Figure(baseline, "configured", "mfu_baseline in run.json")
    if accounts.step_time_s:
        found["detect"] = Figure(
            _paged_s(config.alerts, accounts.step_time_s), "configured", "[alerts] stall_*"
        )
    return found


def _paged_s(alerts: Alerts, step_time_s: float) -> float:
    """From the last step to the page: the threshold, one evaluation, and the wait for its group."""
    threshold_s = max(alerts.stall_floor_s, alerts.stall_factor * step_time_s)
    return threshold_s + alerts.evaluation_interval_s + alerts.group_wait_s
