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
    hours: float
    by_prometheus: bool = False


def judged(job: Job) -> Score:
    if job.name in SHAPES:
        day = healthy_day(job.name, job.seed, hours=job.hours)
    else:
        day = faulty_day(job.name, job.seed, hours=(job.hours / 8, job.hours / 2))
    return score(day, (judge_day_by_prometheus if job.by_prometheus else judge_day)(day))


def jobs_of(names: Iterable[str], number: int, seed: int, hours: float) -> list[Job]:
    """So many days, of all kinds in turn, each with a seed of its own."""
    kinds = list(names)
    those = enumerate(islice(cycle(kinds), number))
    return [Job(name, seed + place // len(kinds), hours) for place, name in those]


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
    facts, longest_s = sum(one.facts for one in scores), max(one.cpu_s for one in scores)
    print(f"\n{len(scores)} healthy job-days, {facts:,} facts, the longest {longest_s:.0f} s of a core")
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


def asked_of(
    asked: argparse.Namespace, healthy: int, faulty: int, hours: float, *, by_prometheus: bool
) -> bool:
    """Judge the days that were asked for, and print what came of it; whether all of it is right."""
    jobs = [*jobs_of(SHAPES, healthy, asked.seed, hours), *jobs_of(FAULTS, faulty, asked.seed, hours)]
    if asked.only:
        jobs = [Job(name, asked.seed, hours) for name in asked.only]
    began_s = time.monotonic()
    right = report(run([job._replace(by_prometheus=by_prometheus) for job in jobs], asked.workers))
    print(f"\n{time.monotonic() - began_s:.0f} s on {asked.workers} processes")
    return right


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--healthy", type=int, default=30)
    parser.add_argument("--faulty", type=int, default=100)
    parser.add_argument("--only", action="append", choices=[*SHAPES, *FAULTS])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--hours", type=float, default=24.0, help="of a healthy day; faults strike up to half"
    )
    parser.add_argument("--prometheus", type=int, default=0, help="so many shapes and faults by promtool")
    parser.add_argument("--prometheus-hours", type=float, default=24.0, help="as --hours, for those")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    right = asked_of(asked, asked.healthy, asked.faulty, asked.hours, by_prometheus=False)
    if asked.prometheus:
        print(f"\nthrough Prometheus' own evaluation (promtool), {asked.prometheus_hours:g} h each")
        both, hours = asked.prometheus, asked.prometheus_hours
        right = asked_of(asked, both, both, hours, by_prometheus=True) and right
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
