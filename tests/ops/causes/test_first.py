"""One thing leads to another: the first cause is named with its line, and who only followed is ruled out."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ops.cascades import (
    START_T,
    Ranks,
    agent_ends,
    iteration,
    lost_peer,
    put_kernel_log,
    put_log,
    stamp,
    timed_out,
    traceback,
)
from train_ledger.answer import Diagnosis
from train_ledger.config import Config
from train_ledger.ops import diagnose
from train_ledger.render.words import verdict
from train_ledger.run_dir import RunDir

T = START_T
NO_FILE = "FileNotFoundError: [Errno 2] No such file or directory: '/data/index-cache/x_doc_idx.npy'"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB."


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    (tmp_path / "r42").mkdir()
    return RunDir(tmp_path / "r42")


def steps(until: int = 100, *, loss: str = "2.5E+00") -> str:
    return "".join(iteration(step, T + step, loss) for step in range(1, until + 1))


def first_line(found: Diagnosis) -> str:
    return next(line for line in found.evidence if line.startswith("first cause: "))


def ruled_out(found: Diagnosis) -> list[str]:
    return [it.cause for it in found.ruled_out]


def test_a_missing_file_on_one_host_is_the_cause_of_timeouts_on_the_other_ten_minutes_later(
    run: RunDir,
) -> None:
    killing = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(T + 6))
    text = "v1: using world size: 16, data-parallel-size: 4\n" + traceback(8, NO_FILE, "v2")
    text += traceback(12, NO_FILE, "v2")
    text += f"v2: [{killing},100] [INFO] [launch.py:335:sigkill_handler] Killing subprocess 480103\n"
    put_log(run, text + timed_out(0, T + 606, "v1") + timed_out(4, T + 606, "v1"), T + 660)
    found = diagnose(run, Config())
    assert (found.cause, found.ranks, found.hosts) == ("hang.rank_died", (8, 12), ("v2",))
    assert first_line(found).startswith(f"first cause: rank 8 on v2: {NO_FILE}")
    assert "(logs/train.log:5)" in first_line(found)
    assert "14:13:26 UTC at the latest" in first_line(found) or "at 14:13:26 UTC" in first_line(found)
    assert "the same of rank 12 (logs/train.log:9)" in found.evidence
    assert any(
        "ranks 0,4: timed out in ALLREDUCE" in line and "600 s later" in line for line in found.evidence
    )
    assert "ranks 0,4 as the cause" in ruled_out(found)
    assert found.impact is not None
    assert found.impact.wall_s == pytest.approx(600, abs=8)
    assert found.impact.gpu_hours == pytest.approx(16 * 600 / 3600, rel=0.02)


def test_device_memory_that_ran_out_on_one_rank_comes_before_the_timeouts_of_all_others(run: RunDir) -> None:
    late = "".join(timed_out(rank, T + 703, seq=101) for rank in (0, 1, 2, 4, 5, 6, 7))
    put_log(run, late + steps() + traceback(3, OOM), T + 760)
    found = diagnose(run, Config())
    assert (found.cause, found.ranks) == ("hang.rank_died", (3,))
    assert "out of device memory: CUDA out of memory. Tried to allocate 2.50 GiB" in first_line(found)


def test_the_kernel_that_killed_a_process_comes_before_those_that_lost_it(run: RunDir) -> None:
    pids = {rank: 4000 + rank for rank in range(4)}
    survivors = "".join(map(lost_peer, (2, 0, 3)))
    put_log(run, steps() + survivors + agent_ends(T + 103, pids, root=1, code=-9), T + 105)
    put_kernel_log(run, "n1", [(T + 101.5, "Out of memory: Killed process 4001 (python) total-vm:1kB")])
    found = diagnose(run, Config())
    assert (found.cause, found.ranks, found.hosts, found.confidence) == (
        "hang.rank_died",
        (1,),
        ("n1",),
        "high",
    )
    assert "rank 1 on n1: the kernel killed process 4001 (python) for want of memory" in first_line(found)
    assert "(hardware/n1.kern.log:1)" in first_line(found)
    assert "ranks 0,2-3 as the cause" in ruled_out(found)


def looping(ranks: Ranks, deaths: int, *, back_to: int, steps: int) -> None:
    for attempt in range(1, deaths + 1):
        ranks.t += 30
        ranks.start(attempt, back_to)
        ranks.steps(steps)
        ranks.event("signal", number=15)


def test_an_xid_is_the_first_cause_of_the_loop_that_followed(run: RunDir) -> None:
    ranks = Ranks(run, 8, hosts=2)
    ranks.start()
    ranks.steps(60)
    gone = "NVRM: Xid (PCI:0000:06:00): 79, pid=1005, name=python, GPU has fallen off the bus."
    put_kernel_log(run, "n2", [(ranks.t + 0.5, gone)])
    run.merge_run({"exclude_file": "/etc/bad hosts", "contacts": {"operations": "ops@example.org"}})
    ranks.t += 200
    ranks.event("signal", number=15)
    looping(ranks, 4, back_to=40, steps=20)
    found = diagnose(run, Config(), at=ranks.t + 60)
    assert (found.state, found.cause, found.ranks, found.hosts) == ("stopped", "hardware.xid", (5,), ("n2",))
    assert found.gpus == ("0000:06:00",)
    assert "rank 5 on n2: XID 79 of 0000:06:00" in first_line(found)
    assert "the loop began when attempt 0 died at step 60" in found.evidence
    commands = [it.command for it in found.next]
    assert "echo n2 >> '/etc/bad hosts'" in commands
    assert any(command.endswith("ops@example.org") for command in commands)


def test_a_save_that_fails_in_every_attempt_is_what_a_loop_comes_from(run: RunDir) -> None:
    ranks = Ranks(run, 4)
    ranks.start()
    for attempt in range(1, 6):
        ranks.steps(30)
        ranks.event("ckpt_failed", [0], error="OSError: [Errno 28] No space left on device")
        ranks.t += 1
        ranks.event("exception", type="CheckpointException", message="save failed")
        if attempt < 5:
            ranks.t += 30
            ranks.start(attempt)
    found = diagnose(run, Config(), at=ranks.t + 60)
    assert (found.cause, found.ranks) == ("checkpoint_failing", ())
    assert "a checkpoint could not be saved: OSError: [Errno 28] No space left on device" in first_line(found)
    assert "attempts 1-4 died of the same: a restart does not help" in found.evidence


def test_a_run_that_was_given_up_after_losses_that_were_no_numbers_names_these(run: RunDir) -> None:
    ranks = Ranks(run, 4)
    ranks.start()
    ranks.steps(40)
    ranks.steps(5, loss="NaN")
    ranks.event("exception", type="Exception", message="Current loss scale already at minimum")
    found = diagnose(run, Config(), at=ranks.t + 400)
    assert (found.state, found.cause, found.ranks, found.since_step) == ("stopped", "numeric.nan", (), 41)
    assert "the loss of step 41 is not finite on every rank" in first_line(found)
    assert "2,624 consumed (signals/rank_00000.jsonl:42)" in first_line(found)
    assert any("then ranks 0-3: Exception: Current loss scale" in line for line in found.evidence)


def with_a_straggler(ranks: Ranks, steps: int) -> None:
    for count in range(steps):
        is_slow = count >= steps // 2
        ranks.step += 1
        each_s = 1.5 if is_slow else 1.0
        ranks.t += each_s
        for rank in range(ranks.world):
            own_s = (1.4 if rank == 5 else 0.9) if is_slow else 0.9
            ranks.line(rank, loss=2.0, step_time_s=each_s, compute_s=own_s, comm_wait_s=each_s - own_s - 0.02)


def test_who_had_dragged_before_the_run_stood_is_told_beside_the_cause(run: RunDir) -> None:
    ranks = Ranks(run, 8, hosts=2)
    ranks.start()
    with_a_straggler(ranks, 300)
    ranks.event("phase_start", phase="backward")
    found = diagnose(run, Config(), at=ranks.t + 400)
    assert (found.state, found.cause, found.ranks) == ("stalled", "unknown", ())
    line = "before it stood, rank 5 dragged the others since step 151 (slow.straggler.software)"
    assert line in found.evidence


def test_saves_that_fail_while_a_rank_drags_are_the_cause_and_the_other_is_told(run: RunDir) -> None:
    ranks = Ranks(run, 8, hosts=2)
    ranks.start()
    with_a_straggler(ranks, 300)
    ranks.event("ckpt_failed", [0], error="OSError: [Errno 122] Disk quota exceeded")
    with_a_straggler(ranks, 1)
    found = diagnose(run, Config(), at=ranks.t + 5)
    assert (found.cause, found.ranks) == ("checkpoint_failing", ())
    assert any(line.startswith("besides, slow.straggler.software") for line in found.evidence)


def test_what_a_rank_raised_in_the_first_attempt_is_what_a_loop_in_logs_comes_from(run: RunDir) -> None:
    broken = "OSError: [Errno 5] Input/output error: '/data/shard_0007.bin'"
    put_log(run, steps(50) + traceback(3, broken), T + 60, "r42/attempt_0/3/stderr.log")
    for attempt in range(1, 5):
        in_use = traceback(0, "RuntimeError: The server socket has failed to listen: address already in use")
        put_log(run, in_use, T + 60 + 200 * attempt, f"r42/attempt_{attempt}/0/stderr.log")
    found = diagnose(run, Config())
    assert (found.cause, found.ranks) == ("restart_loop", (3,))
    assert f"rank 3: {broken}" in first_line(found)
    assert "(logs/r42/attempt_0/3/stderr.log:54)" in first_line(found)


def test_what_a_rank_raised_in_the_first_attempt_is_what_a_loop_in_signals_comes_from(run: RunDir) -> None:
    ranks = Ranks(run, 4)
    ranks.start()
    ranks.steps(50)
    ranks.event("exception", [2], type="OSError", message="[Errno 5] Input/output error: '/data/7.bin'")
    ranks.t += 1
    ranks.event("exception", [0, 1, 3], type="RuntimeError", message="Connection closed by peer")
    looping(ranks, 4, back_to=20, steps=10)
    found = diagnose(run, Config(), at=ranks.t + 60)
    assert (found.cause, found.ranks, found.hosts) == ("restart_loop", (2,), ("n1",))
    assert "rank 2 on n1: OSError: [Errno 5] Input/output error" in first_line(found)


@pytest.mark.parametrize("by", ["logs", "signals"])
def test_what_all_ranks_ran_into_is_nobody_s_fault(run: RunDir, by: str) -> None:
    run.merge_run({"world_size": 4})
    if by == "logs":
        put_log(
            run, steps() + "".join(traceback(rank, "KeyError: 'input_ids'") for rank in range(4)), T + 110
        )
        found = diagnose(run, Config())
    else:
        ranks = Ranks(run, 4)
        ranks.start()
        ranks.steps(60)
        ranks.event("exception", type="KeyError", message="'input_ids'")
        found = diagnose(run, Config(), at=ranks.t + 60)
    assert (found.cause, found.ranks, found.hosts) == ("hang.rank_died", (), ())
    assert any(
        line.startswith("every rank ran into the same: it lies in the code") for line in found.evidence
    )
    assert verdict(found).startswith("nobody to blame")


def test_of_two_incidents_the_one_is_told_that_the_run_stands_by_now(run: RunDir) -> None:
    ranks = Ranks(run, 8, hosts=2)
    ranks.start()
    ranks.steps(100)
    ranks.event("exception", [2], type="ValueError", message="bad shard")
    ranks.event("signal", [0, 1, 3, 4, 5, 6, 7], number=15)
    ranks.t += 30
    ranks.start(1, 80)
    ranks.steps(600, each_s=12.0)
    ranks.event("exception", [6], type="RuntimeError", message="CUDA error: an illegal memory access")
    ranks.event("phase_start", [0, 1, 2, 3, 4, 5, 7], phase="backward")
    found = diagnose(run, Config(), at=ranks.t + 400)
    assert (found.cause, found.ranks, found.hosts) == ("hang.rank_died", (6,), ("n2",))
    assert not any("bad shard" in line for line in found.evidence)


@pytest.mark.parametrize("why", ["TIME LIMIT", "PREEMPTION"])
def test_whom_the_scheduler_ended_has_no_fault(run: RunDir, why: str) -> None:
    ranks = Ranks(run, 4)
    ranks.start()
    ranks.steps(60)
    ranks.event("signal", number=15)
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(ranks.t + 1))
    ended = f"slurmstepd: error: *** STEP 4242.0 ON n1 CANCELLED AT {at} DUE TO {why} ***\n"
    put_log(run, ended, ranks.t + 1, "slurm-4242.out")
    found = diagnose(run, Config(), at=ranks.t + 400)
    assert (found.state, found.cause, found.ranks) == ("stopped", "unknown", ())
    assert found.evidence[0].startswith(f"ended from outside: the scheduler ended job 4242.0: {why}, at ")
    assert "(logs/slurm-4242.out:1)" in found.evidence[0]
    assert "since the scheduler ended job 4242.0" in verdict(found)


def test_an_end_by_sigterm_is_told_with_its_time(run: RunDir) -> None:
    ranks = Ranks(run, 4)
    ranks.start()
    ranks.steps(60)
    ranks.event("signal", number=15)
    found = diagnose(run, Config(), at=ranks.t + 400)
    assert (found.cause, found.ranks) == ("unknown", ())
    assert "every rank was ended from outside (SIGTERM) at 14:14:20 UTC" in verdict(found)


def test_what_comes_after_others_gave_up_waiting_is_their_clearing_away(run: RunDir) -> None:
    """Rank 5 says something of its own only when the watchdogs of all others have ended the job."""
    late = "".join(timed_out(rank, T + 703, seq=101) for rank in (0, 1, 2, 3, 4, 6, 7))
    put_log(run, steps() + late, T + 704, "train.log")
    put_log(
        run,
        f"W{stamp(T + 760)} 4 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 4005 "
        "closing signal SIGTERM\n" + traceback(5, "ValueError: atexit handler"),
        T + 765,
        "late.log",
    )
    found = diagnose(run, Config(), at=T + 900)
    assert (found.cause, found.ranks, found.confidence) == ("hang.rank_missing", (5,), "low")
    said = [line for line in found.evidence if "atexit" in line]
    assert all(line.endswith(", as it was being ended from outside") for line in said)
    assert any(it.startswith("logs: 1 exceptions of before it stood still") for it in found.not_observed)


def test_who_raises_in_the_signals_after_others_gave_up_waiting_is_not_accused(run: RunDir) -> None:
    ranks = Ranks(run, 8, hosts=2)
    ranks.start()
    ranks.steps(60)
    ranks.event("phase_start", phase="backward")
    put_log(run, "".join(timed_out(rank, ranks.t + 601, seq=900) for rank in range(8)), ranks.t + 602)
    ranks.line(3, late_s=640, event="exception", type="RuntimeError", message="CUDA error: launch failure")
    found = diagnose(run, Config(), at=ranks.t + 800)
    assert (found.cause, found.ranks, found.hosts) == ("hang.fabric", (), ())


def test_an_exception_that_the_run_went_on_from_is_not_what_it_hangs_of(run: RunDir) -> None:
    """Rank 2 retried its read 400 steps ago, and its traceback carries no time."""
    caught = traceback(2, "TimeoutError: read timed out; retrying (1/5)")
    later = "".join(iteration(step, T + step) for step in range(101, 501))
    late = "".join(timed_out(rank, T + 1102, seq=501) for rank in (0, 1, 2, 3, 4, 6, 7))
    put_log(run, steps() + caught + later + late, T + 1103)
    found = diagnose(run, Config(), at=T + 1200)
    assert (found.cause, found.ranks) == ("hang.rank_missing", (5,))


def test_what_another_run_left_in_the_folder_is_not_what_this_one_hangs_of(run: RunDir) -> None:
    put_log(run, steps() + traceback(3, "ValueError: bad"), T + 101, "older.log")
    newer = "".join(iteration(step, T + 7200 + step) for step in range(1, 101))
    late = "".join(timed_out(rank, T + 7901, seq=101) for rank in (0, 1, 2, 3, 4, 6, 7))
    put_log(run, newer + late, T + 7902, "newer.log")
    found = diagnose(run, Config(), at=T + 8000)
    assert (found.cause, found.ranks) == ("hang.rank_missing", (5,))


GSP = "NVRM: Xid (PCI:0000:07:00): 119, pid=1006, name=python, Timeout after 6s of waiting for RPC response"


@pytest.mark.parametrize(
    ("late_s", "cause", "named"), [(5, "hardware.xid", (6,)), (600, "hang.rank_died", (2,))]
)
def test_an_xid_long_after_a_rank_fell_is_no_cause(
    run: RunDir, late_s: int, cause: str, named: tuple[int, ...]
) -> None:
    ranks = Ranks(run, 8, hosts=2)
    ranks.start()
    ranks.steps(60)
    ranks.event("exception", [2], type="KeyError", message="'input_ids'")
    put_kernel_log(run, "n2", [(ranks.t + late_s, GSP)])
    found = diagnose(run, Config(), at=ranks.t + 700)
    assert (found.cause, found.ranks) == (cause, named)
    assert "hardware.xid" not in ruled_out(found)
    if late_s > 30:
        assert first_line(found).startswith("first cause: rank 2 on n1: KeyError")
        assert any(line.startswith("after it had fallen: GPU of rank 6") for line in found.evidence)


def test_an_xid_of_after_the_watchdogs_is_their_clearing_away(run: RunDir) -> None:
    ranks = Ranks(run, 8, hosts=2)
    ranks.start()
    ranks.steps(60)
    ranks.event("phase_start", phase="backward")
    put_log(run, "".join(timed_out(rank, ranks.t + 601, seq=900) for rank in range(8)), ranks.t + 602)
    put_kernel_log(run, "n2", [(ranks.t + 640, GSP)])
    found = diagnose(run, Config(), at=ranks.t + 800)
    assert (found.cause, found.ranks, found.hosts) == ("hang.fabric", (), ())


def test_a_launcher_that_tells_of_a_death_at_the_start_is_not_waited_for(run: RunDir) -> None:
    pids = {rank: 4000 + rank for rank in range(4)}
    text = traceback(2, "ModuleNotFoundError: No module named 'flash_attn'")
    put_log(run, text + agent_ends(T + 9, pids, root=2, code=1), T + 10)
    found = diagnose(run, Config(), at=T + 60)
    assert (found.state, found.cause, found.ranks) == ("starting", "hang.rank_died", (2,))


def test_a_launcher_that_begins_again_and_again_is_a_loop_before_any_limit(run: RunDir) -> None:
    text = ""
    for attempt in range(5):
        t = T + 60 * attempt
        begins = (
            f"I{stamp(t + 21)} 39 torch/distributed/elastic/agent/server/api.py:892] [default] Worker group "
        )
        text += traceback(2, "ValueError: no checkpoint") + begins
        text += f"FAILED. {4 - attempt}/5 attempts left; will restart worker group\n"
    put_log(run, steps(60) + text, T + 262)
    found = diagnose(run, Config(), at=T + 300)
    assert (found.cause, found.ranks) == ("restart_loop", (2,))
    assert first_line(found).startswith("first cause: rank 2: ValueError: no checkpoint")


def test_a_rank_that_is_restarted_once_is_waited_for(run: RunDir) -> None:
    begins = (
        f"I{stamp(T + 121)} 39 torch/distributed/elastic/agent/server/api.py:892] [default] Worker group "
    )
    text = (
        steps()
        + traceback(2, "ValueError: no")
        + begins
        + "FAILED. 2/3 attempts left; will restart worker group\n"
    )
    put_log(run, text, T + 122)
    found = diagnose(run, Config(), at=T + 150)
    assert (found.state, found.cause) == ("restarting", "none")


def test_a_loop_of_losses_that_are_no_numbers_is_told_as_that(run: RunDir) -> None:
    ranks = Ranks(run, 4)
    ranks.start()
    ranks.steps(50)
    for attempt in range(1, 6):
        ranks.steps(3, loss="NaN")
        ranks.event("exception", type="RuntimeError", message="the loss is NaN, giving up")
        if attempt < 5:
            ranks.t += 30
            ranks.start(attempt, 30)
            ranks.steps(20)
    found = diagnose(run, Config(), at=ranks.t + 60)
    assert (found.state, found.cause, found.ranks, found.since_step) == ("stopped", "numeric.nan", (), 51)
    assert any("the same data position again, 3,264: it is the data" in line for line in found.evidence)


def test_a_run_that_had_stood_before_the_scheduler_ended_it_says_so(run: RunDir) -> None:
    ranks = Ranks(run, 4)
    ranks.start()
    ranks.steps(60)
    ranks.event("phase_start", phase="backward")
    ranks.t += 1000
    ranks.event("signal", number=15)
    found = diagnose(run, Config(), at=ranks.t + 400)
    assert (found.cause, found.ranks) == ("unknown", ())
    assert any(line.startswith("it had stood still for longer than its limit") for line in found.evidence)


def raised(run: RunDir, ranks: list[int]) -> Ranks:
    made = Ranks(run, 4)
    made.start()
    made.steps(60)
    for rank in ranks:
        made.line(rank, late_s=0.2, event="exception", type="ValueError", message="bad batch in shard 17")
    return made


def test_who_raised_is_told_before_the_limit_of_a_stall(run: RunDir) -> None:
    made = raised(run, [2])
    found = diagnose(run, Config(), at=made.t + 25)
    assert (found.state, found.cause, found.ranks) == ("running", "hang.rank_died", (2,))
    assert "rank 2 on n1: ValueError: bad batch in shard 17" in first_line(found)


def test_a_moment_after_a_rank_raised_the_others_may_yet_tell_the_same(run: RunDir) -> None:
    made = raised(run, [2])
    assert diagnose(run, Config(), at=made.t + 5).ranks == ()
    assert diagnose(run, Config(), at=raised(run, [0, 1, 2, 3]).t + 25).ranks == ()


def test_who_went_on_after_it_raised_has_not_fallen(run: RunDir) -> None:
    made = raised(run, [2])
    made.steps(30)
    assert diagnose(run, Config(), at=made.t + 5).cause == "none"


@pytest.mark.parametrize("steps_since", [0, 3])
def test_a_run_that_was_restarted_says_what_its_last_attempt_ended_by(run: RunDir, steps_since: int) -> None:
    made = raised(run, [2])
    made.t += 20
    made.start(1, 50)
    made.steps(steps_since)
    found = diagnose(run, Config(), at=made.t + 10)
    assert (found.state, found.ranks) == ("recovering" if steps_since else "restarting", ())
    assert found.evidence[0].startswith("attempt 0 ended: rank 2 on n1: ValueError: bad batch in shard 17")
