"""How are many dumps read at once, and what became of each?

A few worker processes (see `worker`), each fed by a thread of this one. The file that a worker was at when it
died is the one that killed it: it gets the reason, and a fresh worker goes on with the next.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import BinaryIO

import msgspec

from train_ledger.config import Limits
from train_ledger.hang.dumps.rank_lists import ListsReceived
from train_ledger.hang.dumps.worker import HEADER, Job, Reply
from train_ledger.headway import tell
from train_ledger.sources.files.ready import is_ready

__all__ = ["read_all"]

_BYTES_WORTH_A_WORKER = 8 << 20
_REPLY_BYTES = 64 << 20


def read_all(jobs: Sequence[Job], sizes: Sequence[int], limits: Limits) -> list[Reply]:
    """One reply a job, in the order of the jobs; never raises for what is in a file."""
    replies = [Reply(None, "not read") for _ in jobs]
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for index in sorted(range(len(jobs)), key=lambda index: -sizes[index]):
        waiting.put(index)

    lists: dict[str, str] = {}
    done: queue.SimpleQueue[int | None] = queue.SimpleQueue()

    def feed() -> None:
        with contextlib.ExitStack() as ending:
            ending.callback(done.put, None)
            worker = ending.enter_context(_Worker(limits, lists))
            while True:
                try:
                    index = waiting.get_nowait()
                except queue.Empty:
                    return
                replies[index] = worker.ask(jobs[index])
                done.put(sizes[index])

    threads = [threading.Thread(target=feed) for _ in range(_workers(len(jobs), sum(sizes)))]
    for thread in threads:
        thread.start()
    _tell(done, len(threads), sum(sizes))
    for thread in threads:
        thread.join()
    return replies


def _tell(done: queue.SimpleQueue[int | None], feeding: int, total_bytes: int) -> None:
    """How many bytes are read, until each of the threads has said that it ends."""
    read_bytes = 0
    while feeding:
        size = done.get()
        if size is None:
            feeding -= 1
        else:
            read_bytes += size
            tell("reading dumps", read_bytes, total_bytes, "bytes")


def _workers(jobs: int, total_bytes: int) -> int:
    """Starting a worker takes as long as reading some megabytes."""
    return max(1, min(len(os.sched_getaffinity(0)), jobs, 1 + total_bytes // _BYTES_WORTH_A_WORKER))


class _Worker:
    """One reading process, started anew after it died."""

    def __init__(self, limits: Limits, lists: dict[str, str]) -> None:
        self._limits = limits
        self._lists = lists
        self._received = ListsReceived(lists)
        self._process: subprocess.Popen[bytes] | None = None
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(Reply)

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def ask(self, job: Job) -> Reply:
        message = self._encoder.encode(job)
        try:
            process = self._process or self._start()
        except OSError as error:  # no memory, no process to be had, or a Python that may not be run
            return Reply(None, f"its reader cannot be started: {error.strerror}")
        answer: bytes | None = None
        with contextlib.suppress(BrokenPipeError):
            _stdin(process).write(HEADER.pack(len(message)) + message)
            _stdin(process).flush()
            answer = _receive(_stdout(process), time.monotonic() + 4 * self._limits.dump_worker_cpu_s + 10)
        if answer is None:
            return Reply(None, self._end())
        try:
            return self._restored(self._decoder.decode(answer))
        except (msgspec.DecodeError, ValueError) as error:
            self._end()
            return Reply(None, f"its reader answered nonsense: {error}")

    def _restored(self, reply: Reply) -> Reply:
        if reply.dump is None:
            return reply
        return Reply(self._received.restored(reply.dump, reply.lists))

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-P", "-m", "train_ledger.hang.dumps.worker"]
        limits = [str(self._limits.dump_worker_bytes), str(max(1, self._limits.dump_worker_cpu_s))]
        self._received = ListsReceived(self._lists)
        self._process = subprocess.Popen(
            command + limits, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        return self._process

    def _end(self) -> str:
        """Stop the process; says in words how it ended."""
        process, self._process = self._process, None
        if process is None:
            return "its reader did not start"
        with contextlib.suppress(BrokenPipeError):
            _stdin(process).close()
        try:
            status = process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            _stdout(process).close()
            return "refused: reading it took too long"
        _stdout(process).close()
        return _how(status, self._limits)


def _how(status: int, limits: Limits) -> str:
    if status == -signal.SIGXCPU:
        return f"refused: reading it took more than {limits.dump_worker_cpu_s} s of CPU time"
    if status < 0:
        return f"refused: its reader died of {signal.Signals(-status).name} at this file"
    return f"refused: its reader ended with status {status} at this file"


def _receive(stream: BinaryIO, deadline: float) -> bytes | None:
    """One message; None at the end, for one that is too long, and past the deadline."""
    header = _read(stream, HEADER.size, deadline)
    if header is None or HEADER.unpack(header)[0] > _REPLY_BYTES:
        return None
    return _read(stream, HEADER.unpack(header)[0], deadline)


def _read(stream: BinaryIO, count: int, deadline: float) -> bytes | None:
    data = bytearray()
    while len(data) < count:
        if not is_ready(stream, max(0.0, deadline - time.monotonic())):
            return None
        part = os.read(stream.fileno(), min(count - len(data), 1 << 20))
        if not part:
            return None
        data += part
    return bytes(data)


def _stdin(process: subprocess.Popen[bytes]) -> BinaryIO:
    assert process.stdin is not None  # noqa: S101 – it was opened as a pipe
    return process.stdin  # type: ignore[return-value]


def _stdout(process: subprocess.Popen[bytes]) -> BinaryIO:
    assert process.stdout is not None  # noqa: S101
    return process.stdout  # type: ignore[return-value]
