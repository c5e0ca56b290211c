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

from train_ledger.hang.dumps.dump import Dump, reduce_dump
from train_ledger.hang.dumps.listing import Listing, Wanted, list_entries
from train_ledger.hang.dumps.pickles import Loaded, RefusedError, load
from train_ledger.hang.dumps.rank_lists import ListsSent

__all__ = ["HEADER", "Job", "Reply", "main"]

HEADER = struct.Struct("<I")
"""Each message is its length in four bytes and msgpack."""
_SPARE_BYTES = 256 << 20
_TIMES_ITS_SIZE = 64


class Job(msgspec.Struct, frozen=True, array_like=True):
    """One file to be read; the rank and host are those of its name. `wanted`: its entries, no summary."""

    path: bytes
    rank: int
    host: str | None
    mtime: float
    wanted: Wanted | None = None


class Reply(msgspec.Struct, frozen=True, array_like=True):
    """The summary of a file or its entries, or why there are none; `lists` see `rank_lists`."""

    dump: Dump | None
    why: str | None = None
    listing: Listing | None = None
    lists: tuple[str, ...] = ()


def main(memory_bytes: int, cpu_s: int) -> None:
    """Answer jobs until standard input ends."""
    gc.disable()  # dumps hold no cycles, and looking for them doubles the time
    decoder, encoder = msgspec.msgpack.Decoder(Job), msgspec.msgpack.Encoder()
    sent = ListsSent()
    while (message := _receive(sys.stdin.buffer)) is not None:
        _limit_cpu(cpu_s)
        job = decoder.decode(message)
        reply = _read(job, _limit_memory(memory_bytes, _size_of(job)))
        if reply.dump is not None:
            dump, lists = sent.shortened(reply.dump)
            reply = msgspec.structs.replace(reply, dump=dump, lists=lists)
        _send(sys.stdout.buffer, encoder.encode(reply))


def _read(job: Job, memory_bytes: int) -> Reply:
    try:
        loaded = load(Path(os.fsdecode(job.path)))
        reply = _reduced(job, loaded)
    except (RefusedError, OSError) as error:
        why = getattr(error, "strerror", None) or str(error)  # the system's without number and file
        return Reply(None, why.encode("utf-8", "replace").decode())
    except MemoryError:
        return Reply(None, f"refused: it asks for more than {memory_bytes >> 20} MiB of memory")
    except RecursionError:
        return Reply(None, "refused: nested too deeply")
    if reply.dump is None and reply.listing is None:
        return Reply(None, "no Flight Recorder dump: it holds neither a list of entries nor a version")
    return reply


def _reduced(job: Job, loaded: Loaded) -> Reply:
    file = job.path.decode("utf-8", "replace")
    rank, host, mtime, cut = job.rank, job.host, job.mtime, loaded.cut
    if job.wanted is None:
        return Reply(reduce_dump(loaded.content, file=file, rank=rank, host=host, mtime=mtime, cut=cut))
    listing = list_entries(loaded.content, job.wanted, file=file, rank=rank, host=host, mtime=mtime, cut=cut)
    return Reply(None, listing=listing)


def _size_of(job: Job) -> int:
    try:
        return os.stat(job.path).st_size
    except (OSError, ValueError):  # why, says who opens it
        return 0


def _limit_memory(most_bytes: int, size_bytes: int) -> int:
    """A file's share on top of what is held already, all together no more than `most_bytes`; the share.

    Five bytes of a pickle can ask for gigabytes; an honest dump takes ten times its size.
    """
    if (held := _held_bytes()) > 2 * _SPARE_BYTES:
        gc.collect()  # dumps that refer to themselves
        held = _held_bytes()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most_bytes = most_bytes if hard == resource.RLIM_INFINITY else min(most_bytes, hard)
    share = min(most_bytes, _SPARE_BYTES + _TIMES_ITS_SIZE * size_bytes)
    resource.setrlimit(resource.RLIMIT_AS, (min(held + share, most_bytes), hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    return share


def _held_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


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
