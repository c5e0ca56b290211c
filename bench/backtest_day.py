"""How long does it take to judge a recorded day again?

    taskset -c 0 python bench/backtest_day.py                  # a day of 16 ranks, steps of 10 s
    taskset -c 0 python bench/backtest_day.py --hardware       # the same job with its cards read every 30 s
    python bench/backtest_day.py --prometheus --hours 1        # by promtool, beside it

The run is written first (chaos/fleet, with --hardware chaos/days), which is not measured. Held to: 60 s of a
core for the embedded judge, with the incidents that are read off the run.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from train_ledger.chaos import fleet
from train_ledger.chaos.days import healthy_day, write_day
from train_ledger.config import Config
from train_ledger.dash.backtest import Engine, Span, backtest, record
from train_ledger.dash.backtest.signs import signs_in
from train_ledger.run_dir import RunDir

_HELD_TO_S = 60.0
_STEP_S = 10.0


@contextmanager
def measured(what: str) -> Iterator[list[float]]:
    """Prints the seconds of the clock and of a core that it took; the latter are in the list afterwards."""
    cpu_s: list[float] = []
    clock_s, began = time.monotonic(), _cpu_s()
    yield cpu_s
    cpu_s.append(_cpu_s() - began)
    print(f"  {what:44}{time.monotonic() - clock_s:8.1f} s, {cpu_s[0]:.1f} s of a core", flush=True)


def _cpu_s() -> float:
    """Of this process and of those that it started."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(it.ru_utime + it.ru_stime for it in both)


def written(folder: Path, hours: float, ranks: int, *, hardware: bool) -> RunDir:
    if hardware:
        return write_day(folder / "day", healthy_day("steady", 0, hours=hours))
    steps = round(hours * 3600 / _STEP_S)
    job = fleet.write(
        folder / "day",
        hosts=2,
        ranks_per_host=ranks // 2,
        steps=steps,
        step_time_s=_STEP_S,
        checkpoint_every=360,
    )
    return job.run_dir


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--ranks", type=int, default=16, help="on two hosts; without --hardware")
    parser.add_argument("--hardware", action="store_true", help="a job of chaos/days, its cards read")
    parser.add_argument("--prometheus", action="store_true", help="by promtool, too")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        run_dir = written(Path(name), asked.hours, asked.ranks, hardware=asked.hardware)
        with measured("reading it"):
            recording = record(run_dir)
        since_t, until_t = recording.began_t, recording.ended_t
        print(f"  {len(recording.known):,} statements in {(until_t - since_t) / 3600:.1f} h")
        with measured("what went wrong, by the raw lines"):
            signs_in(recording, Config(), since_t, until_t)
        engines: list[Engine] = ["embedded", "prometheus"] if asked.prometheus else ["embedded"]
        took_s = {}
        for engine in engines:
            with measured(f"backtest, {engine}, with reading it") as cpu_s:
                tested = backtest(run_dir, Config(), engine=engine, span=Span(until_t=until_t))
            took_s[engine] = cpu_s[0]
            print(f"  {len(tested.outcome.pages)} pages, {len(tested.outcome.found)} incidents")
    return 0 if took_s["embedded"] <= _HELD_TO_S and tested.is_right else 1


if __name__ == "__main__":
    sys.exit(main())
