"""`hang --logs`: logs alone, beside dumps, and beside a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hang.recorder import Job
from train_ledger.chaos import fleet
from train_ledger.cli import app

CAUGHT = (
    "[rank{rank}]:[E328 00:21:12.9 P.cpp:683] [Rank {rank}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=2891, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600031 "
    "milliseconds before timing out.\n"
)


def hang(*arguments: object) -> tuple[int, dict[str, Any]]:
    result = CliRunner().invoke(app, ["hang", *map(str, arguments), "--json"])
    return result.exit_code, json.loads(result.stdout)


def test_logs_alone_name_the_silent_rank(tmp_path: Path) -> None:
    for rank in range(8):
        text = CAUGHT.format(rank=rank) if rank != 7 else "step 41\n"
        (tmp_path / f"rank_{rank}.log").write_text(text)
    code, answer = hang("--logs", tmp_path)
    assert (code, answer["verdict"], answer["kind"], answer["confidence"]) == (
        1,
        "hang",
        "missing_ranks",
        "low",
    )


def test_logs_without_a_word_cannot_tell(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("step: 1 loss: 2.0\n" * 9)
    code, answer = hang("--logs", tmp_path)
    assert (code, answer["verdict"], answer["culprits"]) == (3, "cannot_tell", [])


def epilogue(codes: list[int], first: int) -> str:
    def block(rank: int) -> str:
        return (
            f"  time      : 2026-03-28_00:21:12\n  host      : node001\n  rank      : {rank} "
            f"(local_rank: {rank})\n  exitcode  : {codes[rank]} (pid: {4000 + rank})\n"
        )

    others = [block(rank) for rank in range(len(codes)) if rank != first]
    return f"Failures:\n{''.join(others)}Root Cause (first observed failure):\n{block(first)}"


@pytest.mark.parametrize(("codes", "culprits"), [([-9] * 4, []), ([-15] * 4, []), ([-15, -9, -11, -15], [2])])
def test_an_epilogue_in_which_one_signal_ended_all_accuses_nobody(
    tmp_path: Path, codes: list[int], culprits: list[int]
) -> None:
    (tmp_path / "torchrun.log").write_text(epilogue(codes, first=2))
    code, answer = hang("--logs", tmp_path)
    assert answer["culprits"] == culprits
    assert (code, answer["verdict"]) == ((1, "hang") if culprits else (3, "cannot_tell"))


def test_a_log_says_why_a_dump_is_missing(tmp_path: Path) -> None:
    job = Job(4)
    job.issue(range(4), done=True)
    job.issue([0, 1, 2])
    dumps = job.write(tmp_path / "dumps", [0, 1, 2])
    (tmp_path / "rank_3.log").write_text(
        "[rank3]:[E328 00:21:12.9 F.cpp:9] Error opening file for writing Flight Recorder debug info: "
        "/no/rank_3\n"
    )
    _, answer = hang(dumps, "--logs", tmp_path / "rank_3.log")
    assert answer["culprits"] == [3]
    assert any(
        "dump of rank 3: by the log /no/rank_3 could not be written" in it for it in answer["not_observed"]
    )


def test_start_up_warned_of_the_place_of_the_dumps(tmp_path: Path) -> None:
    made = fleet.write(tmp_path / "run", fault="process_gone", culprit=3, hosts=1, ranks_per_host=4)
    warning = {
        "t": made.fault_t,
        "rank": 3,
        "attempt": 0,
        "event": "warning",
        "about": "TORCH_FR_DUMP_TEMP_FILE",
        "message": "/gone: no such folder, so rank 3 cannot write its dump; make it on every host",
    }
    file = made.run_dir.signals_of(3)
    file.write_text(json.dumps(warning) + "\n" + file.read_text())
    _, answer = hang("--run", made.run_dir.path)
    assert any("dump of rank 3: by the log /gone could not be written" in it for it in answer["not_observed"])


def test_logs_that_are_not_there_are_wrong_usage(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["hang", "--logs", str(tmp_path / "absent")])
    assert result.exit_code == 2
    assert "absent: there is no such file or folder" in result.output


SCRIPT = """
import os, sys, datetime, torch, torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=int(os.environ["TIMEOUT_S"])))
rank, mode = dist.get_rank(), sys.argv[1]
dist.all_reduce(torch.ones(4))
odd = rank == 2
if mode == "type" and odd:
    dist.all_gather([torch.zeros(4) for _ in range(4)], torch.ones(4))
elif mode == "exception" and odd:
    raise ValueError("bad sample")
elif mode == "missing" and odd:
    import time; time.sleep(120)
else:
    size = 5 if mode == "size" and odd else 4
    dtype = torch.float64 if mode == "dtype" and odd else torch.float32
    dist.all_reduce(torch.ones(size, dtype=dtype))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("type", "collective_type_mismatch"),
        ("size", "size_or_syntax_mismatch"),
        ("dtype", "collective_dtype_mismatch"),
        ("missing", "missing_ranks"),
        ("exception", "missing_ranks"),
    ],
)
def test_the_logs_of_a_real_job_under_detail_name_the_odd_rank(tmp_path: Path, mode: str, kind: str) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "job.py"
    script.write_text(SCRIPT)
    timeout_s = "12" if kind == "missing_ranks" else "60"  # who waits in vain waits as long
    launcher = [
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=4",
        f"--log-dir={tmp_path / 'logs'}",
    ]
    subprocess.run(
        [sys.executable, *launcher, "--redirects=3", str(script), mode],
        env={**os.environ, "TORCH_DISTRIBUTED_DEBUG": "DETAIL", "TIMEOUT_S": timeout_s},
        capture_output=True,
        timeout=400,
        check=False,
    )
    code, answer = hang("--logs", tmp_path / "logs")
    assert (code, answer["kind"], answer["culprits"]) == (1, kind, [2])
