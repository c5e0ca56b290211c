"""Which alerts is an incident of each kind about?

A page is right in the time of an incident that it is about. An incident is found by a right page that is
about it, or by one of those that tell of what caused it: a GPU that fell off the bus is why the run stands,
and whoever was paged for the GPU is not paged again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["KINDS", "Kind"]

_STANDS = frozenset({"TrainingStepStalled", "TrainingProcessGone", "TrainingTelemetryLost"})
_GPU = frozenset({"GpuXidError", "GpuEccDbe", "GpuLost"})
_LOOP = frozenset({"TrainingRestartLoop"})
_SAVES = frozenset({"CheckpointSaveFailed"})
_SLOW = frozenset({"TrainingStepTimeRegressed", "TrainingMfuDegraded", "GpuClockLowRepeated"})


class Kind(NamedTuple):
    """`about` are the alerts that are right in its time, `told_by` those by which it is found besides."""

    about: frozenset[str]
    told_by: frozenset[str] = frozenset()


KINDS: Mapping[str, Kind] = {
    "stall": Kind(_STANDS, _GPU | _LOOP),
    "attempt_ended": Kind(_STANDS, _GPU | _LOOP),
    "process_gone": Kind(_STANDS, _GPU | _LOOP),
    "host_silent": Kind(_STANDS, _GPU | _LOOP),
    "restart_loop": Kind(_LOOP | _STANDS, _GPU),
    "xid": Kind(frozenset({"GpuXidError"}) | _STANDS, _GPU),
    "memory_error": Kind(frozenset({"GpuEccDbe"}) | _STANDS, _GPU),
    "gpu_lost": Kind(frozenset({"GpuLost"}) | _STANDS, _GPU),
    "clock_low": Kind(frozenset({"GpuClockLowRepeated"})),
    "slower": Kind(frozenset({"TrainingStepTimeRegressed"}), _SLOW),
    "mfu_low": Kind(frozenset({"TrainingMfuDegraded"}), _SLOW),
    "nonfinite_loss": Kind(frozenset({"TrainingLossNotFinite"})),
    "save_failed": Kind(_SAVES),
    "saves_slow": Kind(_SAVES),
    "saves_missing": Kind(_SAVES),
    "data_position": Kind(frozenset({"DataPositionRegressed"})),
    "effective_low": Kind(frozenset({"EffectiveTrainingTimeLow"})),
}
