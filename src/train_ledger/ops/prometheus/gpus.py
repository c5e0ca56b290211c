"""What do the series of GPUs say of those under a run?

The kernel's XIDs as our exporters tell them, and dcgm-exporter's figures, both styles of labels. When an XID
or a memory error of DCGM's came is when its figure changed; one that has not changed within an hour is old.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from train_ledger.config import Xid
from train_ledger.ledger import RankState
from train_ledger.ledger.hardware.places import host_key
from train_ledger.ledger.hardware.records import GpuState, XidState
from train_ledger.ledger.xids import level_here
from train_ledger.sources.hardware.gpu_fields import RENAMED, XID, is_blank
from train_ledger.sources.prometheus import RunSeries, Sample

__all__ = ["gpus_of"]

_DBE = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"
_LEVELS = ("page", "record", "ignore")
_Key = tuple[str, str]


def gpus_of(series: RunSeries, ranks: Iterable[RankState], overrides: Xid) -> tuple[GpuState, ...]:
    """The GPUs of these ranks that any series tells of; `overrides` are levels of XIDs that the user set."""
    places = _Places(ranks)
    values: dict[int, dict[str, float]] = {}
    seen_t: dict[int, float] = {}
    for it in series.gpus:
        for rank in places.ranks_of(it):
            if not is_blank(it.value):
                values.setdefault(rank, {})[RENAMED.get(it.name, it.name)] = it.value
                seen_t[rank] = max(it.t, seen_t.get(rank, it.t))
    xids = _xids(series, places, overrides)
    dbe_t = {rank: it.value for it in series.changed_t.get(_DBE, ()) for rank in places.ranks_of(it)}
    found = sorted({*values, *xids, *dbe_t})
    return tuple(
        GpuState(
            host=places.of[rank].host or "",
            gpu=places.of[rank].gpu,
            uuid=places.of[rank].uuid,
            ranks=(rank,),
            by="dcgm" if rank in values else "",
            seen_t=seen_t.get(rank),
            values=values.get(rank, {}),
            xids=tuple(xids.get(rank, ())),
            dbe_t=dbe_t.get(rank),
        )
        for rank in found
    )


class _Places:
    """Of which rank is the GPU of a sample: by its UUID, else by its host and index."""

    def __init__(self, ranks: Iterable[RankState]) -> None:
        self.of: Mapping[int, RankState] = {it.rank: it for it in ranks}
        self._by_uuid: dict[str, list[int]] = {}
        self._by_place: dict[_Key, list[int]] = {}
        for rank, it in sorted(self.of.items()):
            if it.uuid:
                self._by_uuid.setdefault(it.uuid.lower(), []).append(rank)
            if it.host and it.gpu is not None:
                self._by_place.setdefault((host_key(it.host), str(it.gpu)), []).append(rank)

    def ranks_of(self, sample: Sample) -> tuple[int, ...]:
        """The first of the ranks on that GPU; () where it is nobody's, or an instance of a GPU."""
        labels = sample.labels
        if labels.get("GPU_I_ID"):
            return ()
        uuid = labels.get("UUID") or labels.get("uuid") or ""
        if uuid:
            return tuple(self._by_uuid.get(uuid.lower(), ())[:1])
        host = labels.get("host") or labels.get("Hostname") or labels.get("hostname") or ""
        return tuple(self._by_place.get((host_key(host), labels.get("gpu", "")), ())[:1])


def _xids(series: RunSeries, places: _Places, overrides: Xid) -> dict[int, list[XidState]]:
    found: dict[int, list[XidState]] = {}
    last_t = {_xid_key(it): series.time_of(it) for it in series.xids if it.name.endswith("_seconds")}
    told = [it for it in series.xids if it.name == "train_xid_total"]
    levels = {_xid_key(it): it.labels.get("level", "") for it in told}
    for it in told:
        code, level, key = it.labels.get("code", ""), levels[_xid_key(it)], _xid_key(it)
        if not code.isdecimal() or level not in _LEVELS or key not in last_t:
            continue
        for rank in places.ranks_of(it):
            state = XidState(int(code), level, int(it.value), last_t[key], last_t[key])  # type: ignore[arg-type]
            found.setdefault(rank, []).append(state)
    _add_dcgm(series, places, overrides, found)
    return found


def _xid_key(sample: Sample) -> tuple[str, ...]:
    return tuple(sample.labels.get(name, "") for name in ("instance", "host", "gpu", "uuid", "code", "level"))


def _add_dcgm(series: RunSeries, places: _Places, overrides: Xid, found: dict[int, list[XidState]]) -> None:
    """XIDs that DCGM saw and the kernel's reader did not, from when the code changed."""
    changed: dict[int, float] = {}
    for name in (XID, "DCGM_FI_DEV_XID_ERROR"):
        for it in series.changed_t.get(name, ()):
            changed.update(dict.fromkeys(places.ranks_of(it), it.value))
    for it in series.gpus:
        if RENAMED.get(it.name, it.name) != XID or not math.isfinite(it.value) or it.value <= 0:
            continue
        text = it.labels.get("err_code", "")
        code = int(text) if text.isdecimal() and len(text) < 7 else int(it.value)
        for rank in places.ranks_of(it):
            known = {xid.code for xid in found.get(rank, ())}
            if rank in changed and code not in known:
                state = XidState(
                    code, level_here(code, overrides=overrides), 1, changed[rank], changed[rank], by="dcgm"
                )
                found.setdefault(rank, []).append(state)
