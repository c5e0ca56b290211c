"""How is a dump read without trusting it?

A process of its own, under limits of memory and CPU time, that reads one file after the other: a path comes
in on standard input, its summary goes out on standard output. What goes wrong with one file – a refusal, more
memory than allowed, even a crash of the interpreter – is the end of that file alone.
"""

from __future__ import annotations

import gc
import os
import resource
import struct
import sys
import time
from pathlib import Path
from typing import BinaryIO

import msgspec

from train_ledger.hang.dump import Dump, reduce_dump
from train_ledger.hang.pickles import RefusedError, load

__all__ = ["HEADER", "Job", "Reply", "main"]

HEADER = struct.Struct("<I")
"""Each message is its length in four bytes and msgpack."""


class Job(msgspec.Struct, frozen=True, array_like=True):
    """One file to be read; the rank and host are those of its name."""

    path: bytes
    rank: int
    host: str | None
    mtime: float


class Reply(msgspec.Struct, frozen=True, array_like=True):
    """The summary of a file, or why there is none."""

    dump: Dump | None
    why: str | None = None


def main(memory_bytes: int, cpu_s: int) -> None:
    """Answer jobs until standard input ends."""
    gc.disable()  # dumps hold no cycles, and looking for them doubles the time
    _limit_memory(memory_bytes)
    decoder, encoder = msgspec.msgpack.Decoder(Job), msgspec.msgpack.Encoder()
    while (message := _receive(sys.stdin.buffer)) is not None:
        _limit_cpu(cpu_s)
        _send(sys.stdout.buffer, encoder.encode(_read(decoder.decode(message), memory_bytes)))


def _read(job: Job, memory_bytes: int) -> Reply:
    try:
        loaded = load(Path(os.fsdecode(job.path)))
        dump = reduce_dump(
            loaded.content,
            file=job.path.decode("utf-8", "replace"),
            rank=job.rank,
            host=job.host,
            mtime=job.mtime,
            cut=loaded.cut,
        )
    except (RefusedError, OSError) as error:
        return Reply(None, str(error).encode("utf-8", "replace").decode())
    except MemoryError:
        return Reply(None, f"refused: it asks for more than {memory_bytes >> 20} MiB of memory")
    except RecursionError:
        return Reply(None, "refused: nested too deeply")
    if dump is None:
        return Reply(None, "no Flight Recorder dump: it holds neither a list of entries nor a version")
    return Reply(dump)


def _limit_memory(memory_bytes: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _limit_cpu(cpu_s: int) -> None:
    """The limit counts for the whole process; each file is given its own share of it."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    wanted = int(time.process_time()) + cpu_s + 1
    resource.setrlimit(
        resource.RLIMIT_CPU, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
    )


def _receive(stream: BinaryIO) -> bytes | None:
    header = stream.read(HEADER.size)
    return stream.read(HEADER.unpack(header)[0]) if len(header) == HEADER.size else None


def _send(stream: BinaryIO, message: bytes) -> None:
    stream.write(HEADER.pack(len(message)) + message)
    stream.flush()


if __name__ == "__main__":
    main(memory_bytes=int(sys.argv[1]), cpu_s=int(sys.argv[2]))
