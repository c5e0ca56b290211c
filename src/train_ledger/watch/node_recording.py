"""Is this node's hardware to be recorded beside a keeper, and since when?"""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection

from train_ledger.config import Config
from train_ledger.run_dir import RunDir
from train_ledger.sources.hardware.cards import has_gpus
from train_ledger.watch.record_hardware import HardwareRecorder

__all__ = ["NodeRecording"]


class NodeRecording:
    """The recorder of a keeper, which begins once it is known that this node matters to the run.

    It does where the node is one of the run's hosts or has GPUs, and [hardware] record is on. `tell` is
    called with what a person should know.
    """

    def __init__(self, run_dir: RunDir, config: Config, tell: Callable[[str], None]) -> None:
        self._run_dir = run_dir
        self._config = config
        self._tell = tell
        self._recorder: HardwareRecorder | None = None

    def attend(self, hosts: Collection[str | None]) -> None:
        """Look after it; `hosts` are those of the run's ranks, as far as is known."""
        if self._recorder is None:
            if not self._config.hardware.record or not (socket.gethostname() in hosts or has_gpus()):
                return
            self._recorder = HardwareRecorder(self._run_dir, self._config)
            self._recorder.start()
        for remark in self._recorder.remarks():
            self._tell(remark)

    def close(self) -> None:
        if self._recorder is not None:
            self._recorder.close()
