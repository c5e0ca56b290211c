"""What does somebody outside want of this rank?

RUN/requests/ID.json is looked for once a second, answered by ID.rank_5.json and never read again.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import time
from collections.abc import Mapping
from typing import Any

from train_ledger.run_dir import RunDir, write_atomically
from train_ledger.signals.asking.cannot import CannotError
from train_ledger.signals.asking.profiling import Profiling, write_memory_snapshot
from train_ledger.signals.asking.recorder import NoRecorderError, write_dump, write_stacks
from train_ledger.signals.harmless.regular import open_regular

__all__ = ["Requests"]

_REQUEST = re.compile(r"(?P<id>[A-Za-z0-9_-][A-Za-z0-9_.-]*)\.json\Z")
_FOLDER = re.compile(r"[A-Za-z0-9_-]{1,80}")
_NOTHING: Mapping[str, Any] = {}
_LARGEST_BYTES = 1 << 16
_CLOCK_SLACK_S = 5.0
_LOOKS = 3  # clocks of file systems are coarse, and a request may still be being written at the first look


def _folder(name: object) -> str:
    if name is None:
        return ""
    if not isinstance(name, str) or not _FOLDER.fullmatch(name):
        raise CannotError("folder must be one plain name: letters, digits, _ and -")
    return name


class Requests:
    """The requests to one rank of one attempt; those before `started` (unix s) were meant for others."""

    def __init__(
        self,
        run_dir: RunDir,
        rank: int,
        attempt: int,
        started: float,
        profiling: Profiling | None = None,
    ) -> None:
        self._run_dir = run_dir
        self._rank = rank
        self._attempt = attempt
        self._started = started
        self._profiling = profiling or Profiling()
        self._seen: set[str] = set()
        self._looks: dict[str, int] = {}
        self._changed_ns = 0
        self._looks_left = 0
        self.unreadable = 0

    def answer_new(self) -> None:
        """Do what is asked and not yet answered."""
        names = self._names()
        for name in sorted(name for name in names if ".rank_" not in name):
            match = _REQUEST.match(name)
            if match is None or match["id"] in self._seen:
                continue
            if self._run_dir.reply(match["id"], self._rank).name not in names:
                self._consider(match["id"])
            else:
                self._seen.add(match["id"])

    def _names(self) -> frozenset[str]:
        """What lies in the folder, if it has changed lately: a thousand answers are not listed in vain."""
        try:
            # Opened anew each time: only that makes NFS ask its server, and then the time of change is true.
            folder = os.open(self._run_dir.requests, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return frozenset()  # nobody has asked yet, or the folder cannot be read now
        try:
            changed_ns = os.fstat(folder).st_mtime_ns
            if changed_ns != self._changed_ns:
                self._changed_ns, self._looks_left = changed_ns, _LOOKS
            if not self._looks_left:
                return frozenset()
            self._looks_left -= 1
            return frozenset(os.listdir(folder))
        except OSError:
            return frozenset()
        finally:
            os.close(folder)

    def _consider(self, request_id: str) -> None:
        request = self._read(request_id)
        if request is None:
            self._look_again(request_id)
            return
        self._seen.add(request_id)
        ranks, t = request.get("ranks"), request.get("t")
        if isinstance(ranks, list) and self._rank not in ranks:
            return
        if isinstance(t, int | float) and t < self._started - _CLOCK_SLACK_S:
            return
        self.do(request_id, request.get("do"), request)

    def _read(self, request_id: str) -> Mapping[str, Any] | None:
        try:
            descriptor = open_regular(self._run_dir.request(request_id), os.O_RDONLY)
            with os.fdopen(descriptor, "rb") as file:
                request = json.loads(file.read(_LARGEST_BYTES))
        except (OSError, ValueError, RecursionError):
            request = None
        return request if isinstance(request, dict) else None

    def _look_again(self, request_id: str) -> None:
        """A few looks more, then it is counted as unreadable."""
        self._looks[request_id] = self._looks.get(request_id, 0) + 1
        if self._looks[request_id] >= _LOOKS:
            self._seen.add(request_id)
            self.unreadable += 1

    def do(self, request_id: str, what: object, options: Mapping[str, Any] = _NOTHING) -> None:
        """Do one thing and write the answer, that of a profile once its steps are over.

        Of `options`, a profile takes "steps", "first_step", "folder", one in that of the traces, and
        "by": "nsys"; and a memory_snapshot "record_history".
        """
        doing = {
            "dump": self._dump,
            "stacks": self._stacks,
            "profile": self._profile,
            "memory_snapshot": self._memory_snapshot,
        }
        do = doing.get(what) if isinstance(what, str) else None
        try:
            if do is None:
                raise CannotError(f"a rank cannot do {what!r}; it can {', '.join(doing)}")
            do(request_id, options)
        except (NoRecorderError, CannotError, OSError) as error:
            self._reply(request_id, {"ok": False, "error": str(error)})

    def _stacks(self, request_id: str, options: Mapping[str, Any]) -> None:
        path = write_stacks(self._run_dir.stacks(self._attempt) / f"rank_{self._rank}.txt")
        self._reply(request_id, {"ok": True, "path": str(path)})

    def _profile(self, request_id: str, options: Mapping[str, Any]) -> None:
        self._profiling.ask(
            options.get("steps"),
            self._run_dir.traces(self._attempt)
            / _folder(options.get("folder"))
            / f"rank_{self._rank}.json.gz",
            functools.partial(self._reply, request_id),
            first_step=options.get("first_step"),
            by_nsys=options.get("by") == "nsys",
        )

    def _memory_snapshot(self, request_id: str, options: Mapping[str, Any]) -> None:
        path = self._run_dir.memory_snapshots(self._attempt) / f"rank_{self._rank}.pickle"
        write_memory_snapshot(path, options.get("record_history") is True)
        self._reply(request_id, {"ok": True, "path": str(path)})

    def _dump(self, request_id: str, options: Mapping[str, Any]) -> None:
        path = self._run_dir.comm_trace_of(self._rank, self._attempt)
        for with_stacks in (False, True):
            write_dump(path, with_stacks)
            self._reply(request_id, {"ok": True, "path": str(path), "stacks": with_stacks})

    def _reply(self, request_id: str, answer: Mapping[str, Any]) -> None:
        line = {**answer, "t": time.time(), "rank": self._rank, "attempt": self._attempt}
        # A disk that takes no answer is not tried again: every try would cost the training another dump.
        with contextlib.suppress(OSError):
            write_atomically(self._run_dir.reply(request_id, self._rank), json.dumps(line).encode() + b"\n")
