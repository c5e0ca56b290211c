"""How often is a slow job's culprit named, how soon, and how often an innocent?

    python bench/slow_jobs.py [--jobs 200] [--seed 1]

Healthy and faulty jobs at random (train_ledger.chaos.slow_fleet), judged as they go on, by what the last 400
steps tell: after every step from the fault's onset on, healthy ones after every twentieth line. An answer is
right where its kind, its ranks, its hosts and the part of the step that grew are the truth.

25 steps after the onset the whole answer is asked for, with the cards and ports of such a fault beside the
steps: is its cause code right, and who is named?
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from multiprocessing import Pool

from train_ledger.chaos.slow_fleet import CAUSES, SlowJob, random_plan, simulate
from train_ledger.config import Alerts
from train_ledger.ledger.hardware.records import GpuState, PortState
from train_ledger.slow import Beside, Cards, TableHistory, look
from train_ledger.slow.change import changes_of
from train_ledger.slow.peers import who
from train_ledger.slow.table import StepTable

NEWEST = 400
JUDGED_STEPS = 30
SOON_STEPS = 25
HEALTHY_EVERY = 20
"""Lines between two answers of a healthy job: by as many an answer is told."""
HEALTHY_WHOLE_EVERY = 100
KINDS = ("rank", "host", "stage", "sequence", "gc")
PARTS = ("compute_s", "comm_wait_s", "data_wait_s", "log_s", "ckpt_s")
PHASES = {
    "compute": "compute_s",
    "data": "data_wait_s",
    "logging": "log_s",
    "gc": "gc_s",
    "checkpoint": "ckpt_s",
}

Named = tuple[str, tuple[int, ...], tuple[str, ...], str | None]
"""kind, ranks, hosts, the part that grew"""


@dataclass(slots=True)
class Judged:
    """What was said of one job, and when it was first right."""

    seed: int
    cause: str | None
    truth: Named
    delay: int | None = None
    named: dict[Named, int] = field(default_factory=dict)
    calls: int = 0
    seconds: float = 0.0
    codes: Counter[tuple[str, tuple[int, ...]]] = field(default_factory=Counter)

    @property
    def wrong(self) -> list[Named]:
        return [it for it in self.named if it != self.truth]


def named(table: StepTable) -> Named | None:
    """What the steps so far say; None where they name nothing."""
    found = who(table)
    if found.kind in KINDS:
        return found.kind, found.ranks, found.hosts, PHASES.get(found.phase or "", found.phase)
    changed = changes_of(table)
    step = changed.get("step_time_s")
    rises = {name: changed[name].rise for name in PARTS if name in changed}
    if step is None or step.effect < 0 or not rises or max(rises.values()) <= 0:
        return None
    return "nobody", (), (), max(rises, key=lambda name: rises[name])


def of_faulty(seed: int) -> Judged:
    """A job with the fault whose turn it is."""
    job = simulate(random_plan(seed, CAUSES[seed % len(CAUSES)]))
    truth, onset = job.truth, job.truth.onset or 0
    judged = Judged(seed, truth.cause, (truth.kind, truth.ranks, truth.hosts, truth.part))
    for end in range(onset + 1, min(onset + JUDGED_STEPS, len(job.table.steps)) + 1):
        said = _said(judged, job, end, named)
        if said == judged.truth and judged.delay is None:
            judged.delay = end - onset
    end = min(onset + max(SOON_STEPS, 28), len(job.table.steps))
    judged.codes[whole_answer(job, end)] += 1
    return judged


def whole_answer(job: SlowJob, end: int) -> tuple[str, tuple[int, ...]]:
    """The cause code and the culprits of the answer that `train-ledger slow` would give then."""
    table = job.table.columns(slice(0, end))
    found = look(TableHistory(table), Alerts(), Beside(cards_of(job)))
    return found.cause, found.culprits


def cards_of(job: SlowJob) -> Cards:
    """What the cards and ports say: slow clocks are the culprits', of a slow link one port counts errors."""
    cause, culprits = job.truth.cause, job.truth.ranks
    gpus = []
    for place in job.table.places:
        low = cause == "slow.straggler.clock" and place.rank in culprits
        values = {"DCGM_FI_DEV_SM_CLOCK": 1400.0 if low else 1980.0, "DCGM_FI_DEV_GPU_TEMP": 62.0}
        host, t = place.host or "", 1.8e9
        gpus.append(GpuState(host, place.gpu, ranks=(place.rank,), seen_t=t, values=values, usual_mhz=1980.0))
    hosts = dict.fromkeys(it.host for it in gpus)
    errors = {next(iter(hosts)): {"symbol_error_total": 400.0}} if cause == "slow.straggler.link" else {}
    ports = [PortState(host, "mlx5_0", 1, seen_t=1.8e9, grown=errors.get(host, {})) for host in hosts]
    return Cards(tuple(gpus), tuple(ports))


def of_healthy(seed: int) -> Judged:
    """A job of 1000 steps without a fault."""
    job = simulate(random_plan(seed, steps=1000))
    judged = Judged(seed, None, ("nobody", (), (), None))
    for end in range(30, len(job.table.steps) + 1, HEALTHY_EVERY):
        _said(judged, job, end, _accused)
    for end in range(60, len(job.table.steps) + 1, HEALTHY_WHOLE_EVERY):
        judged.codes[whole_answer(job, end)] += 1
    return judged


def _accused(table: StepTable) -> Named | None:
    found = who(table)
    return (found.kind, found.ranks, found.hosts, found.phase) if found.kind in KINDS else None


def _said(judged: Judged, job: SlowJob, end: int, judge: Callable[[StepTable], Named | None]) -> Named | None:
    table = job.table.columns(slice(max(0, end - NEWEST), end))
    begin = time.process_time()
    said = judge(table)
    judged.seconds += time.process_time() - begin
    judged.calls += 1
    if said is not None:
        judged.named[said] = judged.named.get(said, 0) + 1
    return said


def show_healthy(judged: list[Judged]) -> None:
    culprits = sum(any(ranks for _, ranks, _, _ in it.named) for it in judged)
    kinds = Counter(kind for it in judged for kind, ranks, _, _ in it.named if not ranks)
    print(f"healthy: {len(judged)} jobs × 1000 steps, {sum(it.calls for it in judged)} answers")
    print(f"  jobs with a false culprit: {culprits}; other kinds named: {dict(kinds) or 'none'}")
    codes = sum((it.codes for it in judged), Counter[tuple[str, tuple[int, ...]]]())
    named = sum(any(ranks for _, ranks in it.codes) for it in judged)
    causes = dict(Counter(cause for cause, _ in codes.elements() if cause not in ("none", "unknown")))
    print(f"  whole answers: {codes.total()}; jobs where one names ranks: {named}")
    print(f"  causes in them: {causes or 'none'}")


def show_faulty(judged: list[Judged]) -> None:
    by_cause: dict[str, list[Judged]] = defaultdict(list)
    for it in judged:
        by_cause[it.cause or ""].append(it)
    print(f"faulty: {len(judged)} jobs, {sum(it.calls for it in judged)} answers")
    print(f"  {'cause':26}{'jobs':>5}{'found':>7}{'delay: median':>15}{'longest':>9}{'wrong':>7}")
    for cause, jobs in by_cause.items():
        print(f"  {cause:26}{_row(jobs)}")
    print(f"  {'all':26}{_row(judged)}")
    right, wrong = sum(it.truth in it.named for it in judged), sum(len(it.wrong) for it in judged)
    of_ranks = [said for it in judged for said in it.named if said[1]]
    bad = [said for it in judged for said in it.wrong if said[1] and not set(said[1]) <= set(it.truth[1])]
    print(f"  recall {sum(map(_is_soon, judged)) / len(judged):.3f} (within {SOON_STEPS} steps)")
    print(f"  precision {right / max(1, right + wrong):.3f} of kinds, culprits and parts")
    print(f"  answers that name ranks: {len(of_ranks)}, with an innocent among them: {len(bad)}")
    show_codes(judged)
    for it in judged:
        if it.wrong or not _is_soon(it):
            wrong = {said: it.named[said] for said in it.wrong}
            print(f"    seed {it.seed} {it.cause}: after {it.delay}; wrong {wrong}")


def show_codes(judged: list[Judged]) -> None:
    """The whole answers 25 steps after the onset."""
    right, said, innocent = 0, 0, 0
    for it in judged:
        (cause, ranks), truth = next(iter(it.codes)), it.truth[1]
        is_right = cause == it.cause and set(ranks) == set(truth)
        right += is_right
        said += cause not in ("none", "unknown")
        innocent += not set(ranks) <= set(truth)
        if not is_right:
            print(f"    seed {it.seed} {it.cause} {truth}: the whole answer is {cause} {ranks}")
    print(
        f"  cause codes and culprits {SOON_STEPS} steps after the onset: recall {right / len(judged):.3f}, "
        f"precision {right / max(1, said):.3f}, with an innocent named: {innocent}"
    )


def _is_soon(judged: Judged) -> bool:
    return judged.delay is not None and judged.delay <= SOON_STEPS


def _row(jobs: list[Judged]) -> str:
    delays = [it.delay for it in jobs if it.delay is not None]
    middle = f"{statistics.median(delays):g}" if delays else "–"
    longest = str(max(delays)) if delays else "–"
    wrong = sum(len(it.wrong) for it in jobs)
    return f"{len(jobs):5}{sum(map(_is_soon, jobs)):7}{middle:>15}{longest:>9}{wrong:7}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Simulated jobs: whose culprit is named, how soon, and whose is not"
    )
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument(
        "--seed", type=int, default=1, help="of the first job; faulty ones have the same seeds"
    )
    parser.add_argument("--only", choices=("healthy", "faulty"))
    given = parser.parse_args()
    seeds: Iterable[int] = range(given.seed, given.seed + given.jobs)
    begin = time.time()
    judged: list[Judged] = []
    with Pool(2) as pool:
        for name, of, show in (("healthy", of_healthy, show_healthy), ("faulty", of_faulty, show_faulty)):
            if given.only in (None, name):
                found = pool.map(of, seeds, chunksize=4)
                show(found)
                judged += found
    calls, seconds = (sum(getattr(it, name) for it in judged) for name in ("calls", "seconds"))
    print(f"an answer took {1000 * seconds / calls:.1f} ms of a core; all of it {time.time() - begin:.0f} s")


if __name__ == "__main__":
    main()
