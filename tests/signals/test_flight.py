"""The environment a hang will be judged by: set where it is unset, and looked at where it is set."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from signals.scripts import run_to_end
from train_ledger.signals import flight
from train_ledger.signals.flight import inspection, settings

ON_DISK = "/dev/sda1 / ext4 rw 0 0\n"


@pytest.fixture(autouse=True)
def nothing_set_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_SET_BY_US", {})
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    folder = tmp_path / "comm_traces"
    folder.mkdir()
    return folder


def test_what_is_unset_is_set(traces: Path) -> None:
    environ: dict[str, str] = {}
    assert flight.apply(environ, traces) == []
    assert environ == {
        "TORCH_FR_BUFFER_SIZE": "20000",
        "TORCH_FR_DUMP_TEMP_FILE": f"{traces}/rank_",
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_ENABLE_MONITORING": "1",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "3",
    }
    assert flight.check(environ, rank=0, mounts=ON_DISK) == []


def test_what_the_user_set_stays_under_either_name(traces: Path) -> None:
    environ = {"TORCH_NCCL_TRACE_BUFFER_SIZE": "5000", "TORCH_FR_DUMP_TEMP_FILE": "/traces/r_"}
    flight.apply(environ, traces)
    assert environ["TORCH_NCCL_TRACE_BUFFER_SIZE"] == "5000"
    assert "TORCH_FR_BUFFER_SIZE" not in environ  # both names at once make torch warn
    assert flight.dump_prefix(environ) == "/traces/r_"


def test_tearing_down_before_the_dump_is_refused_with_the_reason(traces: Path) -> None:
    environ = {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"}
    (finding,) = flight.apply(environ, traces)
    assert environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] == "3"
    assert finding.level == "warning"
    assert "TORCH_NCCL_ASYNC_ERROR_HANDLING=1 was replaced by 3: 1 (TearDown) aborts" in finding.message


@pytest.mark.parametrize("value", ["0", "2", "3"])
def test_other_ways_to_handle_errors_stay(traces: Path, value: str) -> None:
    environ = {"TORCH_NCCL_ASYNC_ERROR_HANDLING": value}
    assert flight.apply(environ, traces) == []
    assert environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] == value


def test_where_the_run_directory_cannot_be_written_torchs_own_place_stays() -> None:
    environ = {"HOME": "/home/ada"}
    flight.apply(environ, None)
    assert flight.dump_prefix(environ) == "/home/ada/.cache/torch/comm_lib_trace_rank_"


def test_a_second_start_moves_the_dumps_to_its_own_attempt(traces: Path) -> None:
    environ: dict[str, str] = {}
    flight.apply(environ, traces)
    flight.apply(environ, traces / "attempt_1")
    assert environ["TORCH_FR_DUMP_TEMP_FILE"] == f"{traces}/attempt_1/rank_"


def test_too_late_is_said(traces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True)
    monkeypatch.setitem(sys.modules, "torch.distributed", made)
    (finding,) = flight.apply({}, traces)
    assert "after init_process_group()" in finding.message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TORCH_FR_BUFFER_SIZE", "0"),
        ("TORCH_NCCL_TRACE_BUFFER_SIZE", "0"),
        ("TORCH_NCCL_DUMP_ON_TIMEOUT", "false"),
        ("TORCH_NCCL_ENABLE_MONITORING", "0"),
        ("TORCH_INCLUDE_STACK_TRACE", "0"),
        ("TORCH_INCLUDE_ONLY_ACTIVE", "true"),
        ("NCCL_ASYNC_ERROR_HANDLING", "1"),
        ("TORCH_DISTRIBUTED_DEBUG", "DETAIL"),
    ],
)
def test_a_value_that_loses_evidence_is_found(traces: Path, name: str, value: str) -> None:
    environ = {"TORCH_FR_DUMP_TEMP_FILE": f"{traces}/rank_", name: value}
    (finding,) = flight.check(environ, rank=0, mounts=ON_DISK)
    assert finding.level == "error"
    assert finding.message.startswith(f"{name}={value}: ")


def test_a_small_ring_is_found(traces: Path) -> None:
    environ = {"TORCH_FR_DUMP_TEMP_FILE": f"{traces}/rank_", "TORCH_FR_BUFFER_SIZE": "100"}
    (finding,) = flight.check(environ, rank=0, mounts=ON_DISK)
    assert "fewer than torch's own 2000 entries" in finding.message


def test_both_names_at_once_are_found(traces: Path) -> None:
    environ = {
        "TORCH_FR_DUMP_TEMP_FILE": f"{traces}/rank_",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": f"{traces}/rank_",
    }
    (finding,) = flight.check(environ, rank=0, mounts=ON_DISK)
    assert (finding.level, finding.about) == ("note", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")


def test_a_folder_that_is_not_there_is_found(tmp_path: Path) -> None:
    environ = {"TORCH_FR_DUMP_TEMP_FILE": f"{tmp_path}/absent/rank_"}
    (finding,) = flight.check(environ, rank=5, mounts=ON_DISK)
    assert finding.message.startswith(f"{tmp_path}/absent: no such folder, so rank 5 cannot write its dump")


def test_a_folder_that_may_not_be_written_is_found(traces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection.os, "access", lambda path, mode: False)
    environ = {"TORCH_FR_DUMP_TEMP_FILE": f"{traces}/rank_"}
    (finding,) = flight.check(environ, rank=5, mounts=ON_DISK)
    assert "rank 5 may not write there" in finding.message


@pytest.mark.parametrize(
    ("kind", "found"), [("overlay", 1), ("tmpfs", 1), ("nfs4", 0), ("lustre", 0), ("ext4", 0)]
)
def test_storage_that_goes_with_the_container_is_found(traces: Path, kind: str, found: int) -> None:
    mounts = f"proc /proc proc rw 0 0\n{kind} {traces} {kind} rw 0 0\n/dev/sda1 / ext4 rw 0 0\n"
    environ = {"TORCH_FR_DUMP_TEMP_FILE": f"{traces}/rank_"}
    findings = flight.check(environ, rank=0, mounts=mounts)
    assert [f"lies on {kind}" in finding.message for finding in findings] == [True] * found


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"TORCHELASTIC_RUN_ID": "r42"}, "torchrun kills 30 s after SIGTERM, a dump may take 75 s"),
        ({"TRAIN_LEDGER_KILL_GRACE_S": "40"}, "the launcher kills 40 s after SIGTERM"),
        ({"TRAIN_LEDGER_KILL_GRACE_S": "90", "TORCHELASTIC_RUN_ID": "r42"}, None),
        ({}, None),
    ],
)
def test_the_launchers_patience(traces: Path, environ: dict[str, str], said: str | None) -> None:
    environ = {"TORCH_FR_DUMP_TEMP_FILE": f"{traces}/rank_", **environ}
    findings = flight.check(environ, rank=0, mounts=ON_DISK)
    assert [finding.message.startswith(said or "") for finding in findings] == ([True] if said else [])


def test_slurms_patience_is_read_from_its_configuration(
    traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text("ClusterName=c\nKillWait=120 # seconds\n")
    monkeypatch.setattr(inspection, "_SLURM_CONF", conf)
    environ = {"TORCH_FR_DUMP_TEMP_FILE": f"{traces}/rank_", "SLURM_JOB_ID": "9"}
    assert flight.check(environ, rank=0, mounts=ON_DISK) == []
    conf.write_text("KillWait=30\n")
    (finding,) = flight.check(environ, rank=0, mounts=ON_DISK)
    assert "Slurm kills 30 s after SIGTERM" in finding.message


def test_the_table_reads_as_a_whole() -> None:
    names = [variable.name for variable in flight.VARIABLES]
    assert len(names) == len(set(names)) == 17
    for variable in flight.VARIABLES:
        assert variable.ours not in variable.wrong
        assert variable.default not in variable.wrong
        assert variable.why


def test_a_start_that_comes_too_late_is_said_on_stderr_by_one_rank(tmp_path: Path) -> None:
    script = f"""
import torch.distributed as dist
monitor.close()
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
train_ledger.start({str(tmp_path)!r}).close()
"""
    ran = run_to_end(tmp_path, script)
    assert ran.returncode == 0
    assert "rank 0: train_ledger.start() came after init_process_group()" in ran.stderr
