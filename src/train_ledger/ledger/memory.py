"""What did an earlier process that followed this run know when it stopped?

Where it stood in each file, and the fold of exactly what is before these places: so the counters and the
windows of the one that comes after go on as if there had been one process only. What is damaged, of other
code or of another run is not used, and that is said.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from train_ledger.ledger.fold import Fold
from train_ledger.ledger.memo import MemoError, code_version, from_plain, put_down, take_up, to_plain
from train_ledger.run_dir import read_small, users_folder, write_atomically
from train_ledger.sources import FilesMemory, RunFacts

__all__ = ["Memory", "MemoryUnusableError", "state_path"]

_EVERY_S = 15.0
_SHARE_OF_TIME = 100
"""Keeping what is known takes a hundredth of the time at most."""

_MAGIC = b"train-ledger memory 1\n"
_LARGEST_BYTES = 1 << 30
_DIGEST_BYTES = 32


class MemoryUnusableError(Exception):
    """What was kept cannot be used, or nothing can be kept; the text says which file and why."""


class _Kept(msgspec.Struct, frozen=True):
    code: str
    run: str
    fold: Any
    files: FilesMemory


def state_path(run_path: Path, hosts: Collection[str] | None, host: str) -> Path | None:
    """Where an exporter on `host` keeps what it knows of a run: in the user's own folder for such things.

    None where the user has no home.
    """
    home = users_folder("XDG_STATE_HOME", os.path.join(".local", "state"))
    if home is None:
        return None
    whole = run_path.resolve()
    whose = "\0".join((str(whole), host, *(("*",) if hosts is None else sorted(hosts))))
    name = f"{whole.name}-{hashlib.sha256(whose.encode(errors='replace')).hexdigest()[:16]}.memory"
    return home / name


class Memory:
    """The file at `path` (None: there is none) that keeps what is known of a run.

    `run` is what run.json says and `hosts` whose ranks are read: what was kept of another is not used.
    """

    def __init__(self, path: Path | None, run: Mapping[str, Any], hosts: Collection[str] | None) -> None:
        self.path = path
        self._hosts = None if hosts is None else sorted(hosts)
        self.meet(run)
        self._due_s = time.monotonic() + _EVERY_S
        self._kept_bytes = 0
        self._refused: str | None = None

    def meet(self, run: Mapping[str, Any]) -> None:
        """What run.json says, which may be written when the run is followed already."""
        self._run = self._named(run)

    def _named(self, run: Mapping[str, Any]) -> str:
        return repr((run.get("run"), run.get("started"), self._hosts))

    def recall(self, fold: Fold, files: RunFacts) -> bool:
        """Let both go on where an earlier process stopped; whether there was one. Call it before any poll.

        Raises MemoryUnusableError where something was kept that cannot be used; then both are as new.
        """
        kept = self._read()
        if kept is None:
            return False
        self._check(kept)
        new = put_down(fold)
        try:
            take_up(fold, from_plain(kept.fold))
        except MemoError as error:
            raise self._unusable(str(error)) from error
        if not files.resume(kept.files):
            take_up(fold, new)
            raise self._unusable("speaks of other files than those that are there")
        return True

    def begin(
        self, fold: Fold, files: RunFacts, *, whole_bytes: int, logs_whole_bytes: int
    ) -> tuple[bool, str | None]:
        """Go on as `recall` says; else what is larger together than these is read at its ends.

        Returns whether there was something to go on from, and why what was kept is not used.
        """
        trouble = None
        try:
            goes_on = self.recall(fold, files)
        except MemoryUnusableError as error:
            goes_on, trouble = False, str(error)
        files.begin_logs_at_tail(logs_whole_bytes)
        if not goes_on:
            files.begin_at_tail(whole_bytes)
        return goes_on, trouble

    def _read(self) -> _Kept | None:
        if self.path is None:
            return None
        try:
            content = read_small(self.path, limit_bytes=_LARGEST_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from error
        magic, digest, body = _split(content)
        if magic != _MAGIC or hashlib.sha256(body).digest() != digest:
            raise self._unusable("is damaged, or no such file at all")
        try:
            return msgspec.msgpack.decode(body, type=_Kept)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._unusable(f"is of another version ({error})") from error

    def _check(self, kept: _Kept) -> None:
        if kept.code != code_version():
            raise self._unusable("is of another version of train-ledger")
        if kept.run not in (self._run, self._named({})):  # it may have been kept before run.json was written
            raise self._unusable("is of another run, or of other hosts")

    def _unusable(self, why: str) -> MemoryUnusableError:
        return MemoryUnusableError(f"{self.path}: {why}; it is not used")

    def keep_if_due(self, fold: Fold, files: RunFacts) -> bool:
        """As `keep` where something was read, but seldom: every 15 s, and in a hundredth of the time."""
        began_s = time.monotonic()
        if began_s < self._due_s or files.read_bytes == self._kept_bytes:
            return False
        try:
            return self.keep(fold, files)
        finally:
            took_s = time.monotonic() - began_s
            self._due_s = began_s + max(_EVERY_S, took_s * _SHARE_OF_TIME)

    def keep(self, fold: Fold, files: RunFacts) -> bool:
        """Write down what is known, after a poll that caught up and whose facts were folded; whether it was.

        Raises MemoryUnusableError where it cannot be written, once for each reason.
        """
        known = files.memory()
        if self.path is None or known is None:
            return False
        kept = _Kept(code_version(), self._run, to_plain(put_down(fold)), known)
        try:
            body = msgspec.msgpack.encode(kept)
            write_atomically(self.path, _MAGIC + hashlib.sha256(body).digest() + body, mode=0o600)
        except UnicodeEncodeError as error:  # of a file whose name is no text
            self._refuse(f"{error.object!r} is no text", error)
            return False
        except OSError as error:
            self._refuse(error.strerror or str(error), error)
            return False
        self._kept_bytes, self._refused = files.read_bytes, None
        return True

    def _refuse(self, why: str, error: Exception) -> None:
        if why != self._refused:
            self._refused = why
            raise MemoryUnusableError(f"{self.path}: cannot be written: {why}") from error


def _split(content: bytes) -> tuple[bytes, bytes, bytes]:
    body = len(_MAGIC) + _DIGEST_BYTES
    return content[: len(_MAGIC)], content[len(_MAGIC) : body], content[body:]
