"""Where do the facts of this run come from: its ranks' own signals, or its logs?

Signals win. Where a run has none, its logs are followed until signal files appear; then what the logs told is
forgotten, since the signals tell it themselves, from the run's start on. What was recorded of the hardware is
read beside either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec

from train_ledger.facts import Event, Fact, Fault, HardwareReading
from train_ledger.headway import is_heard, tell
from train_ledger.run_dir import RunDir
from train_ledger.sources.files.memory import FilesMemory
from train_ledger.sources.files.not_read import not_read_in_words
from train_ledger.sources.hardware.hardware_files import HardwareFiles
from train_ledger.sources.signal_lines.run_files import POLL_BYTES, Folding, RunFiles

if TYPE_CHECKING:
    from train_ledger.sources.reading.run_logs import RunLogs

__all__ = ["RunFacts", "Starting"]

_LOGS_POLL_BYTES = 1 << 20
"""A second's work where every line tells a step."""

_HARDWARE_POLL_BYTES = 2 << 20


class Starting(Folding, Protocol):
    """What can begin to fold anew; `ledger.Fold` fits."""

    def forget(self) -> None: ...
    def add_hardware(self, fact: HardwareReading | Fault) -> None: ...


class RunFacts:
    """The facts of a run, poll by poll, with the face of `RunFiles`; `by_logs` says that logs tell them.

    `fold_into` folds the hardware's, too; whoever asks by `poll` asks for them by `poll_hardware`.
    """

    def __init__(self, run_dir: RunDir, hosts: Collection[str] | None = None) -> None:
        self._run_dir = run_dir
        self._hosts = hosts
        self._signals = RunFiles(run_dir, hosts)
        self._signals_speak = False
        self._logs: RunLogs | None = None
        self._logs_whole_bytes: int | None = None
        self._hardware = HardwareFiles(run_dir, hosts)

    def _of_logs(self) -> RunLogs | None:
        """The logs where nothing else speaks; None, and the logs let go, from the first signal file on."""
        self._signals_speak = self._signals_speak or self._signals.is_there
        if self._signals_speak:
            return None
        if self._logs is None:
            from train_ledger.sources.reading.run_logs import RunLogs  # it knows every format

            self._logs = RunLogs(self._run_dir, self._hosts, self._signals.host_of)
            if self._logs_whole_bytes is not None:
                self._logs.begin_at_tail(self._logs_whole_bytes)
        return self._logs

    def _let_go(self) -> bool:
        """Whether logs spoke until now."""
        if self._logs is None:
            return False
        self._logs.close()
        self._logs = None
        return True

    @property
    def _current(self) -> RunFiles | RunLogs:
        return self._logs or self._signals

    @property
    def by_logs(self) -> bool:
        return self._logs is not None

    @property
    def bad_lines(self) -> Mapping[str, int]:
        """Lines, and files, that could not be read, by reason."""
        of_logs = self._logs.bad_lines if self._logs else Counter[str]()
        return self._signals.bad_lines + of_logs + self._hardware.bad_lines

    @property
    def last_problem(self) -> str | None:
        """The newest trouble in words for people, "file:line: reason"."""
        return self._current.last_problem or self._signals.last_problem or self._hardware.last_problem

    @property
    def not_read(self) -> tuple[str, ...]:
        """The same in words, one phrase a reason: how many, and where the last of them is."""
        of_logs = self._logs.where if self._logs else {}
        where = {**self._hardware.where, **of_logs, **self._signals.where}
        return not_read_in_words(self.bad_lines, where)

    @property
    def files(self) -> int:
        """How many signal files, or logs where there are none, are followed."""
        return self._current.files

    @property
    def lag_bytes(self) -> int:
        """Bytes that were seen and not read yet."""
        return self._current.lag_bytes + self._hardware.lag_bytes

    @property
    def read_bytes(self) -> int:
        """Bytes of all lines that were read; where it stands still, nothing was written."""
        return self._current.read_bytes + self._hardware.read_bytes

    @property
    def progress(self) -> float | None:
        """The share of what is to be read that was read; None once all of it was."""
        if self.caught_up:
            return None
        read, left = self.read_bytes, self.lag_bytes
        return read / (read + left) if read + left else 0.0

    @property
    def left_out_bytes(self) -> int:
        """Bytes that are not read at all, since reading began behind them."""
        return self._current.left_out_bytes + self._hardware.left_out_bytes

    @property
    def left_out_in_words(self) -> tuple[str, ...]:
        """The same in words, one phrase a kind of files."""
        left_out = (
            (self._current.left_out_bytes, "in the middle of long files"),
            (self._hardware.left_out_bytes, "of earlier readings of the hardware"),
        )
        return tuple(f"{size / 1e6:,.1f} MB {where}" for size, where in left_out if size)

    @property
    def caught_up(self) -> bool:
        """Whether the last poll read all that there was."""
        return self._current.caught_up and self._hardware.caught_up

    @property
    def host_of(self) -> Mapping[int, str]:
        """Where each rank runs, as far as is known."""
        return self._current.host_of

    def fold_into(self, fold: Starting, max_bytes: int = POLL_BYTES) -> list[Event]:
        """Fold what was written since the last poll; returns the events among it, as `RunFiles.fold_into`."""
        logs = self._of_logs()
        if logs is None:
            if self._let_go():
                fold.forget()
            events = self._signals.fold_into(fold, max_bytes)
        else:
            facts = self._of(logs, max_bytes)
            for fact in facts:
                fold.add(fact)
            events = [fact for fact in facts if isinstance(fact, Event)]
        for told in self._hardware.poll(_HARDWARE_POLL_BYTES):
            fold.add_hardware(told)
        self._tell()
        return events

    def _tell(self) -> None:
        if is_heard():
            what = "reading logs" if self.by_logs else "reading signals"
            tell(what, self.read_bytes, self.read_bytes + (0 if self.caught_up else self.lag_bytes), "bytes")

    def poll_hardware(self) -> list[HardwareReading | Fault]:
        """What was recorded of the hardware since it was last asked for; of a backlog, its next part."""
        return self._hardware.poll()

    def poll(self, max_bytes: int = POLL_BYTES) -> list[Fact]:
        """What was written since the last poll; of a large backlog the next `max_bytes` or so."""
        logs = self._of_logs()
        if logs is None:
            self._let_go()
        facts = self._signals.poll(max_bytes) if logs is None else self._of(logs, max_bytes)
        self._tell()
        return facts

    def _of(self, logs: RunLogs, max_bytes: int) -> list[Fact]:
        self._signals.place_ranks()
        return logs.poll(min(max_bytes, _LOGS_POLL_BYTES))

    def begin_at_tail(self, whole_bytes: int) -> None:
        """Read signal files that are together larger than this only at their ends, and the first lines.

        The same holds for what was recorded of the hardware. Call it before the first poll.
        """
        self._signals.begin_at_tail(whole_bytes)
        self._hardware.begin_at_tail(whole_bytes)

    def begin_hardware_at_tail(self, whole_bytes: int) -> None:
        """The same for what was recorded of the hardware alone; kernels' lines are always read whole."""
        self._hardware.begin_at_tail(whole_bytes)

    def begin_logs_at_tail(self, whole_bytes: int) -> None:
        """The same for the logs, whose lines take longer to read.

        Where an earlier reader of them stopped is not kept: they are begun so each time.
        """
        self._logs_whole_bytes = whole_bytes

    def memory(self) -> FilesMemory | None:
        """What another reader must know to go on from here; None where that cannot be said, as of logs."""
        if self.by_logs:
            return None
        return msgspec.structs.replace(self._signals.memory(), hardware=self._hardware.memory())

    def resume(self, memory: FilesMemory) -> bool:
        """Go on from there, before the first poll; False, and nothing done, where its files are not these."""
        resumed = self._signals.resume(memory)
        if resumed:
            self._hardware.resume(memory.hardware)
        self._signals_speak = self._signals_speak or (resumed and bool(memory.signals.positions))
        return resumed

    def give_up_tails(self) -> None:
        """Count what stands behind the last newline of each signal file as torn."""
        self._signals.give_up_tails()
        self._hardware.give_up_tails()

    def close(self) -> None:
        self._let_go()
        self._signals.close()
        self._hardware.close()
