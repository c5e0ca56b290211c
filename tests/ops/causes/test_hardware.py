"""A GPU that failed goes before the hang it made; a fault elsewhere accuses nobody."""

from __future__ import annotations

import json
import os
import pickle

import pytest

from ops.test_diagnose import gloo_entry, put_dumps
from train_ledger.chaos import fleet
from train_ledger.config import Config
from train_ledger.ops import diagnose

CULPRIT = 5


@pytest.fixture
def made(tmp_path):
    return fleet.write(tmp_path / "run", fault="process_gone", culprit=CULPRIT, hosts=2, ranks_per_host=4)


def kernel(made, *lines, host="node001"):
    """Kernel lines of (seconds after the fault, bus number, code, text)."""
    made.run_dir.hardware.mkdir(exist_ok=True)
    text = "".join(
        f"{made.fault_t + after_s:.6f} {host} kernel: NVRM: Xid (PCI:0000:{bus:02x}:00): {code}, "
        f"pid='<unknown>', name=<unknown>, {said}\n"
        for after_s, bus, code, said in lines
    )
    (made.run_dir.hardware / f"{host}.kern.log").write_text(text)


def found(made):
    return diagnose(made.run_dir, Config(), at=made.t + 5)


GONE = (1.5, 0x11, 79, "GPU has fallen off the bus.")
"""Of local rank 1 of node001: rank 5."""


def test_an_xid_of_the_culprits_gpu_is_the_cause(made):
    put_dumps(made, behind={CULPRIT})
    kernel(made, GONE)
    told = found(made)
    assert (told.cause, told.ranks, told.hosts, told.confidence) == (
        "hardware.xid",
        (5,),
        ("node001",),
        "high",
    )
    assert len(told.gpus) == 1
    assert told.evidence[0].startswith("GPU of rank 5 (0000:11:00 on node001): XID 79, fell off the bus")
    assert "nvidia-smi -i 0000:11:00" in told.next[0].command


def test_it_wins_over_a_hang_in_which_all_came(made):
    put_dumps(made, behind=set())
    kernel(made, GONE)
    assert (found(made).cause, found(made).ranks) == ("hardware.xid", (5,))


def test_it_names_its_rank_though_another_was_first_seen_to_be_missing(made):
    put_dumps(made, behind={2})
    kernel(made, GONE)
    assert (found(made).cause, found(made).ranks, found(made).confidence) == ("hardware.xid", (5,), "medium")


@pytest.mark.parametrize(
    ("line", "host"),
    [
        (GONE, "node777"),
        ((1.5, 0x99, 79, "GPU has fallen off the bus."), "node001"),
        ((1.5, 0x11, 43, "Ch 00000008"), "node001"),
        ((1.5, 0x11, 45, "Ch 00000008"), "node001"),
        ((-3600, 0x11, 79, "GPU has fallen off the bus."), "node001"),
        ((1.5, 0x11, 149, "NETIR_BER_EVENT Nonfatal XC0"), "node001"),
    ],
    ids=["another host", "another GPU", "of a program", "a consequence", "an hour before", "not fatal"],
)
def test_what_is_no_such_fault_changes_nothing(made, line, host):
    put_dumps(made, behind={CULPRIT})
    kernel(made, line, host=host)
    assert (found(made).cause, found(made).ranks) == ("hang.rank_missing", (5,))


def test_faults_of_strangers_are_told_and_accuse_nobody(made):
    kernel(made, GONE, host="node777")
    told = found(made)
    assert (told.cause, told.ranks) == ("unknown", ())
    assert any("XID 79 of 0000:11:00 on node777" in line for line in told.not_observed)


def test_kernel_logs_without_a_fault_rule_it_out(made):
    put_dumps(made, behind={CULPRIT})
    kernel(made)
    assert "hardware.xid" in [it.cause for it in found(made).ruled_out]


def test_what_the_kernel_said_later_was_not_known_then(made):
    put_dumps(made, behind={CULPRIT})
    kernel(made, (10_000, 0x11, 79, "GPU has fallen off the bus."))
    assert found(made).cause == "hang.rank_missing"


def test_a_rank_that_the_kernel_killed_for_memory_died(made):
    put_dumps(made, behind={CULPRIT})
    pid = json.loads(made.run_dir.signals_of(CULPRIT).read_text().splitlines()[0])["pid"]
    made.run_dir.hardware.mkdir()
    line = (
        f"{made.fault_t + 1:.3f} node001 kernel: Out of memory: Killed process {pid} (python3) total-vm:1kB\n"
    )
    (made.run_dir.hardware / "node001.kern.log").write_text(line)
    told = found(made)
    assert (told.cause, told.ranks) == ("hang.rank_died", (5,))
    assert told.details.findings[0].cause_suspected.startswith("the kernel killed its process")


def test_what_the_kernel_killed_before_the_last_step_was_no_rank(made):
    put_dumps(made, behind={CULPRIT})
    pid = json.loads(made.run_dir.signals_of(2).read_text().splitlines()[0])["pid"]
    made.run_dir.hardware.mkdir()
    line = (
        f"{made.fault_t - 3600:.3f} node000 kernel: Out of memory: Killed process {pid} (cc1) total-vm:1kB\n"
    )
    (made.run_dir.hardware / "node000.kern.log").write_text(line)
    told = found(made)
    assert (told.cause, told.ranks) == ("hang.rank_missing", (5,))
    assert any(f"process {pid} killed for want of memory" in it for it in told.not_observed)


def test_the_runs_own_logs_are_read(made):
    log = made.run_dir.logs / "attempt_0" / "5" / "stderr.log"
    log.parent.mkdir(parents=True)
    log.write_text(
        '[rank5]: Traceback (most recent call last):\n[rank5]:   File "t.py", line 8, in f\n'
        "[rank5]: ValueError: bad\n"
    )
    os.utime(log, (made.t, made.t))
    put_dumps(made, behind={CULPRIT})
    told = found(made)
    assert (told.cause, told.ranks) == ("hang.rank_died", (5,))
    assert any("ValueError: bad (at t.py:8)" in line for line in told.evidence)


def test_a_mismatch_is_reproduced_by_the_runs_own_command(made):
    made.run_dir.merge_run({"restart_command": "torchrun --nproc-per-node 4 train.py"})
    put_dumps(made, behind=set())
    dump = made.run_dir.comm_trace_of(3)
    content = pickle.loads(dump.read_bytes())
    content["entries"][-1] = gloo_entry(7, "broadcast", done=False)
    dump.write_bytes(pickle.dumps(content, protocol=2))
    os.utime(dump, (made.t, made.t))
    told = found(made)
    assert (told.cause, told.ranks) == ("hang.mismatch", (3,))
    (line,) = [it.command for it in told.next if "DETAIL" in it.command]
    assert line.endswith("torchrun --nproc-per-node=8 train.py")


def test_one_crash_that_writes_many_lines_is_one_fault(made):
    """XID 31 is a program's, unless the same GPU has it again another time."""
    put_dumps(made, behind={CULPRIT})
    kernel(made, *((1.5 + line / 100, 0x11, 31, "MMU fault") for line in range(50)))
    assert found(made).cause == "hang.rank_missing"
    kernel(made, (-7200, 0x11, 31, "MMU fault"), (1.5, 0x11, 31, "MMU fault"))
    assert (found(made).cause, found(made).ranks) == ("hardware.xid", (5,))


def test_a_fault_that_carries_no_time_is_told_and_is_no_cause(made):
    put_dumps(made, behind={CULPRIT})
    made.run_dir.hardware.mkdir()
    line = "[12345.678901] NVRM: Xid (PCI:0000:11:00): 79, GPU has fallen off the bus.\n"
    (made.run_dir.hardware / "node001.kern.log").write_text(line)
    told = found(made)
    assert (told.cause, told.ranks) == ("hang.rank_missing", (5,))
    assert any("XID 79" in it for it in told.evidence)


def reading(made, rank, t, **more):
    host, local = divmod(rank, 4)
    return {
        "t": t,
        "host": f"node{host:03}",
        "gpu": local,
        "pci": f"00000000:{0x10 + local:02X}:00.0",
        "DCGM_FI_DEV_SM_CLOCK": 1980,
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": 0,
        **more,
    }


def put_readings(made, of_culprit):
    """Looks at all GPUs, every ten seconds until ten minutes after the fault; `of_culprit(t)` is its own."""
    made.run_dir.hardware.mkdir(exist_ok=True)
    times = [made.fault_t + 10.0 * turn for turn in range(-20, 60)]
    for host in range(2):
        rows = []
        for t in times:
            for rank in range(4 * host, 4 * host + 4):
                own = of_culprit(t) if rank == CULPRIT else {}
                if own is not None:
                    rows.append(json.dumps(reading(made, rank, t, **own)))
        (made.run_dir.hardware / f"node{host:03}.jsonl").write_text("\n".join(rows) + "\n")


@pytest.mark.parametrize("hours", [0, 8, 2000])
@pytest.mark.parametrize(
    ("cause", "of_culprit"),
    [
        ("hardware.ecc", lambda since_s: {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": 1} if since_s > 0 else {}),
        ("hardware.gpu_lost", lambda since_s: None if since_s > 0 else {}),
    ],
)
def test_what_failed_when_the_steps_ended_is_the_cause_however_late_it_is_asked(
    made, cause, of_culprit, hours
):
    put_dumps(made, behind={CULPRIT})
    put_readings(made, lambda t: of_culprit(t - made.fault_t))
    told = diagnose(made.run_dir, Config(), at=made.fault_t + 600 + hours * 3600)
    assert (told.cause, told.ranks) == (cause, (CULPRIT,))


def test_what_fails_long_after_the_steps_ended_is_not_why_they_did(made):
    kernel(made, (3600, 0x11, 79, "GPU has fallen off the bus."))
    told = diagnose(made.run_dir, Config(), at=made.fault_t + 7200)
    assert (told.cause, told.ranks) == ("unknown", ())
    assert any(line.startswith("after it had fallen: GPU of rank 5") for line in told.evidence)
