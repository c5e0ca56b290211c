"""torchtitan's structured logger as its main branch has it, which no release has yet: a stand-in makes
records with the same attributes, on the calling thread as its first version did or on one of its own."""

from __future__ import annotations

import logging
import queue
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from signals.integrations.trainings import events, lines, numbers, order, steps
from slowness import slowness
from train_ledger.signals.integrations import torchtitan


class Titan:
    """As much of torchtitan's structured logger as its trainer uses."""

    def __init__(self, folder: Path, source: str = "training") -> None:
        self.logger = logging.Logger("torchtitan.structured_logger", logging.INFO)
        self.step: int | None = None
        self.tags: tuple[str, ...] = ()
        self.took_s: dict[tuple[int | None, str], float] = defaultdict(float)
        torchtitan.register(
            structured_logger=self.logger, rank=3, source=source, output_dir=str(folder), of_tomorrow=1
        )

    def close(self) -> None:
        """The process ends."""
        while self.logger.handlers:
            self.logger.handlers.pop().session.end()  # type: ignore[attr-defined]

    def set_step(self, step: int) -> None:
        self.step, self.tags = step, ()

    def log(
        self, name: str, message: str = "", value: float | None = None, scalar: str | None = None
    ) -> None:
        extra = {
            "log_type": "instant" if scalar else "event",
            "log_type_name": name,
            "event_name": scalar,
            "step": self.step,
            "relative_step": None,
            "value": value,
            "task_name": None,
        }
        self.hand_over(self.logger.makeRecord("titan", logging.INFO, "f", 1, message, (), None, "f", extra))

    def hand_over(self, record: logging.LogRecord) -> None:
        self.logger.handle(record)

    def scalar(self, name: str, value: float) -> None:
        self.log("metric_value", value=value, scalar=name)

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        self.log(f"{name}_start")
        try:
            yield
        except BaseException as error:
            self.log(f"{name}_error", f"{name}_error: {type(error).__name__}: {error}")
            raise
        finally:
            took_s = time.perf_counter() - began
            self.took_s[self.step, name] += took_s
            self.log(f"{name}_end", value=took_s * 1000)

    def save(self, really: bool, error: Exception | None = None) -> None:
        with self.span("checkpoint_save"):
            if really:
                self.tags = (*self.tags, "checkpoint_save")
                time.sleep(0.002)
            if error is not None:
                raise error

    def train(self, first: int, last: int, save_every: int = 2, evaluate_at: int = 0) -> None:
        for step in range(first, last + 1):
            self.set_step(step)
            with self.span("step"):
                for _ in range(2):
                    with self.span("fetching_batch"):
                        time.sleep(0.002)
                self.scalar("local_valid_tokens", 64)
                with self.span("fwd_bwd"):
                    time.sleep(0.003)
                with self.span("optim"):
                    time.sleep(0.001)
                self.scalar("train.loss", 3.0 / step)
                self.save(really=step % save_every == 0)
                if step == evaluate_at:
                    with self.span("eval"):
                        time.sleep(0.001)


class QueuedTitan(Titan):
    """Hands records over on a thread of its own, a tenth of a second later."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.records: queue.Queue[logging.LogRecord | None] = queue.Queue()
        self.thread = threading.Thread(target=self.write)
        self.thread.start()

    def hand_over(self, record: logging.LogRecord) -> None:
        state = SimpleNamespace(tid=1, step=self.step, relative_step=None, step_tags=self.tags)
        record.logging_thread_state = state
        self.records.put(record)

    def write(self) -> None:
        time.sleep(0.1)
        while (record := self.records.get()) is not None:
            self.logger.handle(record)

    def close(self) -> None:
        self.records.put(None)
        self.thread.join()
        super().close()


@pytest.fixture(params=[Titan, QueuedTitan])
def titan(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Titan]:
    made: Titan = request.param(tmp_path)
    state = ModuleType("step_state")
    state.get_step_tags = lambda: made.tags  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchtitan.observability.structured_logger.step_state", state)
    yield made
    made.close()


def test_steps_with_the_durations_that_the_records_carry(titan: Titan, tmp_path: Path) -> None:
    began_s = time.perf_counter()
    titan.train(21, 24)
    trained_s = time.perf_counter() - began_s
    titan.close()
    assert numbers(tmp_path, rank=3) == [21, 22, 23, 24]
    for line in steps(tmp_path, rank=3):
        for field, span in (("data_wait_s", "fetching_batch"), ("fwd_bwd_s", "fwd_bwd"), ("opt_s", "optim")):
            assert line[field] == pytest.approx(titan.took_s[line["step"], span], rel=1e-3), field
        assert line["loss"] == 3.0 / line["step"]
    for line in steps(tmp_path, rank=3)[1:]:
        spent = line["data_wait_s"] + line["fwd_bwd_s"] + line["opt_s"]
        assert spent < line["step_time_s"] < trained_s
    assert {line["rank"] for line in lines(tmp_path, rank=3)} == {3}
    assert order(tmp_path, rank=3)[-1] == "run_end"
    assert events(tmp_path, "warning", rank=3) == []


def test_only_a_span_in_which_something_was_saved_is_a_save(titan: Titan, tmp_path: Path) -> None:
    titan.train(1, 5, evaluate_at=4)
    titan.close()
    told = order(tmp_path, rank=3)[2:]
    assert told == ["phase_end start_up", "1", "2", "ckpt_saved", "3", "4", "ckpt_saved", *told[7:]]
    assert told[7:] == [
        "eval_start",
        "phase_start evaluation",
        "phase_end evaluation",
        "eval_end",
        "5",
        "run_end",
    ]
    saved = events(tmp_path, "ckpt_saved", rank=3)
    assert [event["step"] for event in saved] == [2, 4]
    assert [event["duration_s"] for event in saved] == [
        pytest.approx(titan.took_s[step, "checkpoint_save"], rel=1e-3) for step in (2, 4)
    ]
    assert "durable" not in saved[0]
    assert steps(tmp_path, rank=3)[2]["ckpt_s"] == saved[0]["duration_s"]


def test_a_save_that_fails_is_told_although_its_span_ends(titan: Titan, tmp_path: Path) -> None:
    titan.train(1, 1)
    with pytest.raises(OSError, match="no space"):
        titan.save(really=True, error=OSError("no space"))
    titan.save(really=True)
    titan.close()
    (failed,) = events(tmp_path, "ckpt_failed", rank=3)
    assert failed["step"] == 1
    assert "OSError: no space" in failed["error"]
    assert len(events(tmp_path, "ckpt_saved", rank=3)) == 1


def test_the_step_in_which_the_data_ran_out_is_none(titan: Titan, tmp_path: Path) -> None:
    titan.train(1, 2, save_every=9)
    titan.set_step(3)
    with titan.span("step"), pytest.raises(StopIteration), titan.span("fetching_batch"):
        raise StopIteration
    titan.close()
    assert numbers(tmp_path, rank=3) == [1, 2]


def test_a_program_that_does_not_train_is_not_heard(tmp_path: Path) -> None:
    generator = Titan(tmp_path, source="generator")
    assert generator.logger.handlers == []
    assert list(tmp_path.iterdir()) == []


def test_the_run_directory_may_be_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAIN_LEDGER_RUN", str(tmp_path / "run"))
    titan = Titan(tmp_path / "dump")
    titan.train(1, 1)
    titan.close()
    assert numbers(tmp_path / "run", rank=3) == [1]
    assert not (tmp_path / "dump").exists()


def test_records_that_are_none_of_torchtitan_s_are_passed_over(tmp_path: Path) -> None:
    titan = Titan(tmp_path)
    titan.logger.info("free text")
    titan.logger.info("strange", extra={"log_type_name": 7})
    titan.logger.info("strange", extra={"log_type_name": "metric_value"})
    titan.train(1, 1)
    titan.close()
    assert numbers(tmp_path, rank=3) == [1]
    assert len(events(tmp_path, "warning", rank=3)) == 1  # a scalar without a value


def test_a_step_costs_little(tmp_path: Path) -> None:
    titan = Titan(tmp_path)
    handler: Any = titan.logger.handlers[0]
    records: list[logging.LogRecord] = []
    titan.hand_over = records.append  # type: ignore[method-assign]
    titan.set_step(1)
    with titan.span("step"), titan.span("fetching_batch"), titan.span("fwd_bwd"), titan.span("optim"):
        pass
    costs = []
    for _ in range(300):
        began = time.perf_counter()
        for record in records:
            handler.emit(record)
        costs.append(time.perf_counter() - began)
    titan.close()
    assert sorted(costs)[150] < 0.001 * slowness()
