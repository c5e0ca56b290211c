"""What did the user write, and is it what can be set?"""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from train_ledger.config.tables import FIRST_ANSWERS, Alerts, Config
from train_ledger.run_dir import RunDir, read_small, users_folder

__all__ = ["ConfigError", "load", "with_alerts"]


_LARGEST_INT = 1 << 53
_LARGEST_FLOAT = 1e9
"""Thirty years in seconds: what is larger is a slip, and no timer takes it."""


_LEAST: Mapping[str, float] = {
    "alerts.evaluation_interval_s": 0.1,
    "alerts.repeat_interval_s": 1.0,
    "notify.digest_s": 1.0,
}
"""By 0 somebody may mean "never"; it would be "without a pause"."""


_WORDS: Mapping[str, tuple[str, ...]] = {"respond.on_page": FIRST_ANSWERS}
"""Lists that take these words alone."""


class ConfigError(Exception):
    """A configuration file cannot be used; the text says which file, which key and what would do."""


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
        words = _WORDS.get(key)
        if good and words is not None and not set(value) <= set(words):
            raise ConfigError(f"{path}: {key} takes {', '.join(words)}, is {_in_short([*value])}")
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
