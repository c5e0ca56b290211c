"""How does a reading of hardware stand in RUN/hardware/HOST.jsonl?

One JSON object a line: {"t", "host", "gpu", "uuid", "pci", "by", …fields} of a GPU, {"t", "host", "device",
"port", "by", …fields} of a network port, and {"t", "host", "by", "not_observed": […]} for what a host does
not tell.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from train_ledger.facts import HardwareReading
from train_ledger.fields import read_number, written_number
from train_ledger.run_dir import parsed_json
from train_ledger.sources.hardware.gpu_fields import RENAMED, SMALLEST_BLANK, is_blank
from train_ledger.sources.logs.kernel_log import pci_address

__all__ = ["BadReadingError", "line_of", "reading_of"]

_LATEST_T = 1e11
_LARGEST_INDEX = 1 << 20
_MOST_FIELDS = 1000
_LONGEST_WORD = 200
_decode = msgspec.json.Decoder().decode
_OWN_KEYS = frozenset({"t", "host", "gpu", "uuid", "pci", "device", "port", "by", "not_observed"})


class BadReadingError(ValueError):
    """A line is no reading; its text is the reason by which it is counted."""


def line_of(reading: HardwareReading) -> str:
    """The line of a reading, without its newline.

    >>> line_of(HardwareReading(1.5, "n1", gpu=0, by="nvml", values={"DCGM_FI_DEV_GPU_TEMP": 61.0}))
    '{"t": 1.5, "host": "n1", "gpu": 0, "by": "nvml", "DCGM_FI_DEV_GPU_TEMP": 61}'
    """
    line: dict[str, Any] = {"t": round(reading.t, 3), "host": reading.host}
    for name in ("gpu", "uuid", "pci", "device", "port"):
        if (value := getattr(reading, name)) is not None:
            line[name] = value
    line["by"] = reading.by
    line |= {name: _written(value) for name, value in reading.values.items()}
    if reading.not_observed:
        line["not_observed"] = list(reading.not_observed)
    return json.dumps(line)


def _written(value: float) -> int | float | str:
    return int(value) if value == value // 1 and abs(value) < 1 << 53 else written_number(value)


def reading_of(data: bytes, *, host: str | None = None, source: str = "") -> HardwareReading:
    """The reading of a line; `host` is that of the file, for lines that name none.

    Raises BadReadingError: not_json, not_object, missing_field, bad_number, bad_value.
    """
    line = _object(data)
    t = read_number(line.get("t"))
    if t is None or not abs(t) < _LATEST_T:
        raise BadReadingError("missing_field" if line.get("t") is None else "bad_number")
    own_host = _word(line, "host") or host
    if own_host is None:
        raise BadReadingError("missing_field")
    pci = _word(line, "pci")
    return HardwareReading(
        t,
        own_host,
        gpu=_index(line, "gpu"),
        uuid=_word(line, "uuid"),
        pci=pci_address(pci) if pci else None,
        device=_word(line, "device"),
        port=_index(line, "port"),
        by=_word(line, "by") or "",
        values=_values(line),
        not_observed=_words(line.get("not_observed")),
        source=source,
    )


def _object(data: bytes) -> Mapping[str, Any]:
    try:
        line = _decode(data)
    except (msgspec.DecodeError, RecursionError):
        line = _leniently(data)
    if not isinstance(line, dict):
        raise BadReadingError("not_object")
    return line


def _leniently(data: bytes) -> Any:
    """Bare NaN and Infinity and very large numbers are taken, too."""
    try:
        return parsed_json(data)
    except ValueError as error:
        raise BadReadingError("not_json") from error


def _index(line: Mapping[str, Any], key: str) -> int | None:
    value = line.get(key)
    if value is None:
        return None
    number = read_number(value)
    if number is None or not 0 <= number < _LARGEST_INDEX or number != int(number):
        raise BadReadingError("bad_number")
    return int(number)


def _word(line: Mapping[str, Any], key: str) -> str | None:
    value = line.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > _LONGEST_WORD:
        raise BadReadingError("bad_value")
    return value


def _words(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise BadReadingError("bad_value")
    return tuple(it[:_LONGEST_WORD] for it in value[:_MOST_FIELDS] if isinstance(it, str))


def _values(line: Mapping[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in line.items():
        if name in _OWN_KEYS:
            continue
        number = value if type(value) is float else read_number(value)
        if number is None or (not number < SMALLEST_BLANK and name.startswith("DCGM_") and is_blank(number)):
            continue
        found[RENAMED.get(name, name)] = number
        if len(found) >= _MOST_FIELDS:
            break
    return found
