"""How do the dumps of all hosts come into one folder?

Each host asks its own ranks and sends what they left on one line of text, as `train-ledger dump --json
--send` does. A host that fails, hangs or sends junk is listed, and the others' dumps are kept. Of two that
send one rank that which was named first is believed, whichever answers first.
"""

from __future__ import annotations

import base64
import os
import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from train_ledger.answer import Unreadable
from train_ledger.config import Limits
from train_ledger.hang.dumps.archive import unpack
from train_ledger.ops.hosts.dump_check import unusable
from train_ledger.ops.hosts.gathered import Gathered
from train_ledger.ops.hosts.launch import Launcher, Outcome, answer_line, launch
from train_ledger.run_dir import RunDir, write_atomically

__all__ = ["gather_from"]


class _Missing(msgspec.Struct):
    rank: int
    why: str


class _Unread(msgspec.Struct):
    file: str
    why: str


class _Sent(msgspec.Struct):
    dumped: list[int]
    missing: list[_Missing]
    archive: str
    attempt: int = 0
    by: dict[str, str] = {}
    unreadable: list[_Unread] = []


def gather_from(
    launcher: Launcher,
    hosts: Sequence[str],
    command: Sequence[str],
    run_dir: RunDir,
    *,
    into: Path | None,
    expected: Collection[int],
    limits: Limits,
    timeout_s: float,
    at_once: int,
) -> Gathered:
    """Run `command` on all hosts, unpack what they send, and read it as `hang` does.

    The `expected` ranks of whom no host tells are missing, too.
    """
    started = time.monotonic()
    desk = _Desk(run_dir, hosts, into, limits)
    outcomes = launch(
        launcher, hosts, command, timeout_s=timeout_s, at_once=at_once, most_bytes=limits.dump_bytes
    )
    for outcome in outcomes:
        desk.take(outcome)
    return desk.gathered(expected, time.monotonic() - started)


class _Desk:
    """What has come in so far."""

    def __init__(self, run_dir: RunDir, hosts: Sequence[str], into: Path | None, limits: Limits) -> None:
        self._run_dir = run_dir
        self._place = {host: place for place, host in enumerate(hosts)}
        self._into = into
        self._limits = limits
        self._files: dict[int, Path] = {}
        self._sent_by: dict[int, str] = {}
        self._missing: dict[str, dict[int, str]] = {host: {} for host in hosts}
        self._by: dict[int, str] = {}
        self._unread: dict[str, list[Unreadable]] = {host: [] for host in hosts}
        self._hosts_s: dict[str, float] = {}
        self._silent: list[str] = []
        self._attempt = 0

    def take(self, outcome: Outcome) -> None:
        host = outcome.host
        self._hosts_s[host] = outcome.took_s
        line = answer_line(outcome.output)
        if line is None:
            said = outcome.output[:120].decode("utf-8", "replace").strip()
            self._note_silent(host, outcome.why or f"it answered, but no dumps: {said!r}")
            return
        try:
            sent = msgspec.json.decode(line, type=_Sent)
            packed = base64.b64decode(sent.archive, validate=True)
        except (msgspec.DecodeError, RecursionError, ValueError) as error:  # ValueError: no base64
            self._note_silent(host, outcome.why or f"it sent no dumps as it should: {error}")
            return
        self._note(host, sent)
        self._keep(host, sent, packed)

    def _note_silent(self, host: str, why: str) -> None:
        self._silent.append(host)
        self._unread[host].append(Unreadable(host, why))

    def _note(self, host: str, sent: _Sent) -> None:
        self._attempt = max(self._attempt, sent.attempt)
        self._missing[host] |= {it.rank: f"on {host}: {it.why}" for it in sent.missing}
        self._unread[host] += [Unreadable(f"{host}: {it.file}", it.why) for it in sent.unreadable]

    def _keep(self, host: str, sent: _Sent, packed: bytes) -> None:
        """The dumps under their ranks' own names, whatever else may be in the archive."""
        folder = self._into or self._run_dir.comm_traces(sent.attempt)
        with tempfile.TemporaryDirectory(prefix="train-ledger-dump-") as passing:
            archive, unpacked = Path(passing, "archive.tar.gz"), Path(passing, "unpacked")
            archive.write_bytes(packed)
            unpacked.mkdir()
            refused = unpack(archive, unpacked, self._limits)
            self._unread[host] += [Unreadable(f"{host}: {Path(it.file).name}", it.why) for it in refused]
            for rank in dict.fromkeys(sent.dumped):
                came = unpacked / f"rank_{rank}"
                if not came.is_file():
                    self._missing[host][rank] = f"on {host}: it was there, but did not come through"
                elif self._is_believed(host, rank):
                    self._put(came, folder, rank)
                    self._by[rank] = sent.by.get(str(rank), "not told")

    def _is_believed(self, host: str, rank: int) -> bool:
        """Whether this host's dump of the rank counts; of two hosts that send it the other one is listed."""
        before = self._sent_by.get(rank, host)
        first, second = sorted((before, host), key=self._place.__getitem__)
        if first != second:
            self._unread[second].append(Unreadable(f"{second}: rank {rank}", f"came from {first}, too"))
        self._sent_by[rank] = first
        return first == host

    def _put(self, came: Path, folder: Path, rank: int) -> None:
        write_atomically(folder / f"rank_{rank}", came.read_bytes())
        os.utime(folder / f"rank_{rank}", (came.stat().st_mtime,) * 2)
        self._files[rank] = folder / f"rank_{rank}"

    def gathered(self, expected: Collection[int], took_s: float) -> Gathered:
        damaged = unusable(self._files, self._limits)
        files = {rank: path for rank, path in sorted(self._files.items()) if rank not in damaged}
        unsent = dict.fromkeys(expected, "no host sent it")
        of_hosts = {rank: why for some in reversed(self._missing.values()) for rank, why in some.items()}
        told = unsent | of_hosts | damaged
        missing = {rank: why for rank, why in told.items() if rank not in files}
        return Gathered(
            files=files,
            missing=dict(sorted(missing.items())),
            by={rank: way for rank, way in self._by.items() if rank in files},
            folder=self._into or self._run_dir.comm_traces(self._attempt),
            attempt=self._attempt,
            took_s=took_s,
            unread=tuple(it for some in self._unread.values() for it in some),
            hosts_s=dict(sorted(self._hosts_s.items())),
            silent=tuple(sorted(self._silent)),
        )
