"""What did the user set, and what holds where they set nothing?

`train-ledger.toml` in the run directory, else in the user's configuration folder, else the defaults. Every
threshold of DESIGN's alerts has a name here. A key that is not known is an error that lists those that are:
a misspelt threshold would otherwise be found out by the page that did not come.
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from train_ledger.run_dir import RunDir, read_small, users_folder

__all__ = [
    "Alerts",
    "Config",
    "ConfigError",
    "Cost",
    "Dcgm",
    "Hardware",
    "Limits",
    "Notify",
    "Prometheus",
    "Respond",
    "Trace",
    "Xid",
    "load",
    "with_alerts",
]


_LARGEST_INT = 1 << 53
_LARGEST_FLOAT = 1e9
"""Thirty years in seconds: what is larger is a slip, and no timer takes it."""


_LEAST: Mapping[str, float] = {
    "alerts.evaluation_interval_s": 0.1,
    "alerts.repeat_interval_s": 1.0,
    "notify.digest_s": 1.0,
}
"""By 0 somebody may mean "never"; it would be "without a pause"."""


class ConfigError(Exception):
    """A configuration file cannot be used; the text says which file, which key and what would do."""


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


@dataclass(frozen=True, slots=True)
class Respond:
    """What the keeper does on its own when a page goes out: dump, stacks, verdict.

    The page waits for the verdict, so that the one message names the rank, but no longer than `page_waits_s`.
    """

    on_page: tuple[str, ...] = ("dump", "stacks", "diagnose")
    dump_wait_s: float = 8.0
    stacks_wait_s: float = 8.0
    page_waits_s: float = 10.0


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


def load(run_dir: RunDir | None = None) -> Config:
    """The configuration that holds for a run.

    Raises ConfigError for what is no file or no TOML, an unknown table or key, or a value of the wrong type.
    """
    for path in _candidates(run_dir):
        try:
            return _read(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
    return Config()


def with_alerts(config: Config, settings: Mapping[str, str]) -> Config:
    """The configuration with other thresholds of alerts, which are given as text.

    Raises ConfigError for a name that is none, or a value that it cannot have.

    >>> with_alerts(Config(), {"stall_floor_s": "60"}).alerts.stall_floor_s
    60.0
    """
    told = {key: _as_number(text) for key, text in settings.items()}
    alerts = _table(Path("--set"), "alerts", Alerts, told)
    return dataclasses.replace(
        config, alerts=dataclasses.replace(config.alerts, **{key: getattr(alerts, key) for key in told})
    )


def _as_number(text: str) -> float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _candidates(run_dir: RunDir | None) -> list[Path]:
    own = [run_dir.config_file] if run_dir else []
    home = users_folder("XDG_CONFIG_HOME", ".config")
    if home is None:
        return own
    users = home / "train-ledger.toml"
    return [*own, users] if os.path.lexists(users) else own  # false, too, where the home is another user's


def _read(path: Path) -> Config:
    try:
        content = tomllib.loads(read_small(path, limit_bytes=1 << 20).decode())
    except (FileNotFoundError, NotADirectoryError):
        raise
    except RecursionError:
        raise ConfigError(f"{path}: is nested too deeply") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{path}: {why}") from error
    tables = {f.name: f.default_factory for f in dataclasses.fields(Config) if callable(f.default_factory)}
    for name in content:
        if name not in tables:
            raise ConfigError(f"{path}: unknown table [{name}]; known are {', '.join(sorted(tables))}")
    return Config(
        **{name: _table(path, name, type(make()), content.get(name, {})) for name, make in tables.items()},
        file=path,
    )


_Table = TypeVar("_Table")


def _table(path: Path, name: str, kind: type[_Table], content: object) -> _Table:
    if not isinstance(content, Mapping):
        raise ConfigError(f"{path}: [{name}] must be a table")
    default = kind()
    known = {f.name: str(f.type) for f in dataclasses.fields(default)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for key, value in content.items():
        if key not in known:
            listed = ", ".join(sorted(known))
            raise ConfigError(f"{path}: unknown key {key} in [{name}]; known are {listed}")
        if known[key] == "tuple[int, ...]":
            values[key] = _numbers(path, f"{name}.{key}", value)
        else:
            values[key] = _value(path, f"{name}.{key}", getattr(default, key), value)
    return kind(**values)


def _value(path: Path, key: str, default: object, value: Any) -> Any:
    if isinstance(default, bool):
        good = isinstance(value, bool)
    elif isinstance(default, int):
        good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_INT
    elif default is None or isinstance(default, float):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        good = is_number and _LEAST.get(key, 0) <= value <= _LARGEST_FLOAT
        value = float(value) if good else value
    elif isinstance(default, str):
        good = isinstance(value, str)
    else:
        good = isinstance(value, list) and all(isinstance(item, str) for item in value)
        value = tuple(value) if good else value
    if not good:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        wanted = "a number, 0 or more" if default is None else f"like {default!r}"
        if number and isinstance(default, int | float | None):
            largest = _LARGEST_INT if isinstance(default, int) else _LARGEST_FLOAT
            wanted = f"from {_LEAST.get(key, 0):g} to {largest:g}"
        raise ConfigError(f"{path}: {key} must be {wanted}, is {_in_short(value)}")
    return value


def _numbers(path: Path, key: str, value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(
        type(item) is int and 0 <= item <= _LARGEST_INT for item in value
    ):
        raise ConfigError(f"{path}: {key} must be a list of whole numbers, is {_in_short(value)}")
    return tuple(value)


def _in_short(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole number of thousands of digits
        return f"too large {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:60]}…"
