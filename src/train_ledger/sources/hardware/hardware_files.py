"""What did the recorders of all hosts write of their hardware that they had not written at the last look?

Follows RUN/hardware/HOST.jsonl and RUN/hardware/HOST.kern.log through rotation. Kernel logs are read whole,
so that no XID is lost or counted twice; of very many readings only the last.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Mapping

from train_ledger.facts import Fault, HardwareReading
from train_ledger.run_dir import RunDir
from train_ledger.sources.files.folder import FolderFollower
from train_ledger.sources.files.memory import Counted, FollowerMemory, HardwareMemory
from train_ledger.sources.files.positions import Start
from train_ledger.sources.files.stream import Line
from train_ledger.sources.hardware.reading_line import BadReadingError, reading_of
from train_ledger.sources.logs.kernel_log import MARKS, fault_of, kernel_fault

__all__ = ["HardwareFiles"]

_FILE = re.compile(r"([^./][^/]{0,253}?)\.(jsonl|kern\.log)(?:\.(\d{1,6}))?\Z")
_POLL_BYTES = 4 << 20


class HardwareFiles:
    """Readings and kernel faults of a run's hosts, poll by poll.

    `hosts` limits them to these; a short name and a full one of which it is the first part are one host. A
    line that names no host is of the host that its file is named after. Lines of one file keep their order,
    and what one poll gives is merged by its times.
    """

    def __init__(self, run_dir: RunDir, hosts: Collection[str] | None = None) -> None:
        self._run_dir = run_dir
        self._hosts = None if hosts is None else frozenset(hosts)
        self._series: dict[str, int] = {}
        self._readings = FolderFollower(run_dir.hardware, lambda file: self._place(file, "jsonl"))
        self._kernel = FolderFollower(run_dir.hardware, lambda file: self._place(file, "kern.log"))
        self._bad: Counter[str] = Counter()
        self._where: dict[str, str] = {}
        self._written_t: dict[str, float] = {}

    def _place(self, file: str, kind: str) -> tuple[int, int] | None:
        match = _FILE.match(file)
        if match is None or match[2] != kind or not self._is_wanted(match[1]):
            return None
        series = self._series.setdefault(match[1], len(self._series))
        return series, -int(match[3] or 0)

    def _is_wanted(self, host: str) -> bool:
        return self._hosts is None or any(_are_one(host, it) for it in self._hosts)

    @property
    def bad_lines(self) -> Counter[str]:
        """Lines, and files, that could not be read, by reason."""
        return self._bad + self._readings.skipped + self._kernel.skipped

    @property
    def where(self) -> Mapping[str, str]:
        """Of each reason where it was met last."""
        skipped = {**self._readings.skipped.where, **self._kernel.skipped.where, **self._where}
        return {reason: self._shown(at) for reason, at in skipped.items()}

    @property
    def last_problem(self) -> str | None:
        """The newest trouble with a file in words for people."""
        return self._readings.last_problem or self._kernel.last_problem

    @property
    def files(self) -> int:
        """How many files are followed."""
        return self._readings.files + self._kernel.files

    @property
    def lag_bytes(self) -> int:
        """Bytes that were seen and not read yet."""
        return self._readings.lag_bytes + self._kernel.lag_bytes

    @property
    def read_bytes(self) -> int:
        """Bytes of all lines that were read."""
        return self._readings.read_bytes + self._kernel.read_bytes

    @property
    def left_out_bytes(self) -> int:
        """Bytes of readings that are never read, since reading began behind them."""
        return self._readings.left_out_bytes

    @property
    def caught_up(self) -> bool:
        """Whether the last poll read all that there was."""
        return self._readings.caught_up and self._kernel.caught_up

    def poll(self, max_bytes: int = _POLL_BYTES) -> list[HardwareReading | Fault]:
        """What was written since the last poll; of a large backlog about `max_bytes` of each kind."""
        self._written_t.clear()
        found: list[HardwareReading | Fault] = []
        found += filter(None, map(self._fault, self._kernel.poll(max_bytes)))
        found += filter(None, map(self._reading, self._readings.poll(max_bytes)))
        found.sort(key=lambda it: -1.0 if it.t is None else it.t)
        return found

    def _reading(self, line: Line) -> HardwareReading | None:
        if not line.data or line.data.isspace():
            return None
        source = self._shown(line.place)
        try:
            reading = reading_of(line.data, host=_host(line.file), source=source)
        except BadReadingError as problem:
            self._bad[str(problem)] += 1
            self._where[str(problem)] = source
            return None
        return reading if self._is_wanted(reading.host) else None

    def _fault(self, line: Line) -> Fault | None:
        if not any(mark in line.data for mark in MARKS):
            return None
        written_t = self._when_written(line.file)
        source = self._shown(line.place)
        found = kernel_fault(line.data, host=_host(line.file), written_t=written_t, source=source)
        if found is None:
            return None
        return fault_of(found) if found.host is None or self._is_wanted(found.host) else None

    def _when_written(self, file: str) -> float | None:
        if file not in self._written_t:
            try:
                self._written_t[file] = os.path.getmtime(file)
            except OSError:
                return None  # renamed meanwhile
        return self._written_t[file]

    def _shown(self, file: str) -> str:
        return file.removeprefix(f"{self._run_dir.path}{os.sep}")

    def begin_at_tail(self, whole_bytes: int) -> None:
        """Read files of readings that are together larger than this only at their ends.

        Call it before the first poll; what comes later is read whole.
        """
        self._readings.begin(Start((), whole_bytes))

    def memory(self) -> HardwareMemory:
        """What another reader must know to go on from here; of use once `caught_up`."""
        return HardwareMemory(
            FollowerMemory.of(self._readings),
            FollowerMemory.of(self._kernel),
            Counted.of(self._bad, self._where),
        )

    def resume(self, memory: HardwareMemory) -> None:
        """Go on from there, before the first poll."""
        memory.readings.recall(self._readings)
        memory.kernel.recall(self._kernel)
        memory.bad_lines.recall(self._bad, self._where)

    def give_up_tails(self) -> None:
        """Count what stands behind the last newline of each file as torn."""
        self._readings.give_up_tails()
        self._kernel.give_up_tails()

    def close(self) -> None:
        self._readings.close()
        self._kernel.close()


def _are_one(one: str, other: str) -> bool:
    """Whether both names are of one host; a name without a domain may be of any."""
    one, other = one.lower(), other.lower()
    is_short = "." not in one or "." not in other
    return one == other or (is_short and one.partition(".")[0] == other.partition(".")[0])


def _host(file: str) -> str | None:
    match = _FILE.match(os.path.basename(file))
    return match[1] if match else None
