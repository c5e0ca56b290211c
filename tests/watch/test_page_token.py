"""The token of a page stays the same over keepers, and cannot be read or guessed."""

from __future__ import annotations

import os
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
    (tmp_path / "ledger" / "page.token").chmod(0o600)
    assert page_token(RunDir(tmp_path), {}) != damaged


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620, 0o666])
def test_one_that_others_could_read_or_change_is_not_used_again(tmp_path: Path, mode: int) -> None:
    token = page_token(RunDir(tmp_path), {})
    kept = tmp_path / "ledger" / "page.token"
    kept.chmod(mode)
    anew = page_token(RunDir(tmp_path), {})
    assert anew != token
    assert (stat.S_IMODE(kept.stat().st_mode), page_token(RunDir(tmp_path), {})) == (0o600, anew)


def test_one_that_another_user_put_there_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = page_token(RunDir(tmp_path), {})
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert page_token(RunDir(tmp_path), {}) != token


def test_a_link_is_no_token(tmp_path: Path) -> None:
    known = tmp_path / "known"
    known.write_text("0123456789abcdef0123456789abcdef")
    known.chmod(0o600)
    (tmp_path / "ledger").mkdir()
    (tmp_path / "ledger" / "page.token").symlink_to(known)
    assert page_token(RunDir(tmp_path), {}) != known.read_text()
    assert known.read_text() == "0123456789abcdef0123456789abcdef"


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
