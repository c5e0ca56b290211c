"""How often do the rules wake somebody for nothing, and how soon for something?

    python bench/alert_days.py                       # 30 healthy job-days and 100 faulty ones
    python bench/alert_days.py --healthy 30 --faulty 0
    python bench/alert_days.py --only clocks --only xid_79 --seed 7
    python bench/alert_days.py --prometheus 4        # so many healthy days and faults by promtool, too

Each day is simulated and followed by the embedded judge as a keeper would follow it, in the day's own time,
on all cores. A page of a healthy day is false. A fault's page is held against the earliest moment at which it
could come by the alert's definition.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import cycle, islice
from statistics import median
from typing import NamedTuple

from train_ledger.chaos.days import FAULTS, SHAPES, Score, faulty_day, healthy_day, judge_day, score
from train_ledger.chaos.days.by_prometheus import judge_day_by_prometheus

_INTERVAL_S = 5.0
_SHOWN = 3


class Job(NamedTuple):
    name: str
    seed: int
    by_prometheus: bool = False


def judged(job: Job) -> Score:
    if job.name in SHAPES:
        day = healthy_day(job.name, job.seed, hours=6.0 if job.by_prometheus else 24.0)
    else:
        day = faulty_day(job.name, job.seed, hours=(2.0, 3.0) if job.by_prometheus else (3.0, 12.0))
    return score(day, (judge_day_by_prometheus if job.by_prometheus else judge_day)(day))


def jobs_of(names: Iterable[str], number: int, seed: int) -> list[Job]:
    """So many days, of all kinds in turn, each with a seed of its own."""
    kinds = list(names)
    return [Job(name, seed + place // len(kinds)) for place, name in enumerate(islice(cycle(kinds), number))]


def told(found: Counter[str]) -> str:
    return ", ".join(f"{count} × {name}" for name, count in found.most_common()) or "none"


def print_false(one: Score) -> None:
    for false in one.false_pages[:_SHOWN]:
        print(f"  FALSE {one.day} (seed {one.seed}): {false}")
    if len(one.false_pages) > _SHOWN:
        print(f"  … and {len(one.false_pages) - _SHOWN} more of that day")


def print_healthy(scores: Sequence[Score]) -> None:
    pages = sum((one.pages for one in scores), Counter[str]())
    records = sum((one.records for one in scores), Counter[str]())
    print(f"\n{len(scores)} healthy job-days, {sum(one.facts for one in scores):,} facts")
    print(f"  pages: {told(pages)}")
    print(f"  records, {sum(records.values()) / len(scores):.2f} a day: {told(records)}")
    for one in scores:
        print_false(one)


def print_faulty(scores: Sequence[Score]) -> None:
    by_kind: dict[str, list[Score]] = defaultdict(list)
    for one in scores:
        by_kind[one.day].append(one)
    print(f"\n{len(scores)} faulty job-days, {sum(one.facts for one in scores):,} facts")
    print(f"  {'fault':26}{'days':>5}{'found':>6}{'median s':>10}{'latest s':>10}  records beside it")
    for kind, those in by_kind.items():
        delays_s = [one.delay_s for one in those if one.delay_s is not None]
        late = f"{median(delays_s):10.1f}{max(delays_s):10.1f}" if delays_s else f"{'-':>10}{'-':>10}"
        records = told(sum((one.records for one in those), Counter[str]()))
        print(f"  {kind:26}{len(those):5}{len(delays_s):6}{late}  {records}")
    delays_s = [one.delay_s for one in scores if one.delay_s is not None]
    if delays_s:
        intervals = f"median {median(delays_s) / _INTERVAL_S:.1f}, largest {max(delays_s) / _INTERVAL_S:.1f}"
        print(
            f"  found {len(delays_s)} of {len(scores)}; evaluation intervals behind the earliest: {intervals}"
        )
    for one in scores:
        print_false(one)
        if not one.found:
            print(f"  MISSED {one.day} (seed {one.seed}); pages: {told(one.pages)}")


def run(jobs: Sequence[Job], workers: int) -> list[Score]:
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(judged, jobs))


def report(scores: Sequence[Score]) -> bool:
    """Print what was found; whether all of it is right."""
    if healthy := [one for one in scores if one.kind is None]:
        print_healthy(healthy)
    if faulty := [one for one in scores if one.kind is not None]:
        print_faulty(faulty)
    for one in scores:
        for wrong in one.misnamed:
            print(f"  NAMES AN INNOCENT {one.day} (seed {one.seed}): {wrong}")
    return not any(one.false_pages or one.misnamed for one in scores) and all(one.found for one in faulty)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--healthy", type=int, default=30)
    parser.add_argument("--faulty", type=int, default=100)
    parser.add_argument("--only", action="append", choices=[*SHAPES, *FAULTS])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--prometheus", type=int, default=0, help="so many shapes and faults through promtool"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    jobs = [*jobs_of(SHAPES, asked.healthy, asked.seed), *jobs_of(FAULTS, asked.faulty, asked.seed)]
    if asked.only:
        jobs = [Job(name, asked.seed) for name in asked.only]
    began_s = time.monotonic()
    right = report(run(jobs, asked.workers)) if jobs else True
    print(f"\n{time.monotonic() - began_s:.0f} s on {asked.workers} processes")
    if asked.prometheus:
        began_s = time.monotonic()
        both = [
            *jobs_of(SHAPES, asked.prometheus, asked.seed),
            *jobs_of(FAULTS, asked.prometheus, asked.seed),
        ]
        if asked.only:
            both = jobs
        print("\nthrough Prometheus' own evaluation (promtool), six hours each")
        right = report(run([it._replace(by_prometheus=True) for it in both], asked.workers)) and right
        print(f"\n{time.monotonic() - began_s:.0f} s on {asked.workers} processes")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
