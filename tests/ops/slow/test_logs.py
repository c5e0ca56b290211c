"""Where nobody writes signals, torchtitan's spans and Megatron's lines say who drags, as far as they know."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta

import pytest

from train_ledger.config import Config
from train_ledger.ops.slow import look_at
from train_ledger.ops.slow.wanted import Wanted
from train_ledger.run_dir import RunDir

RANKS = 8
FIRST = datetime(2026, 11, 29, 3, 0, 0, tzinfo=UTC)


def begun(path, **parallelism):
    path.mkdir()
    run = {"run": "r1", "world_size": RANKS, "parallelism": parallelism or {"dp": RANKS}}
    (path / "run.json").write_text(json.dumps(run))
    return RunDir(path)


class Megatron:
    """Writes a log of a line every fifth iteration, and after it what is asked for."""

    def __init__(self, seed=1):
        self.drawn = random.Random(seed)
        self.lines: list[str] = []
        self.t = FIRST

    def near(self, number):
        return number * self.drawn.uniform(0.99, 1.01)

    def iteration(self, number, step_s):
        self.t += timedelta(seconds=5 * step_s)
        self.lines.append(
            f" [{self.t:%Y-%m-%d %H:%M:%S.%f}] iteration {number:8d}/  500000 | "
            f"consumed samples: {number * 64:12d} | "
            f"elapsed time per iteration (ms): {1000 * step_s:.1f} | learning rate: 1.000000E-04 | "
            "lm loss: 2.500000E+00 | loss scale: 1.0 | grad norm: 0.312 |"
        )

    def report(self, forward_s, mhz):
        fast, slow = (pick(range(RANKS), key=forward_s.__getitem__) for pick in (min, max))
        low = min(range(RANKS), key=mhz.__getitem__)
        self.lines.append(
            f"0: INFO:megatron.core.utils:[{self.t:%Y-%m-%d %H:%M:%S}] "
            f"| MnRtt/Rnk: {1000 * forward_s[fast]:.2f}ms/{fast} "
            f"| MxRtt/Rnk: {1000 * forward_s[slow]:.2f}ms/{slow} "
            "| MnPwr/Rnk: 601796W/6 | MxPwr/Rnk: 683801W/7 "
            f"| MnClk/Rnk: {mhz[low]}MHz/{low} | MxClk/Rnk: 1980MHz/7"
        )

    def timers(self, least_s, most_s):
        self.lines += [
            "(min, max) time across ranks (ms):",
            f"    forward-compute .........................: ({1000 * least_s:.2f}, {1000 * most_s:.2f})",
        ]

    def of_each_rank(self, forward_s):
        self.lines += ["times across ranks (ms):", "    forward-compute:"]
        self.lines += [f"     rank {rank:2d}: {1000 * it:.2f}" for rank, it in enumerate(forward_s)]

    def write(self, run_dir):
        folder = run_dir.logs / "attempt_0" / "0"
        folder.mkdir(parents=True)
        (folder / "stderr.log").write_text("\n".join(self.lines) + "\n")


def written(run_dir, told, culprit=5, factor=1.5, mhz=1980, risen=True):
    log = Megatron()
    for number in range(5, 305, 5):
        slow = factor if number > 150 or not risen else 1.0
        log.iteration(number, log.near(1.4 + 0.6 * slow))
        forward_s = [log.near(0.6) for _ in range(RANKS)]
        clocks = [1980] * RANKS
        if culprit is not None:
            forward_s[culprit] *= slow
            clocks[culprit] = mhz if slow > 1 else 1980
        else:
            forward_s = [it * slow for it in forward_s]
        if told == "report":
            log.report(forward_s, clocks)
        elif told == "timers":
            log.timers(min(forward_s), max(forward_s))
        else:
            log.of_each_rank(forward_s)
    log.write(run_dir)
    return look_at(run_dir, Config())


@pytest.mark.parametrize("culprit", [0, 5])
@pytest.mark.parametrize("told", ["report", "each rank"])
def test_megatron_names_the_rank_where_it_knows_it(tmp_path, told, culprit):
    found = written(begun(tmp_path / "run"), told, culprit)
    assert (found.cause, found.ranks) == ("slow.straggler.software", (culprit,))
    assert abs(found.since_step - 155) <= 5


def test_the_detectors_clocks_say_why(tmp_path):
    found = written(begun(tmp_path / "run"), "report", mhz=1300)
    assert (found.cause, found.ranks) == ("slow.straggler.clock", (5,))
    assert any("1300 MHz where others run at 1980" in line for line in found.evidence)


def test_minimum_and_maximum_say_that_somebody_drags_and_not_who(tmp_path):
    found = written(begun(tmp_path / "run"), "timers")
    assert (found.cause, found.ranks) == ("unknown", ())
    assert "it is not known who drags – fwd takes the slowest rank 1.5" in found.not_observed[0]


@pytest.mark.parametrize("told", ["report", "timers", "each rank"])
def test_what_slows_all_names_nobody(tmp_path, told):
    found = written(begun(tmp_path / "run"), told, culprit=None)
    assert (found.ranks, found.details.slower) == ((), True)


def test_a_rank_that_was_ever_the_slowest_may_be_in_a_larger_stage(tmp_path):
    found = written(begun(tmp_path / "run", dp=4, pp=2), "report", risen=False)
    assert found.ranks == ()


def spans(run_dir, what, culprit=2, more_ms=400.0):
    """torchtitan's log of ranks that wait for each other in `optim`."""
    run_dir.structured_logs.mkdir()
    drawn = random.Random(3)
    told = [
        [
            {
                "fetching_batch": drawn.uniform(5, 15),
                "forward_backward": drawn.uniform(590, 610),
                "optim": 40.0,
            }
            for _ in range(RANKS)
        ]
        for _ in range(100)
    ]
    for step in told[50:]:
        for rank in range(RANKS) if culprit is None else (culprit,):
            step[rank][what] += more_ms * drawn.uniform(0.7, 1.3)
    whole = [max(sum(of_rank.values()) for of_rank in step) for step in told]
    for rank in range(RANKS):
        lines, now_us = [], int(FIRST.timestamp() * 1e6)
        head = {
            "rank": rank,
            "global_rank": rank,
            "source": "training",
            "host_name": f"n{rank // 4}",
            "tid": 7,
        }
        for number, step in enumerate(told):
            own = dict(step[rank])
            own["optim"] += whole[number] - sum(own.values())
            of_step = {**head, "step": number + 1, "relative_step": number + 1, "log_type": "event"}
            lines.append({**of_step, "time_us": now_us, "log_type_name": "step_start"})
            at_us = now_us
            for name, value in own.items():
                lines.append({**of_step, "time_us": at_us, "log_type_name": f"{name}_start"})
                at_us += int(1000 * value)
                lines.append({**of_step, "time_us": at_us, "log_type_name": f"{name}_end", "value": value})
            now_us += int(1000 * whole[number])
            lines.append({**of_step, "time_us": now_us, "log_type_name": "step_end", "value": whole[number]})
        path = run_dir.structured_logs / f"training.global_rank_{rank}.20261129-ab.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return look_at(run_dir, Config())


@pytest.mark.parametrize(("what", "phase"), [("fetching_batch", "data"), ("forward_backward", "host")])
def test_spans_of_torchtitan_name_the_rank_and_its_phase(tmp_path, what, phase):
    found = spans(begun(tmp_path / "run"), what)
    assert (found.cause, found.ranks, found.hosts) == ("slow.straggler.software", (2,), ("n0",))
    assert found.details.phase == phase


def test_spans_that_are_longer_on_all_ranks_name_nobody(tmp_path):
    assert spans(begun(tmp_path / "run"), "forward_backward", culprit=None).ranks == ()


def test_spans_that_all_spend_on_data_are_waiting_for_data(tmp_path):
    found = spans(begun(tmp_path / "run"), "fetching_batch", culprit=None)
    assert (found.cause, found.ranks) == ("slow.data", ())


def test_a_log_is_cut_at_a_time_and_compared_with_another_log(tmp_path):
    before, now = begun(tmp_path / "before"), begun(tmp_path / "now")
    written(before, "report", culprit=None, factor=1.0)
    written(now, "report")
    found = look_at(now, Config(), Wanted(since_t=FIRST.timestamp() + 250))
    assert (found.ranks, 120 < found.since_step < 130) == ((5,), True)
    found = look_at(now, Config(), Wanted(other_run=before.path))
    assert (found.ranks, found.details.compared_with) == ((5,), "steps 5-300 of before")
