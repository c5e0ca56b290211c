"""Who can be asked of this host's GPUs: dcgm-exporter where one is named, else the NVIDIA driver?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from train_ledger.facts import HardwareReading
from train_ledger.sources.hardware.dcgm import read_page
from train_ledger.sources.hardware.gpu_fields import WANTED
from train_ledger.sources.hardware.nvml import Nvml, NvmlUnusableError
from train_ledger.sources.hardware.served_text import NotServedError, served_text

__all__ = ["Cards", "Look", "has_gpus"]

_DRIVERS_GPUS = Path("/proc/driver/nvidia/gpus")


class Look(NamedTuple):
    """One look at all cards of a kind, and what it could not see, in words or by the names of fields."""

    readings: list[HardwareReading]
    not_observed: tuple[str, ...] = ()


class Cards:
    """The GPUs of `host`; `url` is where its dcgm-exporter serves, "" where there is none."""

    def __init__(self, host: str, url: str = "", nvml: Nvml | None = None) -> None:
        self._host = host
        self._url = url
        self._nvml = nvml or Nvml(host)

    def look(self, t: float) -> Look:
        """All GPUs now; where dcgm-exporter does not answer the driver is asked. Never raises."""
        missing: list[str] = []
        if self._url:
            try:
                return self._by_dcgm(t)
            except NotServedError as error:
                missing.append(f"dcgm-exporter: {error}; the NVIDIA driver is asked instead")
        try:
            readings = self._nvml.look(t)
        except NvmlUnusableError as error:
            return Look([], (*missing, f"GPUs: {error}"))
        return Look([it for it in readings if it.gpu is not None], (*missing, *_missing(readings)))

    def _by_dcgm(self, t: float) -> Look:
        page = read_page(served_text(self._url), t=t, host=self._host)
        if not page.readings:
            raise NotServedError(f"{self._url}: serves no figures of a GPU")
        told = {name for reading in page.readings for name in reading.values}
        of_none = tuple(name for name in WANTED if name not in told)
        bad = tuple(f"dcgm-exporter: lines not read: {why}" for why in sorted(page.bad_lines))
        return Look(page.readings, (*dict.fromkeys((*of_none, *_missing(page.readings))), *bad))

    def close(self) -> None:
        self._nvml.close()


def _missing(readings: list[HardwareReading]) -> tuple[str, ...]:
    """What no card tells by its name alone, what some do not with theirs."""
    cards = [it for it in readings if it.gpu is not None]
    said = [name for it in readings if it.gpu is None for name in it.not_observed]
    names = dict.fromkeys(name for it in cards for name in it.not_observed)
    for name in names:
        without = [str(it.gpu) for it in cards if name in it.not_observed]
        said.append(name if len(without) == len(cards) else f"{name} of GPU {', '.join(without)}")
    return tuple(said)


def has_gpus() -> bool:
    """Whether the NVIDIA driver knows of a GPU of this host, without asking it."""
    try:
        return bool(os.listdir(_DRIVERS_GPUS))
    except OSError:
        return False
