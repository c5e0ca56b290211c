"""What is said of one rank of a made run."""

from __future__ import annotations

import json
import os
import time

import pytest

from hang.recorder import T0_NS, Job
from train_ledger.chaos import fleet
from train_ledger.config import Config
from train_ledger.ledger import Journal
from train_ledger.ops import observe
from train_ledger.ops.rank import RankError, exit_code_of, look_at, report_of_rank
from train_ledger.render import as_text
from train_ledger.run_dir import RunDir

STACK = """Thread 100005 (active): "MainThread"
    _next_data (torch/utils/data/dataloader.py:1328)
    read_batch (/job/data.py:41)
    main (/job/train.py:88)
"""


@pytest.fixture(scope="module")
def hung(tmp_path_factory):
    """Sixteen ranks on two hosts; rank 5 never comes out of its loader."""
    return fleet.write(tmp_path_factory.mktemp("hung") / "r42", fault="hang", culprit=5)


@pytest.fixture
def own(tmp_path):
    """The same, to be written into."""
    return fleet.write(tmp_path / "r42", fault="hang", culprit=5)


def test_a_rank_in_its_loader_is_told_with_its_place_step_and_phase(hung):
    told = look_at(hung.run_dir, Config(), 5, at=hung.t)
    assert (told.doing, told.state, told.step, told.ahead, told.phase) == ("stands", "stalled", 50, 0, "data")
    assert told.phase_since_t == pytest.approx(hung.fault_t, abs=0.1)
    where = told.where
    assert (where.host, where.gpu, where.local_rank, where.pid) == ("node000", 5, 5, 100_005)
    assert where.uuid.startswith("GPU-")
    assert where.pci == "00000000:15:00.0"
    assert told.verdict.startswith("rank 5 on node000, GPU 5: stands: step 50 completed 2 min")
    assert exit_code_of(told) == 1


def test_all_others_wait_for_it_by_their_own_lines(hung):
    told = look_at(hung.run_dir, Config(), 5, at=hung.t)
    assert told.waiting.ranks == tuple(rank for rank in range(16) if rank != 5)
    assert "in a phase with collectives" in told.waiting.by


def test_nobody_is_said_to_wait_for_a_victim(hung):
    told = look_at(hung.run_dir, Config(), 6, at=hung.t)
    assert (told.doing, told.phase, told.waiting) == ("stands", "backward", None)
    assert any("who waits for it" in line for line in told.not_observed)


def test_the_moment_before_it_hung(hung):
    told = look_at(hung.run_dir, Config(), 5, at=hung.fault_t - 10)
    assert (told.doing, told.state, told.phase) == ("steps", "running", None)
    assert 38 <= told.step <= 42
    assert all(json.loads(line)["t"] <= hung.fault_t - 10 for line in told.lines)
    assert (exit_code_of(told), told.next[-1].command.split()[:2]) == (0, ["train-ledger", "ask"])


def test_its_last_lines_are_what_it_wrote(hung):
    written = hung.run_dir.signals_of(5).read_text().splitlines()
    assert list(look_at(hung.run_dir, Config(), 5, at=hung.t).lines) == written[-6:]


def test_what_it_did_not_see_is_said_and_how_to_get_it(hung):
    told = look_at(hung.run_dir, Config(), 5, at=hung.t)
    words = ("stack", "last collective", "hardware", "rack and switch port", "logs")
    for word in words:
        assert any(line.startswith(word) for line in told.not_observed), word
    commands = [it.command for it in told.next]
    assert commands[0] == "ssh node000 py-spy dump --pid 100005"
    assert f"train-ledger dump {hung.run_dir.path}" in commands


def test_a_killed_rank_a_raised_one_and_one_that_a_signal_ends(tmp_path):
    raised = fleet.write(tmp_path / "raised", fault="exception", culprit=3)
    told = look_at(raised.run_dir, Config(), 3, at=raised.t)
    assert (told.doing, exit_code_of(told)) == ("raised", 1)
    assert "raised RuntimeError: CUDA error: an illegal memory access" in told.verdict
    assert not any("py-spy" in it.command for it in told.next), "there is no process to look at"
    killed = fleet.write(tmp_path / "killed", fault="killed")
    assert "was sent SIGTERM" in look_at(killed.run_dir, Config(), 7, at=killed.t + 1).verdict


def test_a_rank_of_a_finished_run_is_fine(tmp_path):
    made = fleet.write(tmp_path / "run")
    told = look_at(made.run_dir, Config(), 15, at=made.t + 10)
    assert (told.doing, told.state, exit_code_of(told), told.next) == ("ended", "finished", 0, ())


def test_after_a_restart_it_is_told_of_the_new_attempt_however_long_that_is(tmp_path):
    made = fleet.write(
        tmp_path / "run", fault="restart", steps=8000, fault_step=4000, hosts=1, ranks_per_host=2
    )
    told = look_at(made.run_dir, Config(), 1, at=made.t)
    assert (told.attempt, told.state, told.where.pid) == (1, "recovering", 101_001)
    made.run_dir.ranks_jsonl.unlink()
    assert look_at(made.run_dir, Config(), 1, at=made.t).where.pid == 101_001


def test_the_clock_of_its_host_is_taken_off(tmp_path):
    made = fleet.write(tmp_path / "run", fault="hang", culprit=12, clock_offsets_s={"node001": 300.0})
    told = look_at(made.run_dir, Config(), 12, at=made.t)
    assert told.phase_since_t == pytest.approx(made.fault_t, abs=1.0)
    before = look_at(made.run_dir, Config(), 12, at=made.fault_t - 10)
    assert (before.doing, before.phase) == ("steps", None)
    assert 38 <= before.step <= 42


def test_a_rank_that_has_not_completed_what_others_have_is_behind(own):
    path = own.run_dir.signals_of(5)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-4]) + "\n")
    told = look_at(own.run_dir, Config(), 5, at=own.t)
    assert (told.doing, told.ahead) == ("behind", -3)
    assert "3 steps behind the run (step 50)" in told.verdict
    assert told.waiting.by == "their own lines: they completed a later step"


def _old(path, t):
    os.utime(path, (t, t))
    return path


def test_its_stack_and_its_last_collective_are_those_of_its_own_files(own):
    run_dir = own.run_dir
    run_dir.stacks().mkdir()
    stack = run_dir.stacks() / "rank_5.txt"
    stack.write_text(STACK)
    (run_dir.stacks() / "rank_6.txt").write_text("garbage")
    job = Job(16)
    job.issue(range(16), done=True)
    job.issue([rank for rank in range(16) if rank != 5], op="all_gather")
    for file in [stack, *job.write(run_dir.comm_traces()).iterdir()]:
        _old(file, own.t - 20)
    told = look_at(run_dir, Config(), 5, at=own.t)
    assert told.stack.frames[-1] == "train.py:88 main"
    assert (told.collective.done, told.collective.seq) == (True, 1)
    other = look_at(run_dir, Config(), 6, at=own.t).collective
    assert (other.op, other.seq, other.done, other.state) == ("all_gather", 2, False, "scheduled")
    assert other.frame == "train.py:88 train_step"
    assert other.others == tuple(rank for rank in range(16) if rank != 6)
    assert other.issued_t > T0_NS / 1e9
    assert look_at(run_dir, Config(), 5, at=own.t - 60).stack is None, "it was not there then"
    text = as_text(report_of_rank(told))
    assert "dataloader.py:1328" in text
    assert "finished last" in text


def test_a_dump_that_is_garbage_is_said(own):
    own.run_dir.comm_traces().mkdir()
    file = own.run_dir.comm_trace_of(5)
    file.write_bytes(b"garbage")
    _old(file, own.t - 20)
    told = look_at(own.run_dir, Config(), 5, at=own.t)
    assert told.collective is None
    assert any("rank_5" in line for line in told.not_observed)


def test_its_log_is_the_one_with_its_rank_or_its_place_on_its_host(own):
    logs = own.run_dir.logs
    for host in ("node000", "node001"):
        folder = logs / host / "none_abc" / "attempt_0" / "5"
        folder.mkdir(parents=True)
        (folder / "stderr.log").write_text(f"hello from {host}\nloading \x1b[31mbatch\x1b[0m 7\n")
        _old(folder / "stderr.log", own.t - 5)
    told = look_at(own.run_dir, Config(), 13, at=own.t)
    assert told.log.lines[0] == "hello from node001"
    assert "\x1b" not in as_text(report_of_rank(told))
    named = logs / "rank_13.log"
    named.write_text("I am 13\n")
    _old(named, own.t - 5)
    assert look_at(own.run_dir, Config(), 13, at=own.t).log.lines == ("I am 13",)


def test_a_local_rank_of_nobody_knows_which_host_is_not_taken_for_its_own(own):
    for run in ("none_a", "none_b"):
        folder = own.run_dir.logs / run / "attempt_0" / "5"
        folder.mkdir(parents=True)
        (folder / "stderr.log").write_text("who?\n")
    told = look_at(own.run_dir, Config(), 5, at=own.t)
    assert told.log is None
    assert any("2 folders have a local rank 5" in line for line in told.not_observed)


def test_what_is_wrong_with_its_gpu_is_said(own):
    own.run_dir.hardware.mkdir()
    xid = f"{own.t - 30:.6f} node000 kernel: NVRM: Xid (PCI:0000:15:00): 79, GPU has fallen off the bus.\n"
    (own.run_dir.hardware / "node000.kern.log").write_text(xid)
    reading = {"t": own.t - 60, "host": "node000", "gpu": 5, "by": "dcgm", "pci": "00000000:15:00.0"}
    line = json.dumps({**reading, "DCGM_FI_DEV_SM_CLOCK": 1980, "DCGM_FI_DEV_GPU_TEMP": 61})
    (own.run_dir.hardware / "node000.jsonl").write_text(line + "\n")
    told = look_at(own.run_dir, Config(), 5, at=own.t)
    assert told.gpu.values["DCGM_FI_DEV_SM_CLOCK"] == 1980
    assert any(fault.startswith("XID 79") for fault in told.gpu.faults)
    assert look_at(own.run_dir, Config(), 4, at=own.t).gpu is None


def test_rack_and_switch_port_are_those_of_ranks_jsonl(own):
    lines = [json.loads(line) for line in own.run_dir.ranks_jsonl.read_text().splitlines()]
    told = [{**line, "rack": "R12", "switch_port": 31} for line in lines]
    own.run_dir.ranks_jsonl.write_text("".join(json.dumps(line) + "\n" for line in told))
    where = look_at(own.run_dir, Config(), 5, at=own.t).where
    assert (where.rack, where.switch_port) == ("R12", "31")


def test_the_keepers_verdict_says_who_waits_where_the_run_stands_there_still(own):
    own.run_dir.ledger.mkdir()
    verdict = {"t": own.t - 10, "kind": "verdict", "incident": "i", "place": [0, 50]}
    diagnosis = {"details": {"victims_of": {"5": [0, 1, 2]}}}
    journal = Journal(own.run_dir.journal)
    journal.append({**verdict, "diagnosis": diagnosis})
    waiting = look_at(own.run_dir, Config(), 5, at=own.t).waiting
    assert (waiting.ranks, waiting.by.startswith("the keeper's verdict")) == ((0, 1, 2), True)
    journal.append({**verdict, "t": own.t - 5, "place": [0, 40], "diagnosis": diagnosis})
    journal.close()
    assert look_at(own.run_dir, Config(), 5, at=own.t).waiting.by.startswith("their own lines")


def test_a_rank_that_the_run_does_not_have_is_refused_with_those_that_it_has(hung):
    with pytest.raises(RankError, match=r"rank 16: .* world_size is 16 \(0 to 15\), known are ranks 0-15"):
        look_at(hung.run_dir, Config(), 16, at=hung.t)


def test_a_rank_that_never_wrote_is_silent(own):
    own.run_dir.signals_of(5).unlink()
    told = look_at(own.run_dir, Config(), 5, at=own.t)
    assert (told.doing, exit_code_of(told)) == ("silent", 3)
    assert told.where.host == "node000", "ranks.jsonl knows"
    assert "nothing that it wrote" in told.verdict


def test_lines_that_are_none_hurt_nobody(own):
    with own.run_dir.signals_of(5).open("ab") as file:
        file.write(b"\xff\xfe garbage\n" + b"[" * 5000 + b'\n{"t": 1e400}\n')
    told = look_at(own.run_dir, Config(), 5, at=own.t)
    assert (told.step, told.phase) == (50, "data")


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    path = tmp_path_factory.mktemp("big") / "r1024"
    return fleet.write(path, hosts=128, steps=120, fault="hang", culprit=517)


def test_rank_517_of_1024(big):
    began_s = time.process_time()
    told = look_at(big.run_dir, Config(), 517, at=big.t)
    took_s = time.process_time() - began_s
    assert (told.where.host, told.where.gpu, told.phase, told.step) == ("node064", 5, "data", 60)
    assert len(told.waiting.ranks) == 1023
    assert took_s < 15.0, "seconds, not minutes"


def test_little_is_read_however_long_the_run_is(tmp_path, monkeypatch):
    from train_ledger.slow.table.files import RankFiles

    read = []
    plain = RankFiles.read

    def counted(self, start, end):
        data = plain(self, start, end)
        read.append(len(data))
        return data

    monkeypatch.setattr(RankFiles, "read", counted)
    made = fleet.write(tmp_path / "run", hosts=1, steps=5000)
    look_at(made.run_dir, Config(), 5, at=made.t)
    assert sum(read) < 1_000_000 < sum(path.stat().st_size for _, path in made.run_dir.signal_files())


@pytest.mark.parametrize("fault", [str(it) for it in fleet.FAULTS])
def test_ends_say_the_same_as_the_whole_files(tmp_path, fault):
    named = None if fault == "None" else fault
    made = fleet.write(tmp_path / "run", fault=named, culprit=5, hosts=1, steps=150, checkpoint_every=40)
    for at in (made.t + 1.0, made.t - 60.0):
        whole = observe(made.run_dir, Config(), at).state
        for rank in (0, 5):
            told, known = look_at(made.run_dir, Config(), rank, at=at), whole.ranks.get(rank)
            assert (told.state, told.run_step) == (whole.state, whole.step)
            if known is None:
                assert told.doing == "silent"
                continue
            for name in ("step", "phase", "exception", "signal", "attempt"):
                assert getattr(told, name) == getattr(known, name), name
            for name in ("step_t", "heard_t", "phase_since_t"):
                assert getattr(told, name) == pytest.approx(getattr(known, name), abs=0.01), name
            assert (told.where.host, told.where.pid) == (known.host, known.pid)


def _of_ranks(run, last, *, until):
    """Ranks whose steps of 2 s end at `last` of each, as known at `until`."""
    run.signals.mkdir(parents=True)
    for rank, end in last.items():
        lines = [{"t": 1e9, "event": "run_start", "rank": rank, "host": f"n{rank}", "world_size": len(last)}]
        lines += [{"t": 1e9 + 2 * step, "step": step, "rank": rank} for step in range(1, end + 1)]
        run.signals_of(rank).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return look_at(run, Config(), 1, at=1e9 + until)


def test_a_rank_whose_lines_do_not_arrive_while_the_run_goes_on_is_not_said_to_go_on(tmp_path):
    told = _of_ranks(RunDir(tmp_path), {0: 600, 1: 98, 2: 600}, until=1201)
    assert (told.doing, told.state, exit_code_of(told)) == ("unheard", "running", 3)
    assert "its lines do not arrive any more: step 98 completed 16 min" in told.verdict
    assert "502 steps behind the run (step 600), which goes on" in told.verdict


def test_a_rank_that_writes_somewhat_later_than_the_others_goes_on(tmp_path):
    told = _of_ranks(RunDir(tmp_path), {0: 600, 1: 580, 2: 600}, until=1201)
    assert (told.doing, exit_code_of(told)) == ("steps", 0)


def test_a_rank_that_was_killed_is_gone_by_what_its_launcher_says(tmp_path):
    made = fleet.write(tmp_path / "r42", fault="process_gone", culprit=5, hosts=2, ranks_per_host=4)
    assert look_at(made.run_dir, Config(), 5, at=made.t).doing == "stands"
    t = time.strftime("%Y-%m-%d_%H:%M:%S", time.localtime(made.fault_t + 2))
    made.run_dir.logs.mkdir(exist_ok=True)
    (made.run_dir.logs / "torchrun.log").write_text(
        "train.py FAILED\nRoot Cause (first observed failure):\n[0]:\n"
        f"  time      : {t}\n  host      : node001\n  rank      : 5 (local_rank: 1)\n"
        "  exitcode  : -9 (pid: 100005)  (SIGKILL)\n  error_file: <N/A>\n"
        "  traceback : Signal 9 (SIGKILL) received by PID 100005\n"
    )
    told = look_at(made.run_dir, Config(), 5, at=made.t)
    assert (told.doing, told.signal, told.gone_t) == ("gone", 9, pytest.approx(made.fault_t + 2, abs=1.5))
    assert "its process is gone (SIGKILL)" in told.verdict
    assert not any("py-spy" in it.command for it in told.next)
    assert look_at(made.run_dir, Config(), 4, at=made.t).doing == "stands"
    assert look_at(made.run_dir, Config(), 5, at=made.fault_t - 10).doing == "steps"
