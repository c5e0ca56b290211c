"""A run that a Prometheus alone tells of, from a shell: wrong usage, and what is not there."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from train_ledger.cli import app


def _told(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)


@pytest.fixture
def nobody() -> str:
    """An address at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


def test_neither_a_run_nor_a_prometheus_is_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    told = _told("diagnose")
    assert (told.exit_code, len(told.stderr.splitlines())) == (2, 1)
    assert "name a run directory, or --prometheus URL" in told.stderr


def test_the_configured_address_is_asked_where_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nobody: str
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "train-ledger").mkdir()
    (tmp_path / "train-ledger" / "train-ledger.toml").write_text(f'[prometheus]\nurl = "http://{nobody}"\n')
    told = _told("diagnose", "--run", "r42")
    assert told.exit_code == 2
    assert f"http://{nobody}: is not reached" in told.stderr


@pytest.mark.parametrize("verb", [["diagnose"], ["watch", "--no-web"]])
def test_a_prometheus_that_is_not_reached_is_one_line_without_its_password(
    tmp_path: Path, nobody: str, verb: list[str]
) -> None:
    told = _told(*verb, tmp_path, "--prometheus", f"http://me:secret@{nobody}")
    assert told.exit_code in (2, 3)
    said = told.stdout + told.stderr
    assert "Traceback" not in said
    assert "secret" not in said


@pytest.mark.parametrize("verb", ["diagnose", "watch"])
def test_a_name_without_a_prometheus_is_wrong_usage(tmp_path: Path, verb: str) -> None:
    told = _told(verb, tmp_path, "--run", "r42")
    assert (told.exit_code, len(told.stderr.splitlines())) == (2, 1)
    assert "give --prometheus URL with it" in told.stderr


def test_a_prometheus_tells_of_one_run_at_a_time(tmp_path: Path, nobody: str) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    told = _told("watch", tmp_path / "a", tmp_path / "b", "--prometheus", f"http://{nobody}")
    assert told.exit_code == 2
    assert "give one RUN" in told.stderr
