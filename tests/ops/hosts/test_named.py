"""Hosts as people and launchers name them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from train_ledger.ops.hosts import HostsError, hosts_in


def test_a_file_of_hosts_may_be_that_of_mpi(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("# the pod\nnode-1 slots=8\n\nnode-2\nnode[3-4]\nnode-1\n")
    assert hosts_in(f"@{tmp_path}/hosts") == ("node-1", "node-2", "node3", "node4")


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "a b",
        "-l",
        "a;b",
        "n[1-99999999]",
        "n[1-x]",
        "n[]",
        "@/no/such/file",
        "$(x)",
        "n[1-3",
        "n1-3]",
    ],
)
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(HostsError):
        hosts_in(text)


def test_brackets_without_end_cost_no_more_than_their_length(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("[" * 2_000_000)
    started = time.process_time()
    with pytest.raises(HostsError, match="a bracket that is not paired"):
        hosts_in(f"@{tmp_path}/hosts")
    assert time.process_time() - started < 20
