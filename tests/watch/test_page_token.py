"""The token of a page stays the same over keepers, and cannot be read or guessed."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from train_ledger.run_dir import RunDir, RunDirError
from train_ledger.watch.page_token import page_token


def test_it_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    token = page_token(RunDir(tmp_path), {})
    assert len(token) >= 32
    assert page_token(RunDir(tmp_path), {}) == token
    assert stat.S_IMODE((tmp_path / "ledger" / "page.token").stat().st_mode) == 0o600


@pytest.mark.parametrize("damaged", ["", "short", "with a blank in it, long enough", "\x00" * 40])
def test_what_is_no_token_is_made_anew(tmp_path: Path, damaged: str) -> None:
    (tmp_path / "ledger").mkdir()
    (tmp_path / "ledger" / "page.token").write_text(damaged)
    assert page_token(RunDir(tmp_path), {}) != damaged


def test_one_that_is_given_counts(tmp_path: Path) -> None:
    assert page_token(RunDir(tmp_path), {"TRAIN_LEDGER_TOKEN": "0123456789abcdef"}) == "0123456789abcdef"
    assert not (tmp_path / "ledger").exists()


@pytest.mark.parametrize("weak", ["secret", "x" * 15, "a&b=cdefghijklmnop"])
def test_a_weak_one_is_refused(tmp_path: Path, weak: str) -> None:
    with pytest.raises(RunDirError, match="TRAIN_LEDGER_TOKEN"):
        page_token(RunDir(tmp_path), {"TRAIN_LEDGER_TOKEN": weak})


def test_where_it_cannot_be_kept_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "ledger").write_text("in the way")
    with pytest.raises(RunDirError, match="let nobody else in"):
        page_token(RunDir(tmp_path), {})
