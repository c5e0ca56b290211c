"""What is wrong with a GPU's memory, links and clocks, or that it is no longer seen?

The same windows as the embedded twins in `ledger.hardware` have.
"""

from __future__ import annotations

from train_ledger.dash.rule import Recording
from train_ledger.dash.rules.gpus.places import IDS, dcgm, gpus

__all__ = ["GPU_RECORDINGS"]

_LINKS = ("CRC_FLIT", "CRC_DATA", "REPLAY", "RECOVERY")
_DBE, _SBE = dcgm("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"), dcgm("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL")
_REMAP, _MHZ = dcgm("DCGM_FI_DEV_ROW_REMAP_PENDING"), dcgm("DCGM_FI_DEV_SM_CLOCK")
_REASONS = f"({dcgm('DCGM_FI_DEV_CLOCKS_EVENT_REASONS')} or {dcgm('DCGM_FI_DEV_CLOCK_THROTTLE_REASONS')})"
_BITS = "gpu:clock_reasons:bits"
_LOW = "gpu:clock_low:bool"
_EPISODES = "gpu:clock_low_episodes:count"
_LOADED = "gpu:sm_clock_loaded:mhz"
_DAY = f"{_LOADED}[1d:5m]"


def _bit(value: int) -> str:
    return f"floor({_BITS} / {value}) % 2"


_TROUBLE = f"({_bit(8)} + {_bit(32)} + {_bit(64)} + {_bit(128)}) * (1 - {_BITS} % 2) > 0"
_ERRORS = [dcgm(f"DCGM_FI_DEV_NVLINK_{kind}_ERROR_COUNT_TOTAL") for kind in _LINKS]
_LINKS_GREW = "\n    or ".join(f"{it} - min_over_time({it}[$link_window:1m]) > 0" for it in _ERRORS)
_IS_LOADED = f"({dcgm('DCGM_FI_DEV_GPU_UTIL')} >= 50 or {dcgm('DCGM_FI_PROF_GR_ENGINE_ACTIVE')} >= 0.5)"
_LOAD = f"({dcgm('DCGM_FI_DEV_GPU_UTIL')} or {dcgm('DCGM_FI_PROF_GR_ENGINE_ACTIVE')})"
_OTHERS = [dcgm(f"DCGM_FI_DEV_{name}") for name in ("GPU_TEMP", "POWER_USAGE", "GPU_UTIL")]
_SEEN = f"({' or '.join(_OTHERS)})"

GPU_RECORDINGS: tuple[Recording, ...] = (
    Recording(
        "gpu:ecc_uncorrected:bad",
        gpus(
            f"""(
    increase({_DBE}[$ecc_window]) > 0
    or last_over_time({_DBE}[$ecc_window]) > 0 unless last_over_time({_DBE}[$ecc_window] offset $ecc_window)
    or last_over_time({_REMAP}[$lookback]) > 0
  )"""
        ),
    ),
    Recording(
        "gpu:ecc_corrected:least",
        gpus(f"min_over_time({_SBE}[$ecc_sbe_window:10m])", aggregation="min"),
        group="slow",
    ),
    Recording("gpu:ecc_corrected:grown", f"{gpus(_SBE)} - gpu:ecc_corrected:least > $ecc_sbe_growth"),
    Recording("gpu:nvlink_errors:grown", gpus(f"(\n    {_LINKS_GREW}\n  )")),
    Recording(_BITS, gpus(_REASONS)),
    Recording("gpu:sm_clock:mhz", gpus(_MHZ)),
    Recording(_LOADED, f"gpu:sm_clock:mhz and on ({IDS}) {gpus(_IS_LOADED)}"),
    Recording(
        "gpu:sm_clock_usual:mhz",
        f"quantile_over_time(0.5, {_DAY}) and count_over_time({_DAY}) >= 6",
        group="slow",
    ),
    # An idle card says nothing either way, so for a while what it said before holds.
    Recording(
        "gpu:clock_told:bool",
        f"""1 + 0 * ({_TROUBLE})
or 1 + 0 * ({_LOADED} < $clock_low_fraction * gpu:sm_clock_usual:mhz)
or 0 * {_LOADED}
or (0 * ({_BITS} or gpu:sm_clock:mhz) unless ({_BITS} % 2 == 1) unless on ({IDS}) {gpus(_LOAD)})""",
    ),
    Recording(
        "gpu:clock_bad:bool",
        f"""(last_over_time(gpu:clock_told:bool[$clock_low]) and ({_BITS} or gpu:sm_clock:mhz))
or 0 * ({_BITS} or gpu:sm_clock:mhz)""",
    ),
    Recording(
        _LOW,
        "(min_over_time(gpu:clock_bad:bool[$clock_low]) == bool 1)\n"
        "and last_over_time(gpu:clock_bad:bool[$clock_low] offset $clock_low)",
    ),
    Recording(
        _EPISODES,
        f"""(last_over_time({_EPISODES}[$lookback]) or 0 * {_LOW})
+ ({_LOW} > bool ({_LOW} offset $evaluation_interval or 0 * {_LOW}))""",
    ),
    Recording("gpu:seen:bool", f"{gpus(_SEEN, aggregation='group')}\nor 1 + 0 * gpu:sm_clock:mhz"),
    Recording("gpu:known:bool", "gpu:seen:bool or gpu:known:bool"),
)
