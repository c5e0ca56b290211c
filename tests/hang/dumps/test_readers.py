"""Dumps are read in processes of their own, whatever else the process that asks has open."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from hang.recorder import Job
from train_ledger.config import Limits
from train_ledger.hang.dumps.dump_files import read_dumps


@pytest.fixture
def more_than_a_thousand_open() -> Iterator[None]:
    """As a keeper has that follows a thousand ranks; select takes none beyond 1023."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2048:
        pytest.skip("no more than 2048 files may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    yield
    for descriptor in held:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("more_than_a_thousand_open")
def test_a_keeper_of_a_thousand_ranks_can_read_dumps(tmp_path: Path) -> None:
    job = Job(2)
    job.issue([0, 1], done=True)
    job.issue([0])
    job.write(tmp_path)
    read = read_dumps([tmp_path], Limits())
    assert read.unreadable == ()
    assert sorted(dump.rank for dump in read.dumps) == [0, 1]
