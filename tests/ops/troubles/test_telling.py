"""Who is spoken of: a loader's process is its rank's, a stranger's is nobody's."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ops.cascades import START_T, Ranks, iteration, put_kernel_log, put_log, timed_out, traceback
from train_ledger.answer import HangAnswer
from train_ledger.config import Config
from train_ledger.ops import diagnose
from train_ledger.render.text import as_text
from train_ledger.run_dir import RunDir

T = START_T
STEPS = "".join(iteration(step, T + step) for step in range(1, 101))


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    (tmp_path / "r42").mkdir()
    return RunDir(tmp_path / "r42")


def killed(pid: int, name: str) -> str:
    return (
        f"Memory cgroup out of memory: Killed process {pid} ({name}) total-vm:9kB, anon-rss:6kB, file-rss:0kB"
    )


def waiting(run: RunDir, *others: int) -> Ranks:
    ranks = Ranks(run, 8, hosts=2)
    ranks.start()
    ranks.steps(60)
    ranks.event("phase_start", [rank for rank in range(8) if rank not in others], phase="backward")
    return ranks


def test_a_loaders_process_that_the_kernel_killed_is_its_ranks(run: RunDir) -> None:
    ranks = waiting(run, 6)
    put_kernel_log(run, "n2", [(ranks.t + 1, killed(51234, "pt_data_worker"))])
    lost = "DataLoader worker (pid 51234) is killed by signal: Killed. "
    ranks.line(6, late_s=2, event="exception", type="RuntimeError", message=lost)
    found = diagnose(run, Config(), at=ranks.t + 300)
    assert (found.cause, found.ranks, found.hosts) == ("hang.rank_died", (6,), ("n2",))
    assert found.evidence[0].startswith("first cause: rank 6 on n2: the kernel killed process 51234")
    assert not any("51234" in line for line in found.not_observed)
    assert not any(it.cause.startswith("rank 6 ") for it in found.ruled_out)


@pytest.mark.parametrize("name", ["jupyter-lab", "python3"])
def test_a_process_that_is_no_ranks_accuses_no_host(run: RunDir, name: str) -> None:
    """All ranks of the host have told which processes they are."""
    ranks = waiting(run)
    put_kernel_log(run, "n1", [(ranks.t + 1, killed(7777, name))])
    found = diagnose(run, Config(), at=ranks.t + 300)
    assert (found.cause, found.ranks, found.hosts) == ("unknown", (), ())
    assert any(f"process 7777 ({name})" in line for line in found.evidence)


def test_a_job_that_a_nodes_failure_ended_accuses_the_node_and_not_the_one_that_says_so(run: RunDir) -> None:
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(T + 220))
    text = "srun: error: Node failure on n5\n"
    text += f"slurmstepd: error: *** STEP 8.0 ON n3 CANCELLED AT {at} DUE TO NODE FAILURE ***\n"
    put_log(run, STEPS + text, T + 221)
    found = diagnose(run, Config(), at=T + 400)
    assert (found.cause, found.hosts) == ("hang.rank_died", ("n5",))


def test_of_two_lines_of_one_end_the_one_with_its_host_is_the_cause(run: RunDir) -> None:
    text = (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some step tasks have been OOM Killed.\n"
    )
    put_log(run, STEPS + text + "srun: error: n4: task 6: Out Of Memory\n", T + 106)
    found = diagnose(run, Config(), at=T + 400)
    assert (found.cause, found.hosts) == ("hang.rank_died", ("n4",))


def test_tracebacks_of_a_signal_that_the_scheduler_sent_are_no_deaths(run: RunDir) -> None:
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(T + 101))
    text = f"slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT {at} DUE TO PREEMPTION ***\n"
    got = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4 got signal: 15"
    text += "".join(traceback(rank, got) for rank in range(8))
    text += traceback(3, "RuntimeError: DataLoader worker (pid 77) is killed by signal: Terminated. ")
    put_log(run, STEPS + text, T + 102)
    found = diagnose(run, Config(), at=T + 400)
    assert (found.cause, found.ranks) == ("unknown", ())
    assert "PREEMPTION" in found.evidence[0]


def test_an_error_of_a_network_adapter_is_of_the_fabric_and_of_no_rank(run: RunDir) -> None:
    put_log(run, STEPS + "".join(timed_out(rank, T + 702, seq=101) for rank in range(4)), T + 703, "n1.log")
    error = (
        "n2:44:412 [0] transport/net_ib.cc:1298 NCCL WARN NET/IB: Got completion from peer 10.1.0.3<41234> "
        "with status=12 opcode=0 len=0 vendor err 129 (Recv) hca mlx5_2\n"
    )
    lost = (
        "torch.distributed.DistBackendError: NCCL error, remote process exited or there was a network error"
    )
    put_log(run, error + traceback(4, lost), T + 120, "n2.log")
    found = diagnose(run, Config(), at=T + 800)
    assert (found.cause, found.ranks, found.hosts) == ("hang.fabric", (), ())
    assert found.evidence[0].startswith("first sign: n2: NET/IB: Got completion")
    assert "rank 4 never came" not in as_text(found)


def test_an_exception_just_before_the_stall_that_steps_follow_is_no_death(run: RunDir) -> None:
    """Within the slack that clocks get, yet the same log tells of more steps behind it."""
    text = "".join(iteration(step, T + step) for step in range(1, 81))
    text += traceback(2, "TimeoutError: read timed out; retrying (1/5)")
    text += "".join(iteration(step, T + step) for step in range(81, 101))
    put_log(run, text, T + 101)
    found = diagnose(run, Config(), at=T + 400)
    assert (found.cause, found.ranks) == ("unknown", ())


def test_an_exception_that_one_step_follows_may_well_be_a_death(run: RunDir) -> None:
    text = STEPS + traceback(2, "ValueError: bad sample") + iteration(101, T + 101)
    put_log(run, text, T + 102)
    found = diagnose(run, Config(), at=T + 400)
    assert (found.cause, found.ranks) == ("hang.rank_died", (2,))


def test_a_save_that_is_open_beyond_its_limit_does_not_end(run: RunDir) -> None:
    ranks = waiting(run, *range(8))
    ranks.event("phase_start", phase="checkpoint_save")
    ranks.event("ckpt_start", [0])
    assert diagnose(run, Config(), at=ranks.t + 300).cause == "none"
    found = diagnose(run, Config(), at=ranks.t + 1500)
    assert (found.cause, found.ranks, found.confidence) == ("checkpoint_failing", (), "medium")


def test_what_all_ranks_ran_into_is_told_in_few_lines_and_suspects_no_rank(run: RunDir) -> None:
    ranks = waiting(run, *range(8))
    ranks.event("exception", type="OutOfMemoryError", message="CUDA out of memory. Tried to allocate 2 GiB")
    found = diagnose(run, Config(), at=ranks.t + 300)
    assert (found.cause, found.ranks) == ("hang.rank_died", ())
    assert as_text(found).count("CUDA out of memory") == 1
    assert "the others did not" not in as_text(found)


def test_stacks_are_advised_of_this_run_and_where_nobody_is_named(run: RunDir) -> None:
    ranks = waiting(run)
    why = "no rank is named: who stands where in its code"
    found = diagnose(run, Config(), at=ranks.t + 300)
    assert isinstance(found.details, HangAnswer)
    assert [it.command for it in found.details.next if it.why == why] == [
        f"train-ledger stacks {run.path} --launcher ssh"  # whose ranks are on other hosts than this
    ]
    ranks.event("phase_start", [5], phase="data")
    found = diagnose(run, Config(), at=ranks.t + 300)
    assert isinstance(found.details, HangAnswer)
    assert found.ranks == (5,)
    assert not [it for it in found.details.next if it.why == why]


def test_stacks_of_a_run_of_this_host_alone_need_no_launcher(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("train_ledger.ops.answered.socket.gethostname", lambda: "n1")
    ranks = Ranks(run, 4, hosts=1)
    ranks.start()
    ranks.steps(60)
    ranks.event("phase_start", phase="backward")
    found = diagnose(run, Config(), at=ranks.t + 300)
    assert isinstance(found.details, HangAnswer)
    assert f"train-ledger stacks {run.path}" in [it.command for it in found.details.next]


def test_of_a_run_whose_processes_no_file_tells_the_stacks_are_of_this_host(run: RunDir) -> None:
    put_log(run, STEPS, T + 101)
    found = diagnose(run, Config(), at=T + 400)
    assert isinstance(found.details, HangAnswer)
    assert "train-ledger stacks" in [it.command for it in found.details.next]


def test_ranks_that_never_wrote_a_line_are_told_by_their_numbers(run: RunDir) -> None:
    ranks = waiting(run)
    run.signals_of(7).unlink()
    found = diagnose(run, Config(), at=ranks.t + 300)
    assert "signals of 1 of 8 ranks: rank 7" in found.not_observed
