"""A library that hangs, raises, is absent or cannot write is never in the training's way."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest

from signals.scripts import wait_for
from train_ledger.signals.integrations.wandb import wandb_writer
from train_ledger.signals.telling.writers import Writer


class _Warnings(list[str]):
    def __call__(self, about: str, message: str) -> None:
        self.append(message)


@pytest.fixture
def warnings() -> _Warnings:
    return _Warnings()


def _fake_wandb(folder: Path, monkeypatch: pytest.MonkeyPatch, *, init: str = "", log: str = "") -> None:
    """A library of that name, found before the real one, whose functions do as they are told."""
    (folder / "wandb.py").write_text(
        dedent("""
        import json, os, sys, time
        class Settings(dict):
            pass
        class Run:
            def define_metric(self, name, step_metric=None):
                pass
            def log(self, values):
                {log}
                with open(os.environ["FAKE_WANDB_LOG"], "a") as file:
                    file.write(json.dumps(values) + "\\n")
            def finish(self):
                pass
        def init(**arguments):
            {init}
            return Run()
        """).format(init=init or "pass", log=log or "pass")
    )
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("FAKE_WANDB_LOG", str(folder / "logged.jsonl"))


def _writer(folder: Path, warnings: _Warnings, queue_lines: int = 10_000, close_s: float = 60.0) -> Writer:
    settings = {"attempt": 0, "init": {"name": "r42"}}
    writer = Writer("W&B", "wandb", settings, warnings, queue_lines=queue_lines, close_s=close_s)
    assert writer.start() is None
    return writer


def _close(writer: Writer) -> float:
    began = time.monotonic()
    writer.wait()
    return time.monotonic() - began


def _logged(folder: Path) -> list[str]:
    path = folder / "logged.jsonl"
    return path.read_text().splitlines() if path.exists() else []


def test_every_step_arrives_once_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: _Warnings
) -> None:
    _fake_wandb(tmp_path, monkeypatch)
    writer = _writer(tmp_path, warnings)
    for step in range(3000):
        writer.put(step, 1.0, {"loss": 2.5})
    _close(writer)
    assert [f'"train/step": {step},' in line for step, line in enumerate(_logged(tmp_path))] == [True] * 3000
    assert (writer.dropped_lines, warnings) == (0, [])


def test_one_that_sleeps_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: _Warnings
) -> None:
    _fake_wandb(tmp_path, monkeypatch, log="time.sleep(60)")
    writer = _writer(tmp_path, warnings, queue_lines=100, close_s=1.0)
    fields = {f"field_{n}": n / 7 for n in range(40)}
    took_s = []
    for step in range(3000):
        began = time.perf_counter()
        writer.put(step, 1.0, fields)
        took_s.append(time.perf_counter() - began)
        time.sleep(0.0005)
    assert sorted(took_s)[1500] < 0.001
    assert sorted(took_s)[2970] < 0.1, (
        "a time slice that another program had is no wait for this one's minute"
    )
    assert _close(writer) < 30
    assert 2000 < writer.dropped_lines <= 3000
    assert sum("does not keep up" in it for it in warnings) == 1
    assert warnings[-1] == f"{writer.dropped_lines} of 3000 steps are not in W&B"


def test_one_that_raises_is_named_once_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: _Warnings, capfd: pytest.CaptureFixture[str]
) -> None:
    _fake_wandb(tmp_path, monkeypatch, init="raise OSError(28, 'No space left on device')")
    settings = {"attempt": 0, "init": {"name": "r42"}}
    writer = Writer("W&B", "wandb", settings, warnings, first_pause_s=0.01, close_s=1.0)
    writer.start()
    writer.put(1, 1.0, {"loss": 2.5})
    wait_for(lambda: writer._starts > 2)
    _close(writer)
    first, second = warnings
    assert first.startswith("W&B: OSError: [Errno 28] No space left on device; the training goes on")
    assert second == "1 of 1 steps are not in W&B"
    assert capfd.readouterr().err.count("No space left") == 1


def test_what_it_raised_at_is_lost_and_the_rest_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: _Warnings
) -> None:
    _fake_wandb(tmp_path, monkeypatch, log="if values['train/step'] == 1: raise ValueError('one')")
    settings = {"attempt": 0, "init": {"name": "r42"}}
    writer = Writer("W&B", "wandb", settings, warnings, first_pause_s=0.01, close_s=60.0)
    writer.start()
    for step in range(2):
        writer.put(step, 1.0, {})
    wait_for(lambda: writer.dropped_lines == 1)
    for step in range(2, 5):
        writer.put(step, 1.0, {})
    _close(writer)
    assert [line.split('"train/step": ')[1][0] for line in _logged(tmp_path)] == ["0", "2", "3", "4"]
    assert "ValueError: one" in warnings[0]


def test_one_that_is_not_installed_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: _Warnings
) -> None:
    (tmp_path / "wandb.py").write_text("raise ModuleNotFoundError('none', name='wandb')")
    monkeypatch.syspath_prepend(str(tmp_path))
    settings = {"attempt": 0, "init": {}}
    writer = Writer("W&B", "wandb", settings, warnings, first_pause_s=0.01, close_s=60.0)
    writer.start()
    wait_for(lambda: warnings)
    time.sleep(1.0)
    assert writer._starts == 1
    assert "pip install wandb" in warnings[0]
    assert _close(writer) < 30


def test_one_that_cannot_be_killed_by_its_library_still_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: _Warnings
) -> None:
    """A library may end the process it is in; that is not the training's."""
    _fake_wandb(tmp_path, monkeypatch, log="os._exit(7)")
    writer = _writer(tmp_path, warnings)
    writer.put(1, 1.0, {"loss": 2.5})
    wait_for(lambda: warnings)
    assert "its process ended" in warnings[0]
    assert _close(writer) < 30


def test_a_process_that_is_forked_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: _Warnings
) -> None:
    _fake_wandb(tmp_path, monkeypatch)
    writer = _writer(tmp_path, warnings)
    writer.put(1, 1.0, {})
    wait_for(lambda: _logged(tmp_path))
    if os.fork() == 0:
        writer.put(2, 1.0, {})
        os._exit(int(bool(writer._queue)))
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
    writer.put(3, 1.0, {})
    _close(writer)
    assert [line.split('"train/step": ')[1][0] for line in _logged(tmp_path)] == ["1", "3"]


@pytest.mark.slow
def test_a_training_that_is_killed_leaves_no_process_and_loses_nothing_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake_wandb(tmp_path, monkeypatch)
    script = """
import os, time
from train_ledger.signals.telling.writers import Writer
writer = Writer("W&B", "wandb", {"attempt": 0, "init": {"name": "r42"}}, lambda about, message: None)
writer.start()
for step in range(100):
    writer.put(step, 1.0, {})
while not writer._helper or writer._helper._sent < 100:
    time.sleep(0.01)
print(writer._helper._process.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, "-c", script], env=environ, stdout=subprocess.PIPE, timeout=180, check=False
    )
    wait_for(lambda: len(_logged(tmp_path)) == 100)
    wait_for(lambda: not Path(f"/proc/{int(ended.stdout)}").exists())


@pytest.mark.slow
def test_a_server_that_does_not_answer_keeps_no_process_from_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: _Warnings
) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setenv("WANDB_MODE", "online")
    writer = wandb_writer(tmp_path, 0, warnings, {}, {})
    writer.start()
    for step in range(10):
        writer.put(step, 1.0, {"loss": 2.5})
    time.sleep(1.0)
    assert _close(writer) < 50, "it keeps on trying"
    assert writer.dropped_lines == 10
