"""Who writes down what the hardware of this host says while a run is followed?

A recorder: one thread for the kernel's log, one for the GPUs, one for the network ports, so that none waits
for another's card, exporter or disk, and whoever follows the run waits for none of them. What cannot be
observed is written once and told once.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from train_ledger.config import Config
from train_ledger.facts import HardwareReading
from train_ledger.fields import read_number
from train_ledger.run_dir import RunDir, RunDirError
from train_ledger.sources.hardware.cards import Cards, Look
from train_ledger.sources.hardware.infiniband import SYSFS, read_ports
from train_ledger.sources.hardware.kernel_lines import KernelLines
from train_ledger.sources.hardware.reading_line import line_of
from train_ledger.watch.hardware_store import HardwareStore

__all__ = ["HardwareRecorder"]

_TICK_S = 1.0
_CLAIM_TICKS = 10
_EARLIER_S = 600.0
_AGAIN_S = 60.0
_SILENT_S = 60.0
_FIRST_LOOK_S = 15.0
_MOST_WAITING = 20_000
_MOST_TOLD = 2_000
_JOIN_S = 3.0


class HardwareRecorder:
    """Records this host's hardware into a run directory from `start` to `close`.

    Two recorders of one host never write both: the second waits until the first has ended. `remarks` gives
    what a person should know, each once. `look_at_cards` and `look_at_ports` are who is asked, at which
    moment in unix seconds.
    """

    def __init__(
        self,
        run_dir: RunDir,
        config: Config,
        *,
        host: str | None = None,
        look_at_cards: Callable[[float], Look] | None = None,
        look_at_ports: Callable[[float], Look] | None = None,
        tick_s: float = _TICK_S,
    ) -> None:
        self._host = host or socket.gethostname()
        self._run_dir = run_dir
        self._config = config
        self._tick_s = tick_s
        self._store = HardwareStore(run_dir, self._host)
        self._cards = Cards(self._host, config.dcgm.url)
        self._ending = threading.Event()
        self._owns = threading.Event()
        self._lock = threading.Lock()
        self._remarks: deque[str] = deque(maxlen=100)
        self._told: set[str] = set()
        self._missing: list[str] = []
        self._waiting: deque[str] = deque(maxlen=_MOST_WAITING)
        self._kernel: KernelLines | None = None
        every_s = max(tick_s, config.hardware.every_s)
        self._looks = (
            _Looks("GPUs", look_at_cards or self._cards.look, every_s),
            _Looks("network ports", look_at_ports or self._ports, every_s),
        )
        self._threads = [
            threading.Thread(target=self._oversee, name="hardware-kernel", daemon=True),
            *(
                threading.Thread(
                    target=self._keep_looking, args=(it,), name=f"hardware-{it.name}", daemon=True
                )
                for it in self._looks
            ),
        ]

    def start(self) -> None:
        """Begin; returns at once."""
        for thread in self._threads:
            thread.start()

    def remarks(self) -> list[str]:
        """What a person should know and was not told yet."""
        with self._lock:
            remarks = list(self._remarks)
            self._remarks.clear()
        return remarks

    def close(self) -> None:
        """End; a thread that is held up by a card or a disk is left behind and ends with the process."""
        self._ending.set()
        until_s = time.monotonic() + _JOIN_S
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, until_s - time.monotonic()))

    # -- the cards

    def _ports(self, t: float) -> Look:
        ports = read_ports(t, self._host)
        if not ports:
            return Look([], (f"network ports: none in {SYSFS}",))
        missing = (f"{name} of {it.device} port {it.port}" for it in ports for name in it.not_observed)
        return Look(ports, tuple(missing))

    def _keep_looking(self, looks: _Looks) -> None:
        while not self._owns.wait(self._tick_s):
            if self._ending.is_set():
                return
        while not self._ending.is_set():
            looks.began_s = time.monotonic()
            look = looks.ask(time.time())
            looks.began_s = None
            looks.has_looked = True
            with self._lock:
                self._missing += look.not_observed
            if look.readings and not self._ending.is_set():
                self._write_readings(look.readings)
            self._ending.wait(looks.every_s if look.readings else max(looks.every_s, _AGAIN_S))
        if looks is self._looks[0]:
            self._cards.close()

    def _write_readings(self, readings: list[HardwareReading]) -> None:
        lines = [line_of(replace(it, not_observed=())) for it in readings]
        try:
            self._store.append(self._store.readings, lines)
        except OSError as error:
            self._tell(f"{self._store.readings}: cannot be written: {error.strerror or error}")

    # -- the kernel's log, and what goes for all

    def _oversee(self) -> None:
        while not self._ending.is_set() and not self._claimed():
            self._ending.wait(_CLAIM_TICKS * self._tick_s)
        if self._ending.is_set():
            self._store.release()
            return
        self._owns.set()
        began_s = time.monotonic()
        kernel = self._kernel = self._opened_kernel()
        while True:
            is_last = self._ending.is_set()
            self._waiting += kernel.poll()
            if is_last:
                self._waiting += kernel.rest()
            self._write_kernel(kernel)
            self._note(kernel)
            if is_last or all(it.has_looked for it in self._looks) or self._is_late(began_s):
                self._write_missing()
            if is_last:
                break
            self._ending.wait(self._tick_s)
        kernel.close()
        self._store.release()

    def _claimed(self) -> bool:
        try:
            if self._store.claim():
                return True
        except OSError as error:
            why = error.strerror or str(error)
            self._tell(f"{self._run_dir.hardware}: {why}; the hardware of this host is not recorded")
            self._ending.wait(_AGAIN_S)
            return False
        self._tell(f"another process records the hardware of {self._host} already")
        return False

    def _opened_kernel(self) -> KernelLines:
        since_t = time.time() - _EARLIER_S
        with contextlib.suppress(RunDirError):  # whoever needs run.json says so
            since_t = max(since_t, read_number(self._run_dir.read_run().get("started")) or 0.0)
        how, place = self._config.hardware.kernel_log, self._store.read_place()
        return KernelLines(how, self._host, since_t=since_t, place=place)

    def _write_kernel(self, kernel: KernelLines) -> None:
        is_new = kernel.is_read and not self._store.kernel.exists()
        if not self._waiting and not is_new:
            return
        try:  # an empty file says that the log was read and told nothing
            self._store.append(self._store.kernel, list(self._waiting))
            if self._waiting:
                self._waiting.clear()
                self._store.write_place(kernel.place())
        except OSError as error:
            self._tell(f"{self._store.kernel}: cannot be written: {error.strerror or error}")

    def _note(self, kernel: KernelLines) -> None:
        said = [kernel.not_observed, kernel.trouble()]
        said += [it.silence() for it in self._looks]
        with self._lock:
            self._missing += [it for it in said if it]

    def _is_late(self, began_s: float) -> bool:
        return time.monotonic() - began_s >= _FIRST_LOOK_S

    def _write_missing(self) -> None:
        with self._lock:
            missing = [it for it in dict.fromkeys(self._missing) if it not in self._told]
            self._missing.clear()
        if not missing or len(self._told) >= _MOST_TOLD:
            return
        reading = HardwareReading(time.time(), self._host, by="recorder", not_observed=tuple(missing))
        self._tell(f"not observed of the hardware of {self._host}: {_in_short(missing)}")
        self._told.update(missing)
        try:
            self._store.append(self._store.readings, [line_of(reading)])
        except OSError as error:
            self._tell(f"{self._store.readings}: cannot be written: {error.strerror or error}")

    def _tell(self, remark: str) -> None:
        with self._lock:
            if remark not in self._told and len(self._told) < _MOST_TOLD:
                self._told.add(remark)
                self._remarks.append(remark)


class _Looks:
    """One kind of cards, and since when (monotonic) an answer about them is waited for."""

    def __init__(self, name: str, ask: Callable[[float], Look], every_s: float) -> None:
        self.name = name
        self.ask = ask
        self.every_s = every_s
        self.began_s: float | None = None
        self.has_looked = False

    def silence(self) -> str | None:
        """That there is no answer, where one is waited for too long."""
        began_s = self.began_s
        if began_s is None or time.monotonic() - began_s < _SILENT_S:
            return None
        return f"{self.name}: no answer for {_SILENT_S:.0f} s"


def _in_short(missing: list[str]) -> str:
    """Sentences as they are, names of fields after them."""
    words = [it for it in missing if " " in it]
    fields = [it for it in missing if " " not in it]
    return "; ".join([*words, *([", ".join(fields)] if fields else [])])
