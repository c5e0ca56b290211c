"""What does a run directory tell now, read whole and once?"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from train_ledger.facts import Fact, Fault, HardwareReading
from train_ledger.run_dir import RunDir
from train_ledger.sources.run_facts import RunFacts

__all__ = ["RunReading", "read_run"]

_LOGS_WHOLE_BYTES = 64 << 20

_HARDWARE_WHOLE_BYTES = 64 << 20
"""Read in seconds: what sixteen GPUs say in half a day."""


class RunReading(NamedTuple):
    """Facts in the order in which they are to be folded, and what was not read, as `RunFacts.not_read`.

    `by_logs` says that they are of logs, since there are no signals. `hardware` is what was recorded of the
    hardware, by its times.
    """

    facts: list[Fact]
    not_read: tuple[str, ...]
    by_logs: bool
    hardware: tuple[HardwareReading | Fault, ...] = ()


def read_run(
    run_dir: RunDir,
    hosts: Collection[str] | None = None,
    *,
    hardware_bytes: int | None = _HARDWARE_WHOLE_BYTES,
) -> RunReading:
    """All that a run directory tells now; of logs that are together very large, their starts and ends.

    Of readings of the hardware that are together larger than `hardware_bytes` the last are read (None: all).
    """
    files = RunFacts(run_dir, hosts)
    files.begin_logs_at_tail(_LOGS_WHOLE_BYTES)
    if hardware_bytes is not None:
        files.begin_hardware_at_tail(hardware_bytes)
    try:
        facts = files.poll()
        hardware = files.poll_hardware()
        while not files.caught_up:
            by_logs = files.by_logs
            more = files.poll()
            facts = facts + more if files.by_logs == by_logs else more
            hardware += files.poll_hardware()
        files.give_up_tails()
        hardware.sort(key=lambda it: -1.0 if it.t is None else it.t)
        by_logs = files.by_logs and files.files > 0
        return RunReading(facts, (*files.not_read, *files.left_out_in_words), by_logs, tuple(hardware))
    finally:
        files.close()
