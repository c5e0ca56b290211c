"""Who a process is, by whatever started it."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from train_ledger.signals.identity import identify
from train_ledger.signals.sampling.gpu import _chosen

TORCHRUN = {"RANK": "13", "WORLD_SIZE": "16", "LOCAL_RANK": "5"}
SLURM = {"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "1"}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "2",
    "OMPI_COMM_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_LOCAL_RANK": "2",
}


@pytest.mark.parametrize(
    ("environ", "who"),
    [
        (TORCHRUN, (13, 16, 5)),
        (SLURM, (3, 4, 1)),
        (OPEN_MPI, (2, 8, 2)),
        (SLURM | TORCHRUN, (13, 16, 5)),  # torchrun started by srun: its own ranks count
        ({}, (0, 1, 0)),
        ({"RANK": "first"}, (0, 1, 0)),
    ],
)
def test_the_launchers_word(environ: dict[str, str], who: tuple[int, int, int]) -> None:
    me = identify(environ=environ)
    assert (me.rank, me.world_size, me.local_rank) == who


def test_what_is_given_counts() -> None:
    me = identify(rank=2, world_size=4, environ=TORCHRUN)
    assert (me.rank, me.world_size, me.local_rank) == (2, 4, 5)


def test_an_initialised_process_group_knows_best(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: 6, get_world_size=lambda: 8
    )
    monkeypatch.setitem(sys.modules, "torch.distributed", distributed)
    me = identify(environ=SLURM)
    assert (me.rank, me.world_size, me.local_rank) == (6, 8, 1)


@pytest.mark.parametrize(
    ("visible", "index", "card"),
    [
        (None, 3, 3),
        ("4,5,6,7", 1, 5),
        ("2", 5, 2),  # the launcher shows each rank its one card
        ("0,1", 5, None),
        ("", 0, None),
        ("GPU-8f3c", 0, "GPU-8f3c"),
    ],
)
def test_the_card_of_a_rank(visible: str | None, index: int, card: int | str | None) -> None:
    assert _chosen(visible, index) == card
