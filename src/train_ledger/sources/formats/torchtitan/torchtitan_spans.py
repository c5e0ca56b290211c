"""What does torchtitan's structured log (structured_logs/*.jsonl) tell of a rank's steps and phases?

A span's duration is the `value` of its `_end`, in milliseconds by a monotonic timer; times of the wall clock
are never subtracted. Spans inside a step become values of the step – `step_time_s`, `data_wait_s`, `opt_s`,
`gc_s`, `ckpt_s`, and `span_<name>_s` for all others, which `train_span_seconds{run, rank, name}` is made of –
and scalars pass under their own names. RL jobs write one such file for each mesh, each of whose ranks count
from 0: only the mesh that trains tells steps of a rank; what others say goes with `mesh` and `mesh_rank` in
the details and with no rank.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import ClassVar

from train_ledger.facts import Fact
from train_ledger.sources.formats.torchtitan.torchtitan_process import TorchtitanProcess
from train_ledger.sources.formats.torchtitan.torchtitan_record import Record, read_record
from train_ledger.sources.lines.log_line import LogLine

__all__ = ["TorchtitanSpans"]

_NAME = re.compile(r"(?:^|/)([\w.-]{1,80}?)\.global_rank_(\d{1,7})\.[\w-]{1,40}\.jsonl\Z")
_PLACE = re.compile(r"\.global_rank_(\d{1,7})\.[\w-]{1,40}\.jsonl(?:@\d{1,20})?:\d{1,20}\Z")
_MOST_PROCESSES = 1 << 16


class TorchtitanSpans:
    """One file of structured_logs: one process, or several where files were joined."""

    name: ClassVar[str] = "torchtitan structured log"
    marks: ClassVar[tuple[bytes, ...]] = ()
    knows: ClassVar[frozenset[str]] = frozenset({"step_time_s", "data_wait_s", "opt_s", "gc_s", "ckpt_s"})
    speaks_for_its_rank: ClassVar[bool] = False

    def __init__(self) -> None:
        self.damaged: Counter[str] = Counter()
        self._processes: dict[tuple[str, int | None, object], TorchtitanProcess] = {}

    @classmethod
    def fits(cls, head: bytes, file_name: str) -> bool:
        keyed = b'"log_type_name"' in head and b'"log_type"' in head
        return head.lstrip()[:1] in (b"{", b"") and (keyed or _NAME.search(file_name) is not None)

    def read(self, line: LogLine, source: str) -> Iterable[Fact]:
        text = line.text.strip()
        if not text:
            return ()
        record = read_record(text)
        if record is None:
            self.damaged["not_json"] += 1
            return ()
        return self._taken(record, source)

    def _taken(self, record: Record, place: str) -> Iterator[Fact]:
        source, rank = record.whose
        if rank is None and (named := _PLACE.search(place)):
            rank = int(named[1])
        key = (source, rank, record.pid if isinstance(record.pid, int | str) else None)
        process = self._processes.get(key)
        if process is not None and not process.follows(record):
            yield from process.end()
            process = None
        if process is None:
            process = self._new(key, record)
        yield from process.read(record, place)

    def _new(self, key: tuple[str, int | None, object], record: Record) -> TorchtitanProcess:
        if len(self._processes) >= _MOST_PROCESSES:
            self._processes.clear()
        host = record.host_name if isinstance(record.host_name, str) else None
        process = self._processes[key] = TorchtitanProcess(key[0], key[1], host)
        process.follows(record)
        return process

    def end(self) -> Iterable[Fact]:
        """The last steps, where no span closes them, and what each rank was in when its file ended."""
        for process in self._processes.values():
            yield from process.end()
