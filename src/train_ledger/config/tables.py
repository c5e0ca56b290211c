"""What can be set, and what holds where nothing is?"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

__all__ = [
    "FIRST_ANSWERS",
    "Alerts",
    "Config",
    "Cost",
    "Dcgm",
    "Hardware",
    "Limits",
    "Notify",
    "Prometheus",
    "Respond",
    "Trace",
    "Xid",
]


@dataclass(frozen=True, slots=True)
class Alerts:
    """Thresholds of the alerts; `_s` are seconds."""

    stall_floor_s: float = 90.0
    stall_factor: float = 3.0
    checkpoint_floor_s: float = 600.0
    checkpoint_factor: float = 3.0
    evaluation_floor_s: float = 1800.0
    evaluation_factor: float = 3.0
    start_up_limit_s: float = 1800.0
    loss_window_s: float = 600.0
    restart_loop_count: int = 3
    restart_loop_window_s: float = 1800.0
    checkpoint_window_s: float = 3600.0
    checkpoint_slow_floor_s: float = 30.0
    checkpoint_slow_factor: float = 3.0
    checkpoint_missed_floor_s: float = 60.0
    checkpoint_missed_factor: float = 2.0
    process_gone_s: float = 120.0
    restart_inhibits_s: float = 1800.0
    keep_firing_s: float = 300.0
    group_wait_s: float = 5.0
    group_interval_s: float = 300.0
    repeat_interval_s: float = 14_400.0
    evaluation_interval_s: float = 5.0
    step_regressed_factor: float = 1.5
    step_recent_s: float = 600.0
    step_usual_window_s: float = 3600.0
    step_usual_offset_s: float = 1200.0
    step_usual_least_steps: int = 100
    mfu_degraded_fraction: float = 0.85
    mfu_drift_fraction: float = 0.95
    mfu_window_s: float = 1800.0
    effective_fraction: float = 0.85
    effective_window_s: float = 86_400.0
    effective_from_age_s: float = 21_600.0
    telemetry_lost_s: float = 300.0
    data_wait_fraction: float = 0.05
    data_wait_window_s: float = 900.0
    outlier_effect: float = 0.05
    outlier_share: float = 0.8
    outlier_impact: float = 0.03
    outlier_least_steps: int = 20
    fragmentation_window_s: float = 3600.0
    grad_norm_factor: float = 10.0
    grad_norm_steps: int = 100
    checkpoint_slower_factor: float = 1.5
    xid_window_s: float = 1800.0
    ecc_window_s: float = 3600.0
    ecc_sbe_growth: int = 100
    ecc_sbe_window_s: float = 86_400.0
    gpu_lost_s: float = 120.0
    clock_low_fraction: float = 0.8
    clock_low_s: float = 300.0
    clock_low_count: int = 3
    clock_low_window_s: float = 86_400.0
    link_window_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that keep the tool itself small."""

    dump_bytes: int = 1 << 30
    dump_worker_bytes: int = 4 << 30
    dump_worker_cpu_s: int = 120
    unknown_fields: bool = False
    unknown_field_series: int = 2000


@dataclass(frozen=True, slots=True)
class Notify:
    """Where pages go: `urls` as apprise takes them, `command` as one list of arguments without a shell.

    The command is given the notification as one JSON object on standard input. Alerts of level record
    are told together at `digest_urls`, once in `digest_s`; without addresses they stand in the journal alone.
    """

    urls: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    timeout_s: float = 20.0
    digest_urls: tuple[str, ...] = ()
    digest_s: float = 86_400.0


FIRST_ANSWERS = ("dump", "stacks", "diagnose")
"""What can be done on a page: ask every rank for its dump, take all stacks, look for the cause."""


@dataclass(frozen=True, slots=True)
class Respond:
    """What the keeper does on its own when a page goes out; nothing until it is asked to.

    `on_page` names first answers of "dump", "stacks" and "diagnose". The page waits for the verdict, so that
    the one message names the rank, but no longer than `page_waits_s`. `exclude_command` and `restart_command`
    are lists of words, run without a shell and given the verdict as JSON on standard input, each once an
    incident where the verdict is certain enough; while `dry_run` holds they are only told of.
    """

    on_page: tuple[str, ...] = ()
    dump_wait_s: float = 8.0
    stacks_wait_s: float = 8.0
    page_waits_s: float = 10.0
    exclude_command: tuple[str, ...] = ()
    restart_command: tuple[str, ...] = ()
    hook_wait_s: float = 120.0
    dry_run: bool = True


@dataclass(frozen=True, slots=True)
class Prometheus:
    """`runbook_url` is where people find the runbook; alerts put their anchor behind it."""

    url: str = ""
    runbook_url: str = "runbook.md"


@dataclass(frozen=True, slots=True)
class Dcgm:
    """`url` is where a node's dcgm-exporter answers ("http://127.0.0.1:9400/metrics"); else NVML is asked."""

    url: str = ""


@dataclass(frozen=True, slots=True)
class Hardware:
    """What is recorded of each node's hardware.

    `kernel_log` is "auto" (the kernel's own log, else the journal), "none", or a file that some other program
    writes. `record` asks `watch` to record the node that it runs on.
    """

    record: bool = True
    every_s: float = 10.0
    kernel_log: str = "auto"


@dataclass(frozen=True, slots=True)
class Xid:
    """Codes whose level is another one here than in the table; see `ledger.xids`."""

    page: tuple[int, ...] = ()
    record: tuple[int, ...] = ()
    ignore: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Cost:
    """`gpu_price_per_hour` in `currency`; run.json's own price goes before it."""

    gpu_price_per_hour: float | None = None
    currency: str = "USD"


@dataclass(frozen=True, slots=True)
class Trace:
    """Traces that `watch` takes every `every_s` (0: never), so that there is an earlier one to compare with.

    Of `ranks`, or of four spread over the run where none are named; of each rank the newest `keep` are kept.
    """

    every_s: float = 0.0
    ranks: tuple[int, ...] = ()
    steps: int = 3
    keep: int = 24
    wait_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Config:
    """The whole configuration; `file` is where it was read from, None for the defaults."""

    alerts: Alerts = field(default_factory=Alerts)
    limits: Limits = field(default_factory=Limits)
    notify: Notify = field(default_factory=Notify)
    respond: Respond = field(default_factory=Respond)
    prometheus: Prometheus = field(default_factory=Prometheus)
    dcgm: Dcgm = field(default_factory=Dcgm)
    hardware: Hardware = field(default_factory=Hardware)
    xid: Xid = field(default_factory=Xid)
    cost: Cost = field(default_factory=Cost)
    trace: Trace = field(default_factory=Trace)
    file: Path | None = None
