"""What holds for a folder of dumps whatever their bytes are."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from hang.mutations import Files, mutated
from train_ledger.answer import to_json
from train_ledger.config import Limits
from train_ledger.hang.analysis import examination_of
from train_ledger.hang.dumps.dump import Dump
from train_ledger.hang.dumps.dump_files import Dumps, read_dumps
from train_ledger.render import as_html, as_text

LIMITS = Limits(dump_worker_cpu_s=20)

FAILED = (
    "died of",
    "ended with status",
    "answered nonsense",
    "took too long",
    "not read",
    "did not start",
    "CPU time",
)
"""Words of reasons that tell of a crash, a hang or an exception in the reader, not of the file."""


def write_batch(
    folder: Path, jobs: Mapping[str, Files], count: int, chance: random.Random
) -> tuple[list[range], int]:
    """About `count` files, one job again and again; which ranks are a job, and how many files are mutated."""
    spans: list[range] = []
    changed = start = 0
    everything = [data for files in jobs.values() for data in files]
    files = jobs[chance.choice(list(jobs))]
    while start < count:
        for place, data in enumerate(files):
            if chance.random() < 0.8:
                data = mutated(data, everything, chance)
                changed += 1
            (folder / f"rank_{start + place}").write_bytes(data)
        spans.append(range(start, start + len(files)))
        start += len(files)
    return spans, changed


def check_batch(folder: Path, spans: Sequence[range]) -> Counter[str]:
    """Read and reason; how many files became what.

    Raises AssertionError where one is lost, where a reader crashes or hangs, and where an answer is none.
    """
    read = read_dumps([folder], LIMITS)
    there = {str(path) for path in folder.iterdir()}
    refused = {it.file: it.why for it in read.unreadable}
    assert there == {it.file for it in read.dumps} | refused.keys() | {*read.stale}
    for file, why in refused.items():
        assert why, file
        assert not any(words in why for words in FAILED), (file, why)
    by_rank = {dump.rank: dump for dump in read.dumps}
    for span in spans:
        _reason([by_rank[rank] for rank in span if rank in by_rank], span, read)
    _reason(read.dumps, None, read)
    whole = sum(it.cut is None for it in read.dumps)
    became = Counter({"read": whole, "read in part": len(read.dumps) - whole, "stale": len(read.stale)})
    taken = {*read.stale, *(it.file for it in read.dumps)}
    return became + Counter(_kind(why) for file, why in refused.items() if file not in taken)


def _reason(dumps: Sequence[Dump], span: range | None, read: Dumps) -> None:
    """The answer to one job's dumps, and all ways of showing it."""
    start = span.start if span else 0
    moved = tuple(msgspec.structs.replace(dump, rank=dump.rank - start) for dump in dumps)
    examined = examination_of(Dumps(moved, read.unreadable[:5]), world_size=len(span) if span else None)
    answer = examined.answer
    assert answer.verdict in ("hang", "no_hang", "cannot_tell")
    assert not {rank for ranks in answer.victims_of.values() for rank in ranks} & set(answer.culprits)
    to_json(answer)
    for shown in (
        as_text(answer, picture=examined.picture),
        as_html(answer, title="t", picture=examined.picture),
    ):
        assert shown.replace("\n", "").isprintable(), shown


def _kind(why: str) -> str:
    return " ".join(why.split(":")[0].split()[:3])
