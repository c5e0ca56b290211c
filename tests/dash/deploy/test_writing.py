"""What somebody changed stays as they left it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from train_ledger.dash.deploy import DeployedFile, DeployError, put

ONE = DeployedFile("a/one.yml", "first\n", "/etc")
TWO = DeployedFile("two.sh", "#!/bin/sh\n", "/etc", 0o755)


def test_files_are_written_below_the_folder_with_their_modes(tmp_path: Path) -> None:
    assert put(tmp_path, [ONE, TWO]) == {"a/one.yml": "written", "two.sh": "written"}
    assert (tmp_path / "a/one.yml").read_text() == "first\n"
    assert stat.S_IMODE((tmp_path / "two.sh").stat().st_mode) == 0o755


def test_what_is_there_already_is_left(tmp_path: Path) -> None:
    put(tmp_path, [ONE, TWO])
    assert put(tmp_path, [ONE, TWO]) == {"a/one.yml": "as it was", "two.sh": "as it was"}


def test_what_nobody_changed_is_replaced(tmp_path: Path) -> None:
    put(tmp_path, [ONE])
    assert put(tmp_path, [DeployedFile("a/one.yml", "second\n", "/etc")]) == {"a/one.yml": "written"}


def test_a_changed_file_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    put(tmp_path, [ONE])
    (tmp_path / "a/one.yml").write_text("mine\n")
    with pytest.raises(DeployError, match=r"a/one\.yml; --force"):
        put(tmp_path, [DeployedFile("a/one.yml", "second\n", "/etc"), TWO])
    assert (tmp_path / "a/one.yml").read_text() == "mine\n"
    assert not (tmp_path / "two.sh").exists()


def test_a_file_of_somebody_else_is_changed_too(tmp_path: Path) -> None:
    (tmp_path / "two.sh").write_text("theirs\n")
    with pytest.raises(DeployError, match="two"):
        put(tmp_path, [TWO])


def test_force_overwrites(tmp_path: Path) -> None:
    (tmp_path / "two.sh").write_text("theirs\n")
    assert put(tmp_path, [TWO], force=True) == {"two.sh": "written"}


def test_parts_that_were_not_asked_for_are_remembered(tmp_path: Path) -> None:
    put(tmp_path, [ONE, TWO])
    put(tmp_path, [ONE])
    assert put(tmp_path, [DeployedFile("two.sh", "newer\n", "/etc", 0o755)]) == {"two.sh": "written"}


@pytest.mark.parametrize("said", ["{", "[]", '{"two.sh": 7}'])
def test_a_damaged_memory_of_what_was_written_is_told(tmp_path: Path, said: str) -> None:
    (tmp_path / ".written.json").write_text(said)
    with pytest.raises(DeployError, match="remove it"):
        put(tmp_path, [TWO])


def test_a_link_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy/a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DeployError, match="leads out of"):
        put(tmp_path / "deploy", [TWO, ONE], force=True)
    assert not list((tmp_path / "elsewhere").iterdir())
    assert not (tmp_path / "deploy/two.sh").exists()


def test_what_was_written_before_a_disk_was_full_is_known_to_be_ours(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/one.yml").mkdir()
    with pytest.raises(OSError, match="folder"):
        put(tmp_path, [TWO, ONE], force=True)
    assert put(tmp_path, [DeployedFile("two.sh", "#!/bin/sh\nexit\n", "/etc")]) == {"two.sh": "written"}
