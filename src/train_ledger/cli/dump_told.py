"""How is it told whose dump is there, whose is missing, and how long that took?"""

from __future__ import annotations

import base64
import io
import os
import shlex
import socket
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from train_ledger import render
from train_ledger.answer import ExitCode, NextCommand
from train_ledger.cli.output import show, show_report
from train_ledger.ops.hosts.gathered import Gathered
from train_ledger.render.report import Report, Tone, commands, pairs, points

__all__ = ["tell"]


def tell(gathered: Gathered, run: Path, *, json: bool, send: bool) -> int:
    """Show it for a person or as JSON, with the dumps themselves if they are to be sent; the exit status."""
    folder = shlex.quote(str(gathered.folder))
    next_ = [NextCommand("who hung the job", f"train-ledger hang {folder}")] if gathered.files else []
    if json:
        plain = _plain(gathered, next_)
        if send:
            plain["archive"] = _archive(gathered.files)
        show(render.as_json(plain, indent=None if send else 1))
    else:
        show_report(_report(gathered, next_))
    return gathered.status


def _plain(gathered: Gathered, next_: Iterable[NextCommand]) -> dict[str, Any]:
    return {
        "dumped": sorted(gathered.files),
        "missing": [{"rank": rank, "why": why} for rank, why in sorted(gathered.missing.items())],
        "by": {str(rank): way for rank, way in sorted(gathered.by.items())},
        "folder": str(gathered.folder),
        "attempt": gathered.attempt,
        "host": socket.gethostname(),
        "took_s": round(gathered.took_s, 3),
        "hosts_s": {host: round(took_s, 3) for host, took_s in gathered.hosts_s.items()},
        "unreadable": [{"file": it.file, "why": it.why} for it in gathered.unread],
        "next": [{"why": it.why, "command": it.command} for it in next_],
    }


def _archive(files: Mapping[int, Path]) -> str:
    """The dumps as a tar.gz in base64: text gets through every launcher as it is."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=3) as tar:
        for rank, path in sorted(files.items()):
            with path.open("rb") as file:
                member = tarfile.TarInfo(f"rank_{rank}")
                status = os.fstat(file.fileno())
                member.size, member.mtime = status.st_size, int(status.st_mtime)
                tar.addfile(member, file)
    return base64.b64encode(packed.getvalue()).decode()


def _report(gathered: Gathered, next_: list[NextCommand]) -> Report:
    verdict, tone = _verdict(gathered)
    by_why: dict[str, list[int]] = {}
    for rank, why in gathered.missing.items():
        by_why.setdefault(why, []).append(rank)
    ways: dict[str, list[int]] = {}
    for rank, way in gathered.by.items():
        ways.setdefault(way, []).append(rank)
    sections = [
        *pairs(
            "",
            (
                ("folder", str(gathered.folder) if gathered.files else None),
                ("by", "; ".join(f"{way}: {render.ranks_in_words(some)}" for way, some in ways.items())),
                ("slowest", _slowest(gathered)),
            ),
        ),
        *points("missing", (f"{render.ranks_in_words(some)}: {why}" for why, some in by_why.items())),
        *points("not read", (f"{it.file}: {it.why}" for it in gathered.unread)),
        *commands(next_),
    ]
    return Report(render.harmless(verdict), tone, tuple(sections))


def _verdict(gathered: Gathered) -> tuple[str, Tone]:
    there, missing = len(gathered.files), len(gathered.missing)
    within = f"in {gathered.took_s:.1f} s"
    if not there:
        whose = f": {render.ranks_in_words(gathered.missing)} did not answer" if missing else ""
        return f"no dump {within}{whose}", "unsure"
    if gathered.status == ExitCode.NOTHING_WRONG:
        return f"the dumps of all {there} ranks are there, {within}", "fine"
    whose = f"; missing: {render.ranks_in_words(gathered.missing)}" if missing else ""
    hosts = f"; no answer from {', '.join(gathered.silent[:8])}" if gathered.silent else ""
    return f"{there} dumps are there, {within}{whose}{hosts}", "trouble"


def _slowest(gathered: Gathered) -> str | None:
    if not gathered.hosts_s:
        return None
    host = max(gathered.hosts_s, key=lambda it: gathered.hosts_s[it])
    return f"{host}, {gathered.hosts_s[host]:.1f} s ({len(gathered.hosts_s)} hosts)"
