"""A log of any known format is read without being told which it is."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import math
import os
import time
from pathlib import Path

import pytest

from train_ledger.facts import Event, Fact, Fault, Step
from train_ledger.sources import FactReader, FileRead, read_facts
from train_ledger.sources.reading.wanted_lines import Shapes, WantedLines, needles_of

CHATTER = "gpu-a:4100:4177 [2] NCCL INFO Channel 03 : 2[2] -> 3[3] via P2P/IPC\n"


def megatron(step: int, *, at: str = "", loss: str = "2.500000E+00", more: str = "") -> str:
    told = f" lm loss: {loss} |" if loss else ""
    return (
        f" {at}iteration {step:8d}/   90000 | consumed samples: {step * 64:12d} | elapsed time per iteration "
        f"(ms): 1250.0 | learning rate: 1.500000E-04 | global batch size:    64 |{told} loss scale: 1.0 | "
        f"grad norm: 1.250 | number of skipped iterations:   0 | number of nan iterations:   0 |{more}\n"
    )


def facts_of(text: str | bytes, name: str = "train.log", **place: object) -> list[Fact]:
    reader = FactReader(name, **place)  # type: ignore[arg-type]
    data = text.encode() if isinstance(text, str) else text
    return [*reader.feed(data), *reader.end()]


def steps_of(text: str | bytes) -> list[Step]:
    return [it for it in facts_of(text) if isinstance(it, Step)]


def faults_of(text: str | bytes) -> list[Fault]:
    return [it for it in facts_of(text) if isinstance(it, Fault)]


def read(*paths: Path) -> tuple[list[Fact], list[FileRead]]:
    reading = read_facts(paths)
    facts = list(reading)
    return facts, reading.files


# -- which lines


def test_lines_are_counted_and_only_wanted_ones_are_cut_out() -> None:
    lines = WantedLines(Shapes([b"loss"]), lambda: False)
    assert list(lines.of(b"a\nthe loss is 2\nb\nloss\n\nc")) == [(2, b"the loss is 2"), (4, b"loss")]
    assert list(lines.of(b"loss")) == [(7, b"loss")]
    assert lines.lines == 7


def test_an_open_block_wants_the_next_lines_whatever_stands_in_them() -> None:
    wanted: list[bytes] = []
    lines = WantedLines(Shapes([b"open"]), lambda: bool(wanted) and not wanted[-1].startswith(b"close"))
    for _, line in lines.of(b"x\nopen\na\nb\nclose\ny\nopen"):
        wanted.append(line)
    assert wanted == [b"open", b"a", b"b", b"close", b"open"]


def test_a_mark_that_holds_another_is_not_looked_for_by_itself() -> None:
    assert needles_of([b"global_step: ", b"step: ", b"E2E"]) == (b"EE", b"step: ")


@pytest.mark.parametrize("size", [1, 7, 64, 4095, 4096, 4097, 1 << 20])
def test_pieces_of_any_size_tell_the_same(size: int) -> None:
    text = (CHATTER * 40 + megatron(10) + CHATTER * 40 + megatron(20) + "last words").encode()
    reader = FactReader("train.log")
    facts = [fact for at in range(0, len(text), size) for fact in reader.feed(text[at : at + size])]
    facts += reader.end()
    assert [(it.step, it.source) for it in facts] == [(10, "train.log:41"), (20, "train.log:82")]
    assert (reader.lines, reader.lines_told) == (83, 2)


def test_a_line_of_a_megabyte_is_cut_and_counted_and_the_next_is_read(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"{megatron(10)}{'x' * (1 << 20)}\n{megatron(20)}")
    facts, (file,) = read(log)
    assert [(it.step, it.source) for it in facts] == [(10, f"{log}:1"), (20, f"{log}:3")]
    assert file.damaged == {"longer than 64 KiB, cut": 1}


def test_bars_that_fill_more_than_the_longest_line_do_not_cost_the_record_behind_them(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    bar = "\r 10%|#         | {}/9000 [10:00<1:30:00,  1.50it/s]"
    record = "\r{{'loss': 2.5, 'grad_norm': 1.0, 'learning_rate': 0.001, 'epoch': 0.5}}\n" + bar
    bars = "".join(bar.format(number) for number in range(1, 9000)) + record.format(9000) + "\n"
    log.write_text(("x" * 99 + "\n") * 8000 + bars)
    facts, (file,) = read(log)
    assert [it.step for it in facts if isinstance(it, Step) and "loss" in it.values] == [9000]
    assert not file.damaged


@pytest.mark.parametrize("front", ["  3%|#     | 12/345 [00:07<06:50,  1.23s/it]", "^C", "{'loss': 2.5} "])
def test_a_traceback_glued_to_what_stood_in_the_line_is_found(front: str) -> None:
    lines = [front + "Traceback (most recent call last):", '  File "train.py", line 4', "ValueError: no rows"]
    (fault,) = facts_of("\n".join(lines))
    assert isinstance(fault, Fault)
    assert (fault.fault, fault.details["type"]) == ("exception", "ValueError")
    assert not facts_of("\n".join(["as in `Traceback (most recent call last):`", *lines[1:]]))


@pytest.mark.parametrize("mark", [" val_loss:", "out of memory", "it/s", ""])
def test_a_line_of_carriage_returns_costs_no_more_than_its_length(mark: str) -> None:
    started = time.process_time()
    facts_of(mark + "\r" * 60_000 + "\n")
    assert time.process_time() - started < 2


# -- whose lines


def test_rank_host_and_time_come_from_what_stands_in_front() -> None:
    line = (
        "node-07: [rank4]:[E214 04:05:06.500000000 ProcessGroupNCCL.cpp:2240] [PG ID 5 PG GUID 41 Rank 0]  "
        "failure detected by watchdog at work sequence id: 12 PG status: last enqueued work: 13, last "
        "completed work: 11\n"
    )
    written_t = 1_772_000_000.0
    (fault,) = facts_of(line, written_t=written_t)
    assert (fault.rank, fault.host) == (4, "node-07")
    assert fault.t is not None
    assert 0 < written_t - fault.t < 366 * 86_400
    assert isinstance(fault, Fault)
    assert (fault.details["rank_in_group"], fault.details["group"]) == (0, "41")


def test_the_rank_of_a_file_is_that_of_its_lines_but_not_of_the_kernels(tmp_path: Path) -> None:
    xid = "NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=python, GPU has fallen off the bus.\n"
    (tmp_path / "rank_12.log").write_text(megatron(10) + xid)
    facts, _ = read(tmp_path)
    assert [(type(it).__name__, it.rank) for it in facts] == [("Step", 12), ("Fault", None)]


def test_the_folders_of_one_host_tell_the_rank_those_of_two_do_not(tmp_path: Path) -> None:
    for host in ("a", "b"):
        for local_rank in (0, 1):
            folder = tmp_path / host / "run" / "attempt_0" / str(local_rank)
            folder.mkdir(parents=True)
            (folder / "stdout.log").write_text(megatron(10))
    facts, _ = read(tmp_path / "a")
    assert {it.rank for it in facts} == {0, 1}
    facts, _ = read(tmp_path)
    assert {it.rank for it in facts} == {None}


def test_when_each_rank_was_last_heard(tmp_path: Path) -> None:
    for rank, minute in ((0, 9), (1, 4)):
        lines = (megatron(step, at=f"[2026-02-03 04:0{minute}:0{step}] ") for step in (1, 2))
        (tmp_path / f"rank_{rank}.log").write_text("".join(lines))
    reading = read_facts([tmp_path])
    list(reading)
    assert reading.last_log_t[0] - reading.last_log_t[1] == 300.0


# -- what is one


def test_two_programs_that_tell_one_step_are_one_step() -> None:
    pipe = "steps: 10 loss: 2.5000 iter time (s): 1.250 samples/sec: 51.200\n"
    text = pipe + megatron(10) + pipe.replace("10", "11", 1) + megatron(11)
    steps = steps_of(text)
    assert [it.step for it in steps] == [10, 11]
    assert all(it.values["loss"] == 2.5 and "grad_norm" in it.values for it in steps)


def test_many_ranks_and_sequence_numbers_are_one_incident(tmp_path: Path) -> None:
    lines = [
        f"[rank{rank}]:[E ProcessGroupNCCL.cpp:560] [Rank {rank}] Watchdog caught collective operation "
        f"timeout: WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) "
        "ran for 600044 milliseconds before timing out.\n"
        for rank in range(4)
        for seq in (7, 8, 7)
    ]
    (tmp_path / "train.log").write_text("".join(lines))
    reading = read_facts([tmp_path])
    facts = list(reading)
    assert {(it.rank, it.details["seq"]) for it in facts if isinstance(it, Fault)} == {
        (rank, seq) for rank in range(4) for seq in (7, 8)
    }
    assert len(facts) == 8
    (incident,) = reading.incidents.all
    assert (incident.ranks, incident.seqs, incident.times) == ({0, 1, 2, 3}, {7, 8}, 8)
    assert reading.files[0].repeated == {"watchdog_timeout": 4}


def test_the_second_line_of_the_watchdog_tells_the_group_of_the_first() -> None:
    told = (
        "[rank2]:[E709 04:05:06.1 ProcessGroupNCCL.cpp:605] [Rank 2] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=90, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600031 milliseconds "
        "before timing out.\n"
        "[rank2]:[E709 04:05:06.2 ProcessGroupNCCL.cpp:1660] [PG 1 Rank 2] Exception (either an error or "
        "timeout) detected by watchdog at work: 90, last enqueued NCCL work: 94, "
        "last completed NCCL work: 89.\n"
    )
    (fault,) = faults_of(told)
    assert (fault.details["group"], fault.details["op"], fault.details["last_enqueued"]) == (
        "1",
        "ALLREDUCE",
        94,
    )


# -- attempts


def test_a_step_that_goes_back_is_a_new_attempt_and_what_is_repeated_is_rework(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(map(megatron, [*range(1, 13), *range(11, 15)])))
    facts, (file,) = read(log)
    assert [it.attempt for it in facts] == [0] * 12 + [1] * 4
    first, second = file.progress.attempts.values()
    assert (first.first_step, first.last_step, first.redone) == (1, 12, 0)
    assert (second.first_step, second.last_step, second.redone) == (11, 14, 2)


def test_where_every_tenth_step_is_told_all_ten_before_a_line_are_redone(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(map(megatron, [*range(10, 130, 10), 110, 120, 130])))
    _, (file,) = read(log)
    assert [it.redone for it in file.progress.attempts.values()] == [0, 20]


def test_a_restart_that_dies_again_redid_no_more_than_it_did(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(map(megatron, [*range(1, 21), 11, 12, *range(11, 26)])))
    _, (file,) = read(log)
    assert [it.redone for it in file.progress.attempts.values()] == [0, 2, 10]


def test_the_launcher_that_restarts_begins_an_attempt_though_no_step_goes_back() -> None:
    restart = (
        "I0203 04:05:06.007000 4100 torch/distributed/elastic/agent/server/api.py:900] [default] Worker "
        "group FAILED. 2/3 attempts left; will restart worker group\n"
    )
    facts = facts_of(megatron(1) + megatron(2) + restart + megatron(3))
    assert [it.attempt for it in facts if isinstance(it, Step)] == [0, 0, 1]
    assert [it.name for it in facts if isinstance(it, Event)] == ["restart"]


def test_a_rank_goes_on_in_its_next_file(tmp_path: Path) -> None:
    (tmp_path / "rank_3.log.1").write_text("".join(map(megatron, range(1, 6))))
    (tmp_path / "rank_3.log").write_text("".join(map(megatron, range(4, 8))))
    facts, _ = read(tmp_path)
    assert [(it.step, it.attempt) for it in facts] == [
        *((it, 0) for it in range(1, 6)),
        *((it, 1) for it in range(4, 8)),
    ]


def test_many_agents_that_tell_of_one_restart_begin_one_attempt() -> None:
    restart = "[default] Worker group FAILED. 2/3 attempts left; will restart worker group\n" * 8
    facts = facts_of(megatron(1) + megatron(2) + restart + megatron(3) + megatron(4))
    assert [it.attempt for it in facts if isinstance(it, Step)] == [0, 0, 1, 1]


def test_files_of_nobody_are_told_apart(tmp_path: Path) -> None:
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text(megatron(1) + megatron(2))
    facts, _ = read(tmp_path)
    assert {it.attempt for it in facts} == {0}


def test_time_outside_of_the_steps_is_what_their_times_leave_over(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(megatron(100, at="[2026-02-03 04:05:00] ") + megatron(110, at="[2026-02-03 04:05:20] "))
    _, (file,) = read(log)
    (attempt,) = file.progress.attempts.values()
    assert attempt.outside_steps_s == pytest.approx(20.0 - 10 * 1.25)


# -- what is believed


def test_source_code_that_a_program_printed_is_not_its_output() -> None:
    code = (
        'print0(f"step:{step+1}/{steps} train_time:{ms:.0f}ms step_avg:{ms/(step+1):.2f}ms", console=True)\n'
        "# iteration       10/     100 | lm loss: 2.0 | grad norm: 1.0 | learning rate: 1.0 |\n"
        'raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")\n'
        '    logger.error("NCCL error in: x, unhandled system error")\n'
    )
    reader = FactReader("train.log")
    assert [*reader.feed(code.encode()), *reader.end()] == []
    assert reader.formats == ()
    assert (reader.lines, reader.lines_told) == (4, 0)


def test_one_line_that_could_be_anything_is_not_believed_two_are() -> None:
    line = "step:1/50 train_time:120ms\n"
    reader = FactReader("train.log")
    assert [*reader.feed(line.encode()), *reader.end()] == []
    assert reader.damaged == {"a single line like a step's, not believed": 1}
    assert [it.step for it in steps_of(line + line.replace("step:1", "step:2"))] == [1, 2]


def test_one_line_that_can_be_nothing_else_is_believed() -> None:
    assert [it.step for it in steps_of(CHATTER + megatron(10) + CHATTER)] == [10]


def test_what_was_never_told_is_said_to_be_not_seen(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(megatron(1) + megatron(2))
    _, (file,) = read(log)
    (seen,) = file.formats
    assert {"tflops", "consumed_tokens"} <= set(seen.not_seen)
    assert not {"loss", "grad_norm"} & set(seen.not_seen)


# -- numbers that went wrong


def test_a_loss_that_is_no_number_is_told_once() -> None:
    faults = faults_of("".join(megatron(it, loss="NaN" if it > 3 else "2.0E+00") for it in range(1, 9)))
    assert [(it.fault, it.step) for it in faults] == [("nan_suspected", 4)]


def test_a_hidden_nan_shows_in_the_gradient_norm() -> None:
    lines = "".join(map(megatron, (1, 2))) + megatron(3).replace("grad norm: 1.250", "grad norm: nan")
    (fault,) = faults_of(lines)
    assert (fault.fault, fault.step) == ("nan_suspected", 3)


def test_one_in_a_document_that_is_read_as_a_whole_is_told_too(tmp_path: Path) -> None:
    rows = [{"epoch": 0.1 * it, "loss": 2.0 if it < 3 else math.nan, "step": 10 * it} for it in range(1, 6)]
    state = tmp_path / "trainer_state.json"
    state.write_text(json.dumps({"global_step": 50, "max_steps": 100, "log_history": rows}, indent=1))
    facts, (file,) = read(state)
    assert [it.step for it in facts if isinstance(it, Step)] == [10, 20, 30, 40, 50]
    assert [(it.fault, it.step) for it in facts if isinstance(it, Fault)] == [("nan_suspected", 30)]
    assert file.formats[0].steps == 5


# -- exceptions

TRACE = 'Traceback (most recent call last):\n  File "/job/data.py", line 9, in read\nOSError: stale handle\n'


def test_an_exception_after_which_training_went_on_is_an_event() -> None:
    facts = facts_of(megatron(1) + TRACE + "".join(map(megatron, (2, 3, 4))))
    (event,) = (it for it in facts if not isinstance(it, Step))
    assert isinstance(event, Event)
    assert (event.name, event.details["fatal"], event.source) == ("exception", False, "train.log:4")


@pytest.mark.parametrize("after", [(), (2, 3), (1, 2, 3)], ids=["the end", "few steps", "a restart"])
def test_one_after_which_it_did_not_is_a_fault(after: tuple[int, ...]) -> None:
    facts = facts_of(megatron(1) + TRACE + "".join(map(megatron, after)))
    (fault,) = (it for it in facts if not isinstance(it, Step))
    assert isinstance(fault, Fault)
    assert (fault.fault, fault.attempt) == ("exception", 0)


# -- files


def test_a_packed_file_is_read_as_it_is_and_a_torn_one_is_told(tmp_path: Path) -> None:
    packed = gzip.compress((megatron(1) + megatron(2) + os.urandom(4096).hex()).encode())
    (tmp_path / "train.log.gz").write_bytes(packed)
    (tmp_path / "torn.log.gz").write_bytes(packed[: len(packed) // 2])
    facts, files = read(tmp_path)
    assert [it.step for it in facts if it.source.startswith(str(tmp_path / "train"))] == [1, 2]
    why = {Path(it.path).name: it.not_read for it in files}
    assert why["train.log.gz"] is None
    assert "damaged" in (why["torn.log.gz"] or "")


def test_a_run_directory_is_read_through_its_own_files(tmp_path: Path) -> None:
    (tmp_path / "signals").mkdir()
    (tmp_path / "run.json").write_text("{}")
    older = [{"t": 100.0 + it, "step": it, "rank": 5, "attempt": 2, "loss": 2.0} for it in (1, 2)]
    newer = [
        {"t": 103.0, "step": 3, "rank": 5, "attempt": 2, "loss": "NaN"},
        {"t": 104.0, "event": "run_end", "rank": 5},
    ]
    for name, lines in (("rank_00005.jsonl.1", older), ("rank_00005.jsonl", newer)):
        (tmp_path / "signals" / name).write_text("".join(f"{json.dumps(it)}\n" for it in lines))
    (tmp_path / "comm_traces").mkdir()
    (tmp_path / "comm_traces" / "rank_5").write_bytes(b"\x80\x02}.")
    facts, files = read(tmp_path)
    assert [it.step for it in facts if isinstance(it, Step)] == [1, 2, 3]
    assert {it.attempt for it in facts if isinstance(it, Step)} == {2}
    assert [it.fault for it in facts if isinstance(it, Fault)] == ["nan_suspected"]
    assert [it.formats[0].name for it in files] == ["train-ledger signals"] * 2


def test_damaged_lines_of_our_own_are_counted_by_reason(tmp_path: Path) -> None:
    (tmp_path / "rank_00000.jsonl").write_text(
        '{"t": 1.0, "step": 1, "rank": 0}\n{"t": 2.0, "ste\n{"t": 3.0}\n'
    )
    _, (file,) = read(tmp_path)
    assert file.damaged == {"not_json": 1, "missing_field": 1}


def test_what_is_no_text_and_what_is_no_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(bytes(range(256)) * 64)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    _, files = read(tmp_path)
    why = {Path(it.path).name: it.not_read for it in files}
    assert why == {
        "weights.bin": "is no text",
        "pipe": "is no regular file",
        "gone": "no such file or directory",
    }


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (lzma.compress(b"loss 2.5\n" * 400), "is packed with xz; unpack it first (xz -d)"),
        (bz2.compress(b"loss 2.5\n" * 400), "is packed with bzip2; unpack it first (bzip2 -d)"),
        (b"\x28\xb5\x2f\xfdanything", "is packed with zstd; unpack it first (zstd -d)"),
        (
            "step 10 loss 2.5\n".encode("utf-16-le"),
            "is UTF-16; make it UTF-8 first (iconv -f UTF-16LE -t UTF-8)",
        ),
    ],
)
def test_what_to_do_with_a_log_that_is_packed_or_of_wide_characters(
    tmp_path: Path, content: bytes, why: str
) -> None:
    (tmp_path / "train.log").write_bytes(content)
    _, (file,) = read(tmp_path)
    assert file.not_read == why


def test_colours_and_progress_bars_hide_nothing() -> None:
    line = f"Epoch 1: 12%|#2| 512/4096\r\x1b[32m{megatron(10).strip()}\x1b[39m\n"
    assert [it.step for it in steps_of(line + line.replace("      10/", "      11/"))] == [10, 11]


def test_a_fact_without_a_time_has_none() -> None:
    (step,) = steps_of(megatron(10))
    assert math.isnan(step.t)


@pytest.mark.parametrize("front", [b"", b"".join(megatron(it).encode() for it in (1, 2))])
def test_nuls_that_a_truncation_or_a_crash_left_hide_no_line(tmp_path: Path, front: bytes) -> None:
    (tmp_path / "train.log").write_bytes(front + bytes(700) + megatron(3).encode() + megatron(4).encode())
    facts, (file,) = read(tmp_path)
    assert [it.step for it in facts][-2:] == [3, 4]
    assert file.not_read is None


@pytest.mark.parametrize("front", [bytes(5000), b"x" * 5000 + b"\n"])
def test_a_signal_file_is_known_by_its_name_where_its_first_line_is_damaged(
    tmp_path: Path, front: bytes
) -> None:
    lines = b"".join(b'{"t": 1.0, "step": %d, "rank": 3}\n' % step for step in (1, 2))
    (tmp_path / "rank_00003.jsonl").write_bytes(front + lines)
    facts, _ = read(tmp_path)
    assert [it.step for it in facts] == [1, 2]


def test_what_to_do_with_utf_16_is_said(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_bytes(megatron(1).encode("utf-16"))
    _, (file,) = read(tmp_path)
    assert "iconv" in str(file.not_read)


def test_what_is_handed_over_open_is_read_packed_or_not(tmp_path: Path) -> None:
    """As a shell's `<(…)` does; of a FIFO in a folder nobody knows whether somebody writes."""
    for name, content in (("plain", megatron(7).encode()), ("packed", gzip.compress(megatron(7).encode()))):
        (tmp_path / name).write_bytes(content)
        for fd in (os.open(tmp_path / name, os.O_RDONLY), filled_pipe(content)):
            (step,) = read_facts([Path(f"/dev/fd/{fd}")])
            os.close(fd)
            assert step.step == 7


def filled_pipe(content: bytes) -> int:
    reader, writer = os.pipe()
    os.write(writer, content)
    os.close(writer)
    return reader


def test_a_descriptor_that_is_closed_is_told() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    os.close(writer)
    reading = read_facts([Path(f"/dev/fd/{writer}")])
    assert not list(reading)
    assert reading.files[0].not_read == "bad file descriptor"


def test_an_error_of_cuda_without_an_exception_has_its_type_once() -> None:
    (fault,) = faults_of("[train.py:88] CUDA error: device-side assert triggered\n")
    assert (fault.rank, fault.details) == (
        None,
        {"type": "CUDA error", "message": "device-side assert triggered"},
    )


def test_names_that_count_on_take_no_more_room_than_a_limit() -> None:
    reader = FactReader("train.log")
    reader.feed("".join(f"step: {it} | loss: 2.0 | part_{it}: 3.0 | tps: 4\n" for it in range(6000)).encode())
    (seen,) = reader.formats
    assert (seen.steps, len(seen.fields)) == (6000, 4096)


# -- what is not read is said


def test_a_folder_behind_a_link_is_told_where_it_lies_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "logs" / "a").mkdir(parents=True)
    (tmp_path / "else").mkdir()
    (tmp_path / "logs" / "inside").symlink_to("a")
    (tmp_path / "logs" / "other").symlink_to("../else")
    _, files = read(tmp_path / "logs")
    ((path, why),) = [(Path(it.path).name, it.not_read) for it in files]
    assert path == "other"
    assert "is a link to a folder" in (why or "")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    _, files = read(tmp_path)
    assert [(it.path, it.not_read) for it in files] == [(str(tmp_path / "closed"), "permission denied")]


def test_of_very_many_files_the_rest_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("train_ledger.sources.reading.reading._MOST_FILES", 2)
    for name in "abc":
        (tmp_path / name).write_text(megatron(7))
    _, files = read(tmp_path)
    (told,) = [it for it in files if it.not_read]
    assert "beyond the first 2 files" in (told.not_read or "")


def test_logs_that_lie_elsewhere_are_found_by_run_json(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text('{"log_dir": "../elsewhere"}')
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "train.log").write_text(megatron(7))
    (step,), _ = read(tmp_path / "run")
    assert step.step == 7


def test_a_folder_of_logs_that_holds_the_run_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "run.json").write_text('{"log_dir": "."}')
    for path in (tmp_path / "logs" / "a.log", tmp_path / "b.log"):
        path.write_text(megatron(7))
    _, files = read(tmp_path)
    assert sorted(Path(it.path).name for it in files) == ["a.log", "b.log", "run.json"]


# -- what looks like trouble and is none


@pytest.mark.parametrize(
    "text",
    [
        "WARNING: if CUDA runs out, as in CUDA out of memory, take a smaller batch\n",
        "job:\n  rank: 3\n  exitcode: 1\n",
    ],
)
def test_advice_and_settings_are_no_faults(text: str) -> None:
    assert faults_of(text) == []


def test_the_name_of_a_stream_is_no_host() -> None:
    (step,) = steps_of("stdout:" + megatron(7))
    assert (step.step, step.host) == (7, None)


def test_a_list_where_a_word_is_wanted_is_no_error_of_ours(tmp_path: Path) -> None:
    deep = "[" * 900 + "]" * 900
    (tmp_path / "rank_00000.jsonl").write_text(
        f'{{"t": 5.0, "rank": 0, "event": "exception", "type": ["x"], "message": {deep}, "pid": {{}}}}\n'
    )
    (fault,) = [it for it in read(tmp_path)[0] if isinstance(it, Fault)]
    assert fault.details == {"type": "(list)", "message": "(list)", "pid": "(dict)"}


def test_a_barrier_names_who_did_not_come_though_a_mismatch_was_told_before() -> None:
    mismatch, barrier = faults_of(
        "[rank0]: Detected mismatch between collectives on ranks. Rank 0 is running collective: "
        "CollectiveFingerPrint(SequenceNumber=3, OpType=ALLREDUCE), but Rank 1 is running collective: "
        "CollectiveFingerPrint(SequenceNumber=3, OpType=BROADCAST).\n"
        "[rank0]: [Rank 0]: Ranks 1 failed to pass monitoredBarrier in 30000 ms\n"
    )
    assert (mismatch.details["what"], barrier.details["ranks_in_group"]) == ("mismatch", [1])
