"""What does dcgm-exporter's page say of each GPU?

Read line by line, so that a bad one spoils itself alone. Both styles of labels are taken (Hostname and
hostname, an XID as value or as err_code), and both generations of field names. Other exporters' metrics in
the same text are passed over.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from train_ledger.facts import HardwareReading
from train_ledger.sources.hardware.gpu_fields import RENAMED, XID, is_blank, labelled
from train_ledger.sources.logs.kernel_log import pci_address

__all__ = ["DcgmPage", "read_page"]

_MOST_BYTES = 16 << 20
_MOST_GPUS = 256
_MOST_FIELDS = 400
_LONGEST_LINE = 16 << 10
_EXPORTERS_OWN = "DCGM_EXP_"
_OF_MANY = frozenset({"xid", "clock_event"})
"""Labels by which what dcgm-exporter counts by itself has several figures."""

_SAMPLE = re.compile(r"(DCGM_[A-Z0-9_]{1,120})\{(.*)\}\s+(\S{1,40})(?:\s+(-?\d{1,18}))?\s*\Z", re.ASCII)
_LABEL = re.compile(r'\s*([A-Za-z_]\w{0,99})="((?:[^"\\]|\\.)*)"\s*(?:,|\Z)')
_ESCAPED = re.compile(r"\\(.)")
_NUMBER = re.compile(r"\d{1,4}\Z", re.ASCII)
_OTHERS = frozenset({"nvswitch", "cpu", "cpucore"})
"""Labels of what DCGM watches besides GPUs."""


class DcgmPage(NamedTuple):
    """One reading a GPU, by index; how many lines of DCGM could not be read, by reason.

    Reasons: not_a_sample, bad_number, no_gpu (the line names none), too_long, too_many (GPUs, or fields of
    one), cut (the text was longer than is read). Lines of switches and CPUs are passed over.
    """

    readings: list[HardwareReading]
    bad_lines: Counter[str]


@dataclass(slots=True)
class _Gpu:
    index: int | None = None
    uuid: str | None = None
    pci: str | None = None
    host: str | None = None
    values: dict[str, float] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    newest_xid_ms: int = -1


def read_page(text: str, *, t: float, host: str | None = None) -> DcgmPage:
    """The GPUs of a page that was fetched at `t` (unix seconds). Never raises.

    `host` is the node whose page it is; where it is None, the page's own label is taken, which is
    "localhost" where a remote host engine is asked. Of a GPU that is divided into instances (MIG) only what
    is told of the whole GPU is a value; what is told of its parts alone, and what DCGM stands a blank for, is
    `not_observed`.
    """
    gpus: dict[str, _Gpu] = {}
    bad: Counter[str] = Counter()
    if len(text) > _MOST_BYTES:
        text = text[:_MOST_BYTES].rpartition("\n")[0]
        bad["cut"] += 1
    for line in text.splitlines():
        if line.startswith("DCGM_"):
            trouble = _take(line, gpus)
            if trouble:
                bad[trouble] += 1
    readings = [_reading(gpu, t, host) for gpu in gpus.values()]
    readings.sort(key=lambda it: (it.gpu is None, it.gpu or 0, it.uuid or ""))
    return DcgmPage(readings, bad)


def _take(line: str, gpus: dict[str, _Gpu]) -> str | None:
    """Why a line is not taken, or None."""
    if len(line) > _LONGEST_LINE:
        return "too_long"
    sample = _SAMPLE.match(line)
    labels = _labels(sample[2]) if sample else None
    if sample is None or labels is None:
        return "not_a_sample"
    key = labels.get("UUID") or labels.get("uuid") or labels.get("gpu")
    if _OTHERS & labels.keys():
        return None
    if not key:
        return "no_gpu"
    gpu = gpus.get(key)
    if gpu is None:
        if len(gpus) >= _MOST_GPUS:
            return "too_many"
        gpu = gpus[key] = _Gpu()
    _name(gpu, labels)
    try:
        value = float(sample[3])
    except ValueError:
        return "bad_number"
    return _add(gpu, RENAMED.get(sample[1], sample[1]), labels, value, int(sample[4] or 0))


def _labels(text: str) -> dict[str, str] | None:
    found: dict[str, str] = {}
    place = 0
    while place < len(text):
        match = _LABEL.match(text, place)
        if match is None:
            return None
        found[match[1]] = _ESCAPED.sub(lambda it: "\n" if it[1] == "n" else it[1], match[2])
        place = match.end()
    return found


def _name(gpu: _Gpu, labels: Mapping[str, str]) -> None:
    if gpu.uuid is None:
        gpu.uuid = labels.get("UUID") or labels.get("uuid") or None
    if gpu.index is None and _NUMBER.match(labels.get("gpu", "")):
        gpu.index = int(labels["gpu"])
    if gpu.pci is None:
        gpu.pci = pci_address(labels.get("pci_bus_id", ""))
    if gpu.host is None:
        gpu.host = labels.get("hostname") or labels.get("Hostname") or None


def _add(gpu: _Gpu, name: str, labels: Mapping[str, str], value: float, stamp_ms: int) -> str | None:
    if len(gpu.values) + len(gpu.missing) >= _MOST_FIELDS:
        return "too_many"
    if labels.get("GPU_I_ID") or labels.get("GPU_CI_ID") or is_blank(value):
        gpu.missing.add(name)  # what is told of the whole GPU, too, is not missing in the end
        return None
    if name == XID:
        _add_xid(gpu, labels.get("err_code", ""), value, stamp_ms)
    elif name.startswith(_EXPORTERS_OWN):
        for label in _OF_MANY & labels.keys():
            gpu.values[labelled(name, label, labels[label])] = value
    elif "nvlink" in labels or "link" in labels:
        if name.endswith("_TOTAL"):
            gpu.values[name] = gpu.values.get(name, 0.0) + value
    else:
        gpu.values[name] = value
    return None


def _add_xid(gpu: _Gpu, err_code: str, value: float, stamp_ms: int) -> None:
    """The newest code is the field's value; where there are several, each stands under its own name, too."""
    code = float(err_code) if _NUMBER.match(err_code) and value else value
    if code and gpu.values.get(XID) and code != gpu.values[XID]:
        for known in (code, gpu.values[XID]):
            gpu.values[labelled(XID, "err_code", f"{known:g}")] = known
    if XID not in gpu.values or (code and stamp_ms >= gpu.newest_xid_ms):
        gpu.values[XID] = code
        gpu.newest_xid_ms = stamp_ms if code else -1


def _reading(gpu: _Gpu, t: float, host: str | None) -> HardwareReading:
    missing = tuple(sorted(gpu.missing - gpu.values.keys()))
    return HardwareReading(
        t,
        host or gpu.host or "",
        gpu=gpu.index,
        uuid=gpu.uuid,
        pci=gpu.pci,
        by="dcgm",
        values=gpu.values,
        not_observed=missing,
    )
