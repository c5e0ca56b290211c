"""A run that goes on slowly is diagnosed with who, since when, what it costs and what to run next."""

from __future__ import annotations

import json
import os

import pytest

from train_ledger import slow
from train_ledger.chaos import fleet
from train_ledger.config import Config
from train_ledger.ops import diagnose, observe, observing
from train_ledger.ops.slow import look_at
from train_ledger.ops.slow.wanted import Wanted, WantedError, asked_of
from train_ledger.run_dir import RunDir


def written(path, fault, **more):
    return fleet.write(path / "run", fault=fault, culprit=5, hosts=2, ranks_per_host=4, **more)


def test_a_rank_that_drags_is_diagnosed_with_its_host_gpu_and_cost(tmp_path):
    made = written(tmp_path, "slow_rank", steps=200)
    found = diagnose(made.run_dir, Config(), at=made.t + 5)
    assert (found.cause, found.ranks, found.hosts) == ("slow.straggler.software", (5,), ("node001",))
    assert len(found.gpus) == 1
    assert abs(found.since_step - 101) <= 2
    assert found.impact.wall_s == pytest.approx(50, rel=0.1)
    assert found.impact.cost == pytest.approx(found.impact.gpu_hours * 2.5)


def test_the_next_commands_are_of_that_rank_and_of_a_peer(tmp_path):
    made = written(tmp_path, "slow_rank", steps=200)
    found = diagnose(made.run_dir, Config(), at=made.t + 5)
    commands = [it.command for it in found.next]
    assert any("nvidia-smi" in it and "node001" in it for it in commands)
    assert sum("py-spy dump" in it for it in commands) == 2
    assert any(it.endswith("profile --ranks 5,0") for it in commands)


def test_slower_collectives_blame_nobody(tmp_path):
    made = written(tmp_path, "slow_all", steps=200)
    found = diagnose(made.run_dir, Config(), at=made.t + 5)
    assert (found.cause, found.ranks, found.hosts, found.gpus) == ("slow.communication", (), (), ())
    assert {it.cause for it in found.ruled_out} >= {"slow.data", "slow.host_memory"}


@pytest.mark.parametrize("fault", [None, "restart"])
def test_what_is_not_slow_stays_none(tmp_path, fault):
    made = written(tmp_path, fault, steps=200, checkpoint_every=20)
    found = diagnose(made.run_dir, Config(), at=made.t + 5)
    assert (found.cause, found.ranks) == ("none", ())


def test_a_hang_after_slow_steps_is_a_hang(tmp_path):
    made = written(tmp_path, "slow_rank", steps=200)
    found = diagnose(made.run_dir, Config(), at=made.t + 900)
    assert found.state == "stalled"
    assert not found.cause.startswith("slow.")


def test_a_finished_run_can_be_asked_whether_it_was_slow(tmp_path):
    made = written(tmp_path, None, steps=200)
    found = look_at(made.run_dir, Config(), at=made.t + 5)
    assert (found.state, found.cause, found.details.verdict) == ("finished", "none", "not_slow")


def test_another_run_is_the_baseline(tmp_path):
    before = fleet.write(tmp_path / "before", hosts=2, ranks_per_host=4)
    made = written(tmp_path, "slow_all", steps=200, fault_step=1)
    found = look_at(made.run_dir, Config(), Wanted(other_run=before.run_dir.path), at=made.t)
    assert found.cause == "slow.communication"
    assert found.details.before_s == pytest.approx(1.0, rel=0.05)


def test_a_time_to_cut_at_becomes_a_step(tmp_path):
    made = written(tmp_path, "slow_rank", steps=200)
    asked = asked_of(slow.FileHistory(made.run_dir), Wanted(since_t=made.fault_t))
    assert abs(asked.since_step - 101) <= 1


def test_a_time_before_the_first_step_is_refused(tmp_path):
    made = written(tmp_path, "slow_rank")
    with pytest.raises(WantedError, match="no step was completed before"):
        asked_of(slow.FileHistory(made.run_dir), Wanted(since_t=made.t - 1e6))


def test_megatrons_own_detector_is_offered_where_its_log_shows_the_port(tmp_path):
    made = written(tmp_path, "slow_rank", steps=200)
    logs = made.run_dir.path / "logs"
    logs.mkdir()
    (logs / "rank0.log").write_text(
        "  log_straggler ................................... True\n"
        "  straggler_ctrlr_port ............................ 51234\n"
    )
    found = diagnose(made.run_dir, Config(), at=made.t + 5)
    assert "curl node000:51234" in [it.command for it in found.next]


def long_run(path, steps):
    """Eight ranks that write a line a step."""
    signals = path / "signals"
    signals.mkdir(parents=True)
    (path / "run.json").write_text(json.dumps({"run": "long", "world_size": 8, "parallelism": {"dp": 8}}))
    for rank in range(8):
        head = {"t": 1.8e9, "rank": rank, "attempt": 0, "event": "run_start", "world_size": 8, "host": "a"}
        lines = [json.dumps(head)]
        lines += [
            json.dumps(
                {"t": 1.8e9 + step, "step": step, "rank": rank, "attempt": 0, "step_time_s": 1.0}
                | {"compute_s": 0.8, "comm_wait_s": 0.2, "loss": 2.0}
            )
            for step in range(1, steps + 1)
        ]
        (signals / f"rank_{rank:05d}.jsonl").write_text("\n".join(lines) + "\n")
    return path


def test_what_is_read_does_not_grow_with_the_run(tmp_path, monkeypatch):
    """Both the fold and the table of steps read the ends, and some places between by halves."""
    monkeypatch.setattr(observing, "WHOLE_BYTES", 1 << 20)
    read = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda *args: read.append(pread(*args)) or read[-1])
    sizes = []
    for steps in (4_000, 16_000):
        run_dir = RunDir(long_run(tmp_path / str(steps), steps))
        read.clear()
        found = diagnose(run_dir, Config(), at=1.8e9 + steps + 1)
        assert (found.cause, found.state) == ("none", "running")
        sizes.append(sum(map(len, read)))
    assert sizes[1] < 1.2 * sizes[0]


def test_the_past_of_a_long_run_is_as_it_was_then(tmp_path, monkeypatch):
    monkeypatch.setattr(observing, "WHOLE_BYTES", 1 << 20)
    run_dir = RunDir(long_run(tmp_path / "run", 4_000))
    assert observe(run_dir, Config(), at=1.8e9 + 100.5).state.step == 100


def all_compute_longer(path, factor):
    """Eight ranks whose own work became longer on all at once."""
    run = long_run(path, 300)
    for file in (run / "signals").iterdir():
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        t = 1.8e9
        for line in lines[1:]:
            stretch = factor if line["step"] > 150 else 1.0
            line["step_time_s"], line["compute_s"] = 0.2 + 0.8 * stretch, 0.8 * stretch
            t += line["step_time_s"]
            line["t"] = t
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return RunDir(run), t


def test_slower_steps_that_no_suspect_explains_are_unknown_and_the_reason_says_so(tmp_path):
    run_dir, t = all_compute_longer(tmp_path / "run", 1.6)
    found = diagnose(run_dir, Config(), at=t + 1)
    assert (found.cause, found.ranks) == ("unknown", ())
    assert "as long as before, and no suspect explains it" in found.not_observed[0]


def test_a_little_slower_and_unexplained_is_nothing_to_wake_anybody_for(tmp_path):
    run_dir, t = all_compute_longer(tmp_path / "run", 1.1)
    assert diagnose(run_dir, Config(), at=t + 1).cause == "none"
    assert look_at(run_dir, Config(), at=t + 1).details.slower
