"""Real logs of hung and dead jobs, and the catalogue of XIDs, held against what is read from them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from train_ledger.ledger import xid_level
from train_ledger.sources import read_log_files

DATA = Path(__file__).parents[3] / "shared" / "data"
LOGS = DATA / "logs"
pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason="real logs are not here")


def read(name: str):
    return read_log_files([LOGS / name])


def test_two_hosts_through_pdsh_each_statement_is_of_its_rank() -> None:
    found = read("17b_nccl_watchdog_dual8.log")
    timeouts = [it for it in found.said if it.kind == "timeout" and it.rank is not None]
    assert {(it.rank, it.seq, it.op) for it in timeouts} == {(0, 2, "ALLREDUCE")}
    assert {it.group for it in found.said if it.kind == "failure"} == {"1", "17"}
    asked = {it.rank: it.last_enqueued for it in found.said if it.kind == "dump_asked" and it.last_enqueued}
    assert asked == dict.fromkeys((0, 1, 2, 3, 5, 6, 7), 7)
    (raised,) = found.raised
    assert (raised.rank, raised.host) == (4, "10.0.0.2")
    assert raised.exception.startswith("FileNotFoundError")


def test_the_launcher_names_who_failed_first_and_who_it_ended() -> None:
    ended = {it.rank: it for it in read("17c_torchrun_sigterm_childfailed.log").ended}
    assert [rank for rank, it in ended.items() if it.first] == [1]
    assert (ended[1].code, {it.code for rank, it in ended.items() if rank != 1}) == (1, {-15})


def test_survivors_lose_their_peer_before_the_log_tells_who_was_killed() -> None:
    found = read("23a_torchrun_2.13_sigkill_real.log")
    assert {it.rank for it in found.said if it.kind == "peer_gone"} == {0, 2}
    assert [(it.rank, it.code) for it in found.ended if it.first] == [(1, -9)]


def test_every_kernel_line_that_has_a_code_is_read() -> None:
    lines = (LOGS / "12_xid_kernel_lines_gpud.txt").read_text(encoding="utf-8").splitlines()
    with_code = [line for line in lines if "Xid (PCI:0" in line or "Xid (0" in line]
    codes = {it.code for it in read("12_xid_kernel_lines_gpud.txt").kernel}
    assert len(with_code) > 90
    assert codes >= {14, 31, 63, 64, 69, 74, 79, 94, 102, 144, 145, 146, 147, 148, 149, 150, 154, 99_999}


def test_logs_without_trouble_tell_of_none() -> None:
    found = read("08_deepspeed_chat_sft_2023_overflow.log")
    assert (found.said, found.kernel, found.raised, found.ended) == ((), (), (), ())


def catalogue() -> list[dict[str, str]]:
    with (DATA / "xid.tsv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.mark.parametrize("row", catalogue() if LOGS.is_dir() else [], ids=lambda row: row["code"])
def test_the_level_of_every_code_is_that_of_the_catalogue(row) -> None:
    code, level = int(row["code"]), row["train-ledger level"]
    if level.startswith("page if repeated") or "page if >=2" in level or "page if repeated" in level:
        assert (xid_level(code), xid_level(code, times=2)) == ("record", "page")
    elif level.startswith("decode"):
        assert (xid_level(code, "X Fatal"), xid_level(code, "X Nonfatal")) == ("page", "record")
    elif level.startswith("page if the process is a rank"):
        assert (xid_level(code), xid_level(code, of_a_rank=False)) == ("page", "record")
    elif level.startswith(("never", "no page", "record")):
        assert xid_level(code, times=9) == "record"
    else:
        assert xid_level(code) == level.split()[0]
