"""What does Prometheus compute of hardware first: whose it is, and what is wrong with it?"""

from __future__ import annotations

from dataclasses import replace

from train_ledger.dash.rule import Recording
from train_ledger.dash.rules.gpus.gpu_recordings import GPU_RECORDINGS
from train_ledger.dash.rules.gpus.places import PLACE_RECORDINGS
from train_ledger.dash.rules.gpus.port_recordings import PORT_RECORDINGS
from train_ledger.dash.rules.gpus.xid_recordings import XID_RECORDINGS

__all__ = ["HARDWARE_RECORDINGS"]

HARDWARE_RECORDINGS: tuple[Recording, ...] = tuple(
    replace(it, group="hardware") if it.group == "run" else it
    for it in (*GPU_RECORDINGS, *PLACE_RECORDINGS, *XID_RECORDINGS, *PORT_RECORDINGS)
)
