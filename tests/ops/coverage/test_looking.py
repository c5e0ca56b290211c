"""What is said of the signals of a made run."""

from __future__ import annotations

import json
import os
import socket

import pytest

from train_ledger.chaos import fleet
from train_ledger.config import Config
from train_ledger.ops.coverage import coverage, exit_code_of, report_of_coverage
from train_ledger.ops.coverage.arriving import MENDED
from train_ledger.render import as_text


@pytest.fixture
def made(tmp_path):
    return fleet.write(tmp_path / "r42", fault="checkpoint_failed", hosts=2, ranks_per_host=2)


def of(answer, name):
    return next(it for it in answer.signals if it.name == name)


def cause(answer, code):
    return next(it for it in answer.causes if it.cause == code)


def test_what_cannot_be_told_is_said_first_with_how_to_get_it(made):
    answer = coverage(made.run_dir, Config(), at=made.t + 1)
    assert answer.verdicts[0] == "10 of 30 causes could not be told now"
    line = next(line for line in answer.verdicts if line.startswith("slow.gc"))
    assert "gc_s is written by no rank; call train_ledger.start(" in line
    assert exit_code_of(answer) == 1
    assert (answer.ranks, answer.world_size, answer.hosts) == (4, 4, ("node000", "node001"))


def test_a_signal_is_told_with_how_many_and_how_old(made):
    arrival = of(coverage(made.run_dir, Config(), at=made.t + 1), "compute_s").arrival
    assert (arrival.have, arrival.of, arrival.missing) == (4, 4, ())
    assert arrival.newest_t == pytest.approx(made.t, abs=3)


def test_of_some_ranks_alone_is_in_part(made):
    path = made.run_dir.signals_of(2)
    path.write_text(path.read_text().replace('"data_wait_s":0.002,', ""))
    answer = coverage(made.run_dir, Config(), at=made.t + 1)
    assert cause(answer, "slow.data").told == "partly"
    assert any("data_wait_s comes from 3 of 4 ranks, not from rank 2" in it for it in answer.verdicts)


def test_without_own_work_a_straggler_and_its_victims_cannot_be_told_apart(made):
    for rank in range(4):
        path = made.run_dir.signals_of(rank)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        kept = [{k: v for k, v in it.items() if k not in ("compute_s", "comm_wait_s")} for it in lines]
        path.write_text("".join(json.dumps(it) + "\n" for it in kept))
    answer = coverage(made.run_dir, Config(), at=made.t + 1)
    (line,) = [it for it in answer.verdicts if "slow.straggler.software" in it]
    assert "a straggler, its victims and slow data cannot be told apart: compute_s" in line
    assert "is written by no rank" in line


def test_a_warning_of_the_flight_recorder_spoils_its_dumps(made):
    message = "TORCH_FR_BUFFER_SIZE=0: entries of the ring"
    warning = {"t": made.t, "rank": 3, "attempt": 0, "event": "warning", "about": "TORCH_FR_BUFFER_SIZE"}
    with made.run_dir.signals_of(3).open("a") as file:
        file.write(json.dumps({**warning, "message": message}) + "\n")
    answer = coverage(made.run_dir, Config(), at=made.t + 1)
    assert (of(answer, "dumps").arrival.have, of(answer, "dumps").arrival.missing) == (3, (3,))
    assert cause(answer, "hang.mismatch").told == "partly"
    assert any(message in line for line in answer.verdicts)


def test_what_start_has_mended_in_the_environment_spoils_nothing(made):
    """torchrun sets the variable to 1 for every job that it starts."""
    about = "TORCH_NCCL_ASYNC_ERROR_HANDLING"
    message = f"{about}=1 was replaced by 3: 1 (TearDown) aborts the communicator first"
    warning = {"t": made.t, "rank": 3, "attempt": 0, "event": "warning", "about": about, "message": message}
    with made.run_dir.signals_of(3).open("a") as file:
        file.write(json.dumps(warning) + "\n")
    assert of(coverage(made.run_dir, Config(), at=made.t + 1), "dumps").arrival.is_whole


def test_the_words_of_what_start_has_mended_are_those_of_start():
    from train_ledger.signals import flight

    (finding,) = flight.apply({"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"}, None)
    assert MENDED in finding.message


def test_a_dump_that_lies_there_speaks_for_itself(made):
    made.run_dir.comm_traces().mkdir()
    made.run_dir.comm_trace_of(3).write_bytes(b"{}")
    assert of(coverage(made.run_dir, Config(), at=made.t + 1), "dumps").arrival.is_whole


def test_hardware_counts_by_host(made):
    made.run_dir.hardware.mkdir()
    uuids = {
        it["rank"]: it["uuid"] for it in map(json.loads, made.run_dir.ranks_jsonl.read_text().splitlines())
    }
    gpus = [
        {"t": made.t - 1, "host": "node001", "gpu": gpu, "uuid": uuids[2 + gpu], "by": "dcgm"}
        for gpu in range(2)
    ]
    lines = [json.dumps({**gpu, "DCGM_FI_DEV_SM_CLOCK": 1980.0}) + "\n" for gpu in gpus]
    (made.run_dir.hardware / "node001.jsonl").write_text("".join(lines))
    answer = coverage(made.run_dir, Config(), at=made.t + 1)
    arrival = of(answer, "DCGM_FI_DEV_SM_CLOCK").arrival
    assert (arrival.have, arrival.of, arrival.missing) == (1, 2, ("node000",))
    assert cause(answer, "slow.straggler.clock").told == "partly"


def test_a_keeper_that_was_killed_looks_at_nobody(made):
    made.run_dir.ledger.mkdir()
    holder = {"host": socket.gethostname(), "pid": os.getpid(), "since": made.t - 50}
    made.run_dir.keeper_lock.write_text(json.dumps(holder))
    assert of(coverage(made.run_dir, Config(), at=made.t + 1), "processes").arrival.comes
    made.run_dir.keeper_lock.write_text(json.dumps({**holder, "pid": (1 << 22) + 7}))
    assert not of(coverage(made.run_dir, Config(), at=made.t + 1), "processes").arrival.comes


def test_what_a_run_cannot_have_is_not_missed(tmp_path):
    made = fleet.write(tmp_path / "one", hosts=1, ranks_per_host=1)
    answer = coverage(made.run_dir, Config(), at=made.t + 1)
    assert {it.cause for it in answer.causes if it.told == "not_needed"} >= {
        "hang.mismatch",
        "slow.stage_imbalance",
        "hardware.nic",
    }
    assert "ports" not in {it.name for it in answer.signals if it.causes == ("hardware.nic",)}


def test_ranks_without_gpus_miss_no_xid(tmp_path):
    made = fleet.write(tmp_path / "cpu", hosts=2, ranks_per_host=2)
    run = json.loads(made.run_dir.run_json.read_text())
    made.run_dir.run_json.write_text(json.dumps({**run, "device": "cpu"}))
    answer = coverage(made.run_dir, Config(), at=made.t + 1)
    assert (cause(answer, "hang.fabric").told, cause(answer, "hardware.xid").told) == ("yes", "not_needed")


def test_a_restarted_run_is_judged_by_its_newest_attempt(tmp_path):
    made = fleet.write(tmp_path / "run", fault="restart", hosts=1, ranks_per_host=2, steps=2000)
    path = made.run_dir.signals_of(1)
    path.write_text("".join(it for it in path.open() if '"attempt":1' not in it or '"run_start"' in it))
    answer = coverage(made.run_dir, Config(), at=made.t + 1)
    assert of(answer, "starts").arrival.is_whole
    assert of(answer, "step_time_s").arrival.missing == (1,)


@pytest.mark.parametrize("later_s", [7200.0, 1e6])
def test_of_what_is_long_over_nothing_arrives(made, later_s):
    answer = coverage(made.run_dir, Config(), at=made.t + later_s)
    assert exit_code_of(answer) == 3
    assert any("no rank has written anything for" in line for line in answer.verdicts)


def test_an_empty_run_says_that_nothing_arrives(tmp_path):
    from train_ledger.run_dir import RunDir

    answer = coverage(RunDir(tmp_path), Config())
    assert exit_code_of(answer) == 3
    assert answer.verdicts == (
        "nothing arrives: no rank has written a line, and nothing could be told of this run",
    )


def test_all_is_told_where_everything_arrives(made):
    fields = {"gc_s": 0.0, "log_s": 0.0, "num_alloc_retries": 0, "ckpt_s": 0.0}
    with_them = "".join(f',"{name}":{value}' for name, value in fields.items())
    for rank in range(4):
        path = made.run_dir.signals_of(rank)
        path.write_text(path.read_text().replace(',"loss"', with_them + ',"loss"'))
    ranks = [json.loads(line) for line in made.run_dir.ranks_jsonl.read_text().splitlines()]
    made.run_dir.hardware.mkdir()
    for host in made.hosts:
        (made.run_dir.hardware / f"{host}.kern.log").write_text("")
        base = {"t": made.t - 1, "host": host}
        values = {"DCGM_FI_DEV_SM_CLOCK": 1980.0, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": 0.0}
        lines = [
            {**base, "gpu": it["gpu"], "uuid": it["uuid"], **values} for it in ranks if it["host"] == host
        ]
        lines.append({**base, "device": "mlx5_0", "port": 1, "port_errors_received_total": 0.0})
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (made.run_dir.hardware / f"{host}.jsonl").write_text(text)
    answer = coverage(made.run_dir, Config(), at=made.t + 1)
    assert answer.verdicts == ("all 30 causes could be told",)
    assert exit_code_of(answer) == 0
    text = as_text(report_of_coverage(answer))
    assert text.startswith("all 30 causes could be told\n")
    assert "could NOT" not in text
