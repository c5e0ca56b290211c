"""Which XIDs wake somebody."""

from __future__ import annotations

import pytest

from train_ledger.ledger import XIDS, xid, xid_level


@pytest.mark.parametrize("code", [46, 48, 62, 64, 74, 79, 95, 109, 119, 120, 158, 167])
def test_what_stops_a_gpu_pages(code) -> None:
    assert xid_level(code) == "page"


@pytest.mark.parametrize("code", [13, 31, 43, 45, 63, 69, 92, 137, 154])
def test_what_a_program_did_or_what_only_follows_is_recorded(code) -> None:
    assert xid_level(code) == "record"


def test_the_same_kernel_fault_twice_on_one_gpu_is_its_own() -> None:
    assert xid_level(31, times=2) == "page"
    assert xid_level(45, times=20) == "record"


def test_a_fatal_nvlink_event_pages_and_one_that_is_not_does_not() -> None:
    assert xid_level(149, "NETIR_LINK_EVT Fatal XC0 i0 Link 01") == "page"
    assert xid_level(145, "RLW_SRC_TRACK Nonfatal XC1 i0 Link 12") == "record"


def test_a_contained_memory_error_matters_where_a_rank_is() -> None:
    assert (xid_level(94), xid_level(94, of_a_rank=False)) == ("page", "record")


def test_a_code_that_is_not_listed_is_recorded() -> None:
    assert xid_level(99_999) == "record"
    assert xid(99_999).action


def test_every_row_says_what_it_means_and_what_to_do() -> None:
    assert all(row.code == code and row.meaning and row.action for code, row in XIDS.items())
