"""What is logged is in the file or counted, and the caller never notices which."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from train_ledger import SignalLogger
from train_ledger.fields import read_number
from waiting import wait_until


@pytest.fixture
def logger(tmp_path: Path) -> Iterator[SignalLogger]:
    made = SignalLogger(tmp_path, rank=5)
    yield made
    made.close()


def lines(logger: SignalLogger) -> list[dict[str, Any]]:
    logger.flush(60)
    logger.close()
    content = logger.path.read_bytes() if logger.path.exists() else b""
    return [json.loads(line) for line in content.splitlines()]


def hold_the_file(logger: SignalLogger) -> Callable[[], None]:
    """Writing hangs, as on a dead file server, until what is returned is called."""
    let_go = threading.Event()
    write = logger._sink.write

    def held(data: bytes) -> bytes:
        let_go.wait(120)
        return write(data)

    logger._sink.write = held  # type: ignore[method-assign]
    return let_go.set


def test_a_line_a_step(logger: SignalLogger) -> None:
    logger.log(step=41, loss=2.25, lr=1e-4)
    (line,) = lines(logger)
    assert logger.path.name == "rank_00005.jsonl"
    assert abs(line["t"] - time.time()) < 120
    assert (line["step"], line["rank"], line["attempt"]) == (41, 5, 0)
    assert (line["loss"], line["lr"], line["dropped_lines"]) == (2.25, 1e-4, 0)


def test_non_finite_numbers_are_words(logger: SignalLogger) -> None:
    logger.log(step=1, loss=math.nan, grad_norm=math.inf)
    (line,) = lines(logger)
    assert (line["loss"], line["grad_norm"]) == ("NaN", "Infinity")
    assert read_number(line["grad_norm"]) == math.inf


def test_what_is_no_number_is_left_out_counted_and_said_once(
    capfd: pytest.CaptureFixture[str], logger: SignalLogger
) -> None:
    class Tensor:
        def __float__(self) -> float:
            raise AssertionError("a tensor was synchronised")

    for step in (1, 2):
        logger.log(step=step, loss=Tensor(), lr=0.5)  # type: ignore[arg-type]
    logger.log(step="three", lr=0.5)  # type: ignore[arg-type]
    first, second = lines(logger)
    assert "loss" not in first
    assert second["lr"] == 0.5
    assert logger.refused_values == 3
    assert capfd.readouterr().err.count("loss: a Tensor is no plain number") == 1


@pytest.mark.parametrize(
    ("step", "written"), [(3.0, 3), (3.5, None), (math.nan, None), (True, None), (None, None)]
)
def test_a_step_is_a_whole_number(logger: SignalLogger, step: Any, written: int | None) -> None:
    logger.log(step=step)
    assert [line["step"] for line in lines(logger)] == ([] if written is None else [written])


def test_the_attempt_is_one_higher_than_the_last_in_the_file(tmp_path: Path) -> None:
    for attempt in range(3):
        logger = SignalLogger(tmp_path, rank=5)
        logger.log(step=1)
        assert lines(logger)[-1]["attempt"] == attempt


def test_many_threads_lose_nothing(logger: SignalLogger) -> None:
    def work(base: int) -> None:
        for n in range(500):
            logger.log(step=base + n, loss=1.0)

    threads = [threading.Thread(target=work, args=(1000 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({line["step"] for line in lines(logger)}) == 2000
    assert logger.dropped_lines == 0


def test_a_file_that_hangs_costs_the_oldest_lines_and_they_are_counted(tmp_path: Path) -> None:
    logger = SignalLogger(tmp_path, rank=0, queue_lines=100)
    let_go = hold_the_file(logger)
    logger.log(step=0)
    wait_until(lambda: not logger._queue)  # the writer has taken this line and hangs with it
    began = time.perf_counter()
    for step in range(1, 251):
        logger.log(step=step)
    assert time.perf_counter() - began < 30
    assert logger.dropped_lines == 150
    let_go()
    assert logger.flush(60)
    logger.log(step=251)
    written = lines(logger)
    assert [line["step"] for line in written] == [0, *range(151, 252)]
    assert next(line for line in written if line["step"] == 151)["dropped_lines"] == 150


def test_a_file_that_hangs_does_not_keep_the_process(logger: SignalLogger) -> None:
    let_go = hold_the_file(logger)
    logger.log(step=1)
    began = time.monotonic()
    assert not logger.flush(0.2)
    logger.close(timeout_s=0.3)
    assert time.monotonic() - began < 30
    logger.log(step=2)  # nothing is raised after the end either
    let_go()


def test_a_refused_file_is_said_once_and_written_when_it_can_be(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    run.write_text("in the way")
    logger = SignalLogger(run, rank=0)
    logger.log(step=1)
    wait_until(lambda: bool(logger._complaints._known))
    run.unlink()
    logger.log(step=2)
    assert logger.flush(60)
    assert [line["step"] for line in lines(logger)] == [1, 2]
    assert capfd.readouterr().err.count("Not a directory") == 1


def test_a_program_that_just_ends_loses_nothing(tmp_path: Path) -> None:
    script = f"import train_ledger; train_ledger.SignalLogger({str(tmp_path)!r}, 0).log(step=1, loss=2.0)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
    (line,) = (tmp_path / "signals" / "rank_00000.jsonl").read_bytes().splitlines()
    assert json.loads(line)["loss"] == 2.0


def test_a_stderr_that_nobody_reads_holds_nobody_up(tmp_path: Path) -> None:
    script = f"""
import fcntl, os, time, train_ledger
os.set_blocking(2, False)
try:
    while os.write(2, b"x" * 4096): pass
except BlockingIOError:
    os.set_blocking(2, True)
logger = train_ledger.SignalLogger({str(tmp_path)!r}, 0)
began = time.monotonic()
logger.log(step=1, loss=None, lr=1.0)
assert time.monotonic() - began < 30
logger.close()
print("ended")
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.wait(90) == 0  # nothing has been read from its stderr
    assert process.communicate()[0] == b"ended\n"


def test_a_forked_child_writes_nothing(logger: SignalLogger) -> None:
    hold = hold_the_file(logger)
    logger.log(step=1)
    child = os.fork()
    if child == 0:  # a loader's worker, with the parent's lines in its copy of the queue
        logger.log(step=99)
        logger.flush(1)
        logger.close()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    hold()
    assert status == 0
    assert [line["step"] for line in lines(logger)] == [1]


def test_what_changes_while_it_is_written_costs_nothing(logger: SignalLogger) -> None:
    changing: dict[str, Any] = {"n": 0}
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            changing[f"k{len(changing)}"] = list(changing)[:50]
            if len(changing) > 300:
                changing.clear()

    thread = threading.Thread(target=change)
    thread.start()
    for step in range(200):
        logger.event("warning", step=step, changing=changing, within=[changing])
    stop.set()
    thread.join()
    assert [line["step"] for line in lines(logger)] == list(range(200))
    assert logger.dropped_lines == 0


def test_no_code_of_what_is_logged_runs(logger: SignalLogger) -> None:
    class Mine:
        def __str__(self) -> str:
            raise KeyError

        __repr__ = __str__
        __class__ = property(__str__)  # type: ignore[assignment,arg-type]

    logger.event("warning", keys={Mine(): 1, 2: Mine()}, mine=Mine())
    logger.event(Mine(), t=Mine(), step=Mine())  # type: ignore[arg-type]
    logger.log(step=1, loss=2.0)
    first, second, step = lines(logger)
    assert (first["keys"], first["mine"]) == ({"Mine": 1, "2": "Mine"}, "Mine")
    assert (second["event"], "step" in second) == ("Mine", False)
    assert step["loss"] == 2.0


def test_a_line_that_cannot_be_written_is_counted_and_the_others_are(logger: SignalLogger) -> None:
    class Changed(dict[str, float]):
        def __iter__(self) -> Iterator[str]:
            raise LookupError

    logger.log(step=1)
    logger.log_fields(2, Changed(loss=1.0))
    logger.log_fields(3, {object(): 1.0})  # type: ignore[dict-item]
    logger.log(step=4)
    assert [line["step"] for line in lines(logger)] == [1, 4]
    assert logger.dropped_lines == 2


def test_an_event_is_what_it_was_when_it_was_told(logger: SignalLogger) -> None:
    given = {"order": ["tp", "dp"]}
    let_go = hold_the_file(logger)
    logger.log(step=1)
    logger.flush(0.1)  # the writer hangs with this line
    logger.event("warning", given=given)
    given["order"].append("pp")
    given["later"] = []
    let_go()
    assert lines(logger)[-1]["given"] == {"order": ["tp", "dp"]}


@pytest.mark.parametrize("step", [numpy.int64(3), numpy.uint8(3), numpy.float32(3), numpy.array(3)])
def test_a_step_may_be_numpys(logger: SignalLogger, step: Any) -> None:
    logger.log(step=step, loss=numpy.float32(0.5), count=numpy.int32(7))
    logger.event("ckpt_start", step=step)
    at_step, event = lines(logger)
    assert (at_step["step"], at_step["loss"], at_step["count"], event["step"]) == (3, 0.5, 7, 3)


def test_an_event_whose_step_is_a_tensor_is_written_without_it(logger: SignalLogger) -> None:
    class Tensor:
        device = "cuda:0"

        def __index__(self) -> int:
            raise AssertionError("a tensor was synchronised")

    logger.event("ckpt_saved", step=Tensor())  # type: ignore[arg-type]
    (line,) = lines(logger)
    assert "step" not in line
    assert logger.refused_values == 1


def test_a_program_started_without_stderr_writes_into_no_other_file(tmp_path: Path) -> None:
    script = f"""
import os, train_ledger
taken = os.open({str(tmp_path / "weights")!r}, os.O_RDWR | os.O_CREAT)
assert taken == 2, taken
logger = train_ledger.SignalLogger({str(tmp_path)!r}, 0)
logger.log(step=1, loss=None)
logger.close()
"""
    closed = 'exec "$0" -c "$1" 2>&-'
    subprocess.run(["/bin/sh", "-c", closed, sys.executable, script], check=True, timeout=120)
    assert (tmp_path / "weights").read_bytes() == b""
    assert b'"step":1' in (tmp_path / "signals" / "rank_00000.jsonl").read_bytes()


def test_a_stderr_that_became_another_file_is_left_alone(tmp_path: Path) -> None:
    script = f"""
import os, train_ledger
logger = train_ledger.SignalLogger({str(tmp_path)!r}, 0)
os.close(2)
assert os.open({str(tmp_path / "weights")!r}, os.O_RDWR | os.O_CREAT) == 2
logger.log(step=1, loss=None)
logger.close()
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
    assert (tmp_path / "weights").read_bytes() == b""
