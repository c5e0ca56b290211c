"""Accounts of a made run: four saves, three interruptions, two of which are told in full."""

from __future__ import annotations

from train_ledger.ledger.accounts.records import (
    CATEGORIES,
    Accounts,
    Checkpointing,
    Interruption,
    Recovery,
)

__all__ = ["ACCOUNTS", "recovery"]

T = 1_800_000_000.0


def recovery(cause: str = "unknown", **parts_s: float | None) -> Recovery:
    """One recovery of so many seconds a part."""
    return Recovery(Interruption(T, 0, 51_300, cause), attempt=1, began_t=T + 900, parts_s=parts_s)


_SECONDS = {**dict.fromkeys(CATEGORIES, 0.0), "productive": 80_000.0, "down": 4_000.0, "rework": 2_400.0}

ACCOUNTS = Accounts(
    run="r42",
    since_t=T,
    until_t=T + 86_400,
    seconds=_SECONDS,
    gpu_hours={name: seconds * 512 / 3600 for name, seconds in _SECONDS.items()},
    price_per_gpu_hour=2.0,
    world_size=512,
    mfu=40.0,
    step_time_s=4.75,
    interruptions=(Interruption(T, 0, 10), Interruption(T + 9, 1, 20), Interruption(T + 99, 2, 30)),
    recoveries=(
        recovery("xid 79", detect=100, dump=75, decide=600, restart=480, load=420, redo=1020),
        recovery("exception", detect=700, dump=None, decide=2400, restart=300, load=None, redo=600),
    ),
    mtbi_s=27_600.0,
    checkpointing=Checkpointing(saves=4, interval_s=1800.0, interval_steps=300, blocking_s=30.0),
)
