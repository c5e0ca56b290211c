"""Was the planted hang paged, was the right rank named, and how long until every rank's dump was there?"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train_ledger import hang
from train_ledger.chaos.dump_place import DefaultPlace
from train_ledger.chaos.plan import Plan
from train_ledger.hang import stacks
from train_ledger.ledger import journal
from train_ledger.render import ranks_in_words
from train_ledger.run_dir import RunDir

__all__ = ["DemoOutcome", "Dumps", "as_text", "dumps_of", "judge"]

_RANK_FILE = re.compile(r"rank_(\d+)")


@dataclass(frozen=True, slots=True)
class Dumps:
    """Which ranks' dumps lay in the run directory while the job lived, and what they alone say.

    `missing` maps each other rank to the reason. `gathered_s` are the seconds from the page until the last
    dump was whole; 0 where ranks that died of it had left theirs before. `culprits` and `kind` are what
    `train-ledger hang` says of them, within `analysis_s`.
    """

    there: tuple[int, ...]
    missing: Mapping[int, str]
    gathered_s: float | None
    culprits: tuple[int, ...]
    kind: str | None
    analysis_s: float


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """What was planted, what was named, and how long it took (seconds from the start of the job)."""

    run: str
    mode: str
    culprit: int
    cause: str | None
    named: tuple[int, ...]
    right: bool
    job_start_to_verdict_s: float | None
    pages_received: int
    postmortem: str | None
    group: str = "world"
    layout: str | None = None
    backend: str = "gloo"
    does: str = "hangs"
    dumps: Dumps | None = None
    default_place: DefaultPlace | None = None


def dumps_of(run_dir: RunDir, ranks: int) -> Dumps:
    """Look at the dumps, and run the analysis on them and on the stacks."""
    began = time.monotonic()
    folder = run_dir.stacks()
    taken, _ = stacks.read(sorted(folder.glob("rank_*")) if folder.is_dir() else [])
    traces = run_dir.comm_traces()
    answer = hang.analyse([traces] if traces.is_dir() else [], stacks=taken, world_size=ranks)
    took_s = time.monotonic() - began
    refused = {rank: it.why for it in answer.unreadable if (rank := _rank_of(it.file)) is not None}
    missing = {rank: _why_missing(run_dir, rank) for rank in range(ranks) if rank in answer.missing_dumps}
    missing |= refused
    if not traces.is_dir():
        missing = {rank: _why_missing(run_dir, rank) for rank in range(ranks)}
    there = tuple(rank for rank in range(ranks) if rank not in missing)
    gathered_s = _gathered_s(run_dir, there)
    return Dumps(there, missing, gathered_s, answer.culprits, answer.kind, round(took_s, 2))


def _rank_of(file: str) -> int | None:
    match = _RANK_FILE.search(Path(file).name)
    return int(match[1]) if match else None


def _why_missing(run_dir: RunDir, rank: int) -> str:
    """What the rank answered when it was asked for one."""
    answers = sorted(run_dir.requests.glob(f"*.rank_{rank}.json")) if run_dir.requests.is_dir() else []
    for path in answers:
        try:
            error = json.loads(path.read_bytes()).get("error")
        except (OSError, ValueError, AttributeError):
            continue
        if error:
            return str(error)
    asked = any(run_dir.requests.glob("*-dump.json")) if run_dir.requests.is_dir() else False
    return "it did not answer when it was asked" if asked else "nobody asked it while it lived"


def _gathered_s(run_dir: RunDir, there: tuple[int, ...]) -> float | None:
    started = next((e["t"] for e in _entries(run_dir) if e.get("kind") == "response_started"), None)
    written = [path.stat().st_mtime for rank in there if (path := run_dir.comm_trace_of(rank)).is_file()]
    return round(max(0.0, max(written) - started), 1) if started is not None and written else None


def _entries(run_dir: RunDir) -> tuple[Mapping[str, Any], ...]:
    return tuple(journal.read(run_dir.journal).entries) if run_dir.journal.exists() else ()


def judge(run_dir: RunDir, plan: Plan, started_t: float, pages: int, dumps: Dumps | None) -> DemoOutcome:
    """The outcome, by the verdict that the keeper wrote down."""
    verdict: dict[str, Any] = next((dict(e) for e in _entries(run_dir) if e.get("kind") == "verdict"), {})
    diagnosis = verdict.get("diagnosis", {})
    named, cause = tuple(diagnosis.get("ranks", ())), diagnosis.get("cause")
    drafts = sorted(run_dir.reports.glob("*.md")) if run_dir.reports.is_dir() else []
    return DemoOutcome(
        run=str(run_dir.path),
        mode=plan.mode,
        culprit=plan.culprit,
        cause=cause,
        named=named,
        right=named == (plan.culprit,) and cause in plan.fault.causes,
        job_start_to_verdict_s=round(verdict["t"] - started_t, 1) if verdict else None,
        pages_received=pages,
        postmortem=str(drafts[0]) if drafts else None,
        group=plan.group,
        layout=str(plan.layout) if plan.layout else None,
        backend=plan.backend,
        does=plan.does,
        dumps=dumps,
    )


def as_text(outcome: DemoOutcome) -> str:
    """The outcome for people: what was planted, then the drill's three questions."""
    return "\n".join(("", *(f"{name:<8} {said}" for name, said in _rows(outcome))))


def _rows(outcome: DemoOutcome) -> Iterator[tuple[str, str]]:
    where = "" if outcome.group == "world" else f" in its {outcome.group} group"
    planted = f"rank {outcome.culprit}, mode {outcome.mode}{where}; over {outcome.backend} it {outcome.does}"
    named = ", ".join(f"rank {rank}" for rank in outcome.named) or "nobody"
    took = "never" if outcome.job_start_to_verdict_s is None else f"{outcome.job_start_to_verdict_s} s"
    yield "planted", planted
    yield "named", f"{named}, {outcome.cause or 'no verdict'} – {'right' if outcome.right else 'WRONG'}"
    yield "took", f"{took} from the start of the job to the verdict"
    yield "pages", f"{outcome.pages_received} received by the webhook"
    if outcome.dumps:
        yield from _dump_rows(outcome.dumps)
    if outcome.default_place:
        place = outcome.default_place
        yield "default", f"without a dump path torch writes to {place.prefix}RANK"
        yield from (("", said) for said in place.said)
    yield "draft", outcome.postmortem or "none"
    yield "run", outcome.run
    if not outcome.cause:
        yield "why", f"see {outcome.run}/torchrun.log: {_last_line(outcome.run)}"


def _dump_rows(dumps: Dumps) -> Iterator[tuple[str, str]]:
    ranks = len(dumps.there) + len(dumps.missing)
    took = "" if dumps.gathered_s is None else f", the last {dumps.gathered_s} s after the page"
    yield "dumps", f"{len(dumps.there)} of {ranks} there{took}"
    by_reason: dict[str, list[int]] = {}
    for rank, why in dumps.missing.items():
        by_reason.setdefault(why, []).append(rank)
    yield from (("", f"none of {ranks_in_words(who)}: {why}") for why, who in by_reason.items())
    said = ranks_in_words(dumps.culprits) if dumps.culprits else "nobody"
    yield (
        "analysis",
        f"of dumps and stacks alone: {said}, {dumps.kind or 'nothing found'} ({dumps.analysis_s} s)",
    )


def _last_line(run: str) -> str:
    """What the launcher said last; a job that did not train says there why."""
    try:
        lines = (Path(run) / "torchrun.log").read_text(errors="replace").split("\n")
    except OSError:
        return "it was not written"
    return next((line.strip() for line in reversed(lines) if line.strip()), "it is empty")
