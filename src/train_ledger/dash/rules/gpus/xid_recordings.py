"""How old is each XID of each rank's GPU?

The kernel's, as the sidecars count it, first. DCGM tells the last code alone, as value or as the label
err_code, and goes on telling it for months: what counts is since when it does. That is remembered by reading
the own last result, so that a code that comes again is new, and one that comes back with its exporter is not.
"""

from __future__ import annotations

from train_ledger.dash.rule import Recording
from train_ledger.dash.rules.gpus.places import IDS, PLACES, dcgm, gpus, several_on_ranks, with_node
from train_ledger.dash.rules.recordings import age_of, of, remembered

__all__ = ["DCGM_AGE", "KERNEL_AGE", "XID_RECORDINGS"]

KERNEL_AGE = "run_gpu_xid:kernel:age_seconds"
DCGM_AGE = "run_gpu_xid:dcgm:age_seconds"

_OF_HOSTS = "gpu_xid:kernel:age_seconds"
_SINCE = "gpu_xid:dcgm:since_seconds"

_IDS = "instance, node, host, gpu, uuid, code, level"
_NOW = "last_over_time(train_xid_total[$xid_window])"
_BEFORE = "last_over_time(train_xid_total[$xid_window] offset $xid_window)"
_GREW = of(f"max by ({_IDS})", with_node(f"({_NOW} - ({_BEFORE} or 0 * {_NOW}))"))
_TOTAL = of(f"max by ({_IDS})", with_node(of("", remembered("train_xid_total"))))

_OWN_PLACE, _OWN_INDEX = f'{PLACES}{{uuid!=""}}', f'{PLACES}{{uuid="",gpu!=""}}'
_OF_NO_UUID = f"({_OF_HOSTS} unless on (instance, uuid) {_OWN_PLACE})"
_BY_OWN_EXPORTER = (
    f"{_OF_HOSTS}\n  + on (instance, uuid) group_left (run, rank, host, gpu)"
    f" (0 * topk by (instance, uuid) (1, {_OWN_PLACE}))\n"
    f"or {_OF_NO_UUID}\n  + on (instance, host, gpu) group_left (run, rank)"
    f" (0 * topk by (instance, host, gpu) (1, {_OWN_INDEX}))"
)
_BY_OTHERS = several_on_ranks(f"({_OF_NO_UUID} unless on (instance, host, gpu) {_OWN_INDEX})")

_XID = "DCGM_FI_DEV_XID_ERRORS"
_LABELLED = f'{_XID}{{GPU_I_ID="",err_code!="",err_code!="0"}} > 0'
_VALUED = f'{_XID}{{GPU_I_ID="",err_code=""}} > 0'
_CODES = gpus(
    f"""(
    label_replace({_LABELLED}, "xid", "$1", "err_code", "(.+)")
    or count_values without () ("xid", {_VALUED})
  )""",
    more=", xid",
)
_SLEPT = "and on () absent(last_over_time(train:judge_awake:bool[4m] offset 1m))"
"""Prometheus itself was away for so long that its own last result is none any more."""
_DCGM_ON_RANKS = of("min by (run, rank, host, gpu, uuid, xid)", several_on_ranks(f"(time() - {_SINCE})"))

XID_RECORDINGS: tuple[Recording, ...] = (
    Recording(
        _OF_HOSTS,
        of(f"min by ({_IDS})", with_node(of("", age_of("train_xid_last_timestamp_seconds"))))
        + f"\nor 0 * ({_GREW} > 0)\nor 2 * $xid_window_s + 0 * {_TOTAL}",
    ),
    Recording(
        KERNEL_AGE,
        of(
            "min by (run, rank, host, gpu, xid, level)",
            f'label_replace(\n{_BY_OWN_EXPORTER}\nor {_BY_OTHERS},\n"xid", "$1", "code", "(.+)")',
        ),
    ),
    Recording(
        _SINCE,
        f"""{_SINCE} and on ({IDS}, xid) {_CODES}
or {_SINCE} unless on (uuid, node) {gpus(dcgm(_XID))}
or last_over_time({_SINCE}[$lookback]) and on ({IDS}, xid) {_CODES} {_SLEPT}
or 0 * {_CODES} + time()""",
    ),
    Recording(
        DCGM_AGE,
        f"{_DCGM_ON_RANKS}\nunless (\n{_DCGM_ON_RANKS} > on (run) group_left () run:train_run_age:seconds\n)",
    ),
)
