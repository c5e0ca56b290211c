"""What is printed and logged is counted, and arrives as it would without us."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signals.scripts import run_to_end, signal_lines
from train_ledger.signals.sampling.output import Output


@pytest.fixture
def stdout() -> io.TextIOWrapper:
    """A stream like Python's own: pytest, too, puts others in the place of those."""
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


@pytest.fixture
def output(stdout: io.TextIOWrapper) -> Iterator[Output]:
    made = Output([stdout, stdout, None])
    yield made
    made.close()


class Slow(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        time.sleep(0.02)


def test_bytes_of_all_that_is_printed(output: Output, stdout: io.TextIOWrapper) -> None:
    print("loss", 2.5, file=stdout)
    print("Verlust – ∞", file=stdout, flush=True)
    stdout.write("x" * 100)
    written = stdout.buffer.getvalue()  # type: ignore[attr-defined]
    assert written == b"loss 2.5\n" + "Verlust – ∞\n".encode() + b"x" * 100
    assert output.take()["stdout_bytes"] == len(written)
    print("more", file=stdout)
    assert output.take()["stdout_bytes"] == len(written) + 5


def test_the_stream_stays_what_it_is(output: Output, stdout: io.TextIOWrapper) -> None:
    assert isinstance(stdout, io.TextIOWrapper)
    assert stdout.encoding == "utf-8"
    assert not stdout.isatty()
    with contextlib.redirect_stdout(stdout):
        print("four", end="")
        with contextlib.redirect_stdout(io.StringIO()) as elsewhere:
            print("elsewhere")
    assert elsewhere.getvalue() == "elsewhere\n"
    assert stdout.write("!") == 1
    assert output.take()["stdout_bytes"] == 5


def test_a_stream_that_takes_more_than_text_is_given_it() -> None:
    class Tee(io.StringIO):
        def write(self, text: str, colour: str = "") -> int:
            return super().write(colour + text)

    tee = Tee()
    counting = Output([tee])
    tee.write("a", colour="red ")
    tee.write(text="b")
    counting.close()
    assert tee.getvalue() == "red ab"


def test_a_handler_that_is_added_later_is_timed(output: Output) -> None:
    log = logging.getLogger("test.output")
    log.addHandler(Slow())
    try:
        began_s = time.perf_counter()
        log.warning("slow")
        log.warning("slow")
        took_s = time.perf_counter() - began_s
        assert 0.04 <= output.take()["log_s"] <= took_s
        assert output.take()["log_s"] == 0.0
    finally:
        log.handlers.clear()


def test_a_handler_that_prints_counts_its_time_once(output: Output, stdout: io.TextIOWrapper) -> None:
    class Prints(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            time.sleep(0.02)
            print(record.getMessage(), file=stdout)
            logging.getLogger("test.output.inner").warning("inner")

    log, inner = logging.getLogger("test.output.outer"), logging.getLogger("test.output.inner")
    log.propagate = inner.propagate = False
    log.addHandler(Prints())
    inner.addHandler(Slow())
    began = time.perf_counter()
    log.warning("outer")
    assert output.take()["log_s"] <= time.perf_counter() - began
    log.handlers.clear()
    inner.handlers.clear()


def test_what_is_put_in_is_taken_out(stdout: io.TextIOWrapper) -> None:
    before = logging.Logger.callHandlers
    output = Output([stdout])
    assert logging.Logger.callHandlers is not before
    output.close()
    assert logging.Logger.callHandlers is before
    assert "write" not in vars(stdout)
    assert "flush" not in vars(stdout)


def test_who_wraps_the_stream_after_us_stays_and_works_on(stdout: io.TextIOWrapper) -> None:
    output = Output([stdout])
    ours = stdout.write

    def theirs(text: str) -> int:
        return ours(text.upper())

    stdout.write = theirs  # type: ignore[method-assign,assignment]
    output.close()
    print("loud", file=stdout)
    assert stdout.buffer.getvalue() == b"LOUD\n"  # type: ignore[attr-defined]


def test_what_another_has_wrapped_before_us_is_given_back(stdout: io.TextIOWrapper) -> None:
    theirs = stdout.write
    stdout.write = theirs  # type: ignore[method-assign]
    output = Output([stdout])
    stdout.write("four")
    assert output.take()["stdout_bytes"] == 4
    output.close()
    assert vars(stdout)["write"] is theirs


def test_a_stream_that_lets_nothing_be_set_is_not_counted() -> None:
    class Closed:
        __slots__ = ()

        def write(self, text: str) -> int:
            return len(text)

        def flush(self) -> None:
            """Nothing waits."""

    output = Output([Closed()])
    assert output.take() == {"log_s": 0.0}
    output.close()


def test_an_error_of_the_stream_is_the_callers(output: Output, stdout: io.TextIOWrapper) -> None:
    stdout.close()
    with pytest.raises(ValueError, match="closed"):
        print("nowhere", file=stdout)
    assert output.take()["stdout_bytes"] == 0


def test_no_stdout_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    output = Output()
    assert output.take() == {"log_s": 0.0}
    output.close()


def test_in_the_line_of_a_step(tmp_path: Path) -> None:
    script = "print('x' * 99)\nmonitor.step(1)\nprint('x' * 99)\nmonitor.step(2)\nmonitor.close()\n"
    ended = run_to_end(tmp_path, script)
    assert ended.stdout == 2 * ("x" * 99 + "\n")
    lines: list[dict[str, Any]] = [line for line in signal_lines(tmp_path) if "gc_s" in line]
    assert [line["stdout_bytes"] for line in lines] == [100, 200]
    assert all(0 <= line["log_s"] < 0.1 for line in lines), json.dumps(lines)
