"""What torchtitan's structured log tells, written here by a small writer of the same shape."""

from __future__ import annotations

import doctest
import json
import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train_ledger.facts import Event, Fault, Step
from train_ledger.sources.formats.torchtitan import torchtitan_process, torchtitan_record
from train_ledger.sources.formats.torchtitan.torchtitan_spans import TorchtitanSpans
from train_ledger.sources.lines.log_line import LogLine

FILE = "training.global_rank_3.20260304-050607-ABC123.jsonl"
BEGAN_US = 1_772_600_767_000_000


class Writer:
    """Writes records as one process of torchtitan does: a set step and its tags stand in every record."""

    def __init__(self, rank: int = 3, source: str = "training", pid: int = 4000) -> None:
        self.common = {"rank": rank, "global_rank": rank, "source": source, "host_name": "n1", "pid": pid}
        self.lines: list[str] = []
        self.step: int | None = None
        self.since = 0
        self.tags: list[str] = []
        self.now_us = BEGAN_US
        self.tid = 77
        self.task: str | None = None

    def write(self, name: str | None, log_type: str = "event", **more: Any) -> None:
        self.now_us += 1000
        record: dict[str, Any] = {"delta_ms": 0.1, "tid": self.tid, **self.common, "local_rank": 0}
        if self.step is not None:
            record |= {"step": self.step, "relative_step": self.since}
        if self.tags:
            record["step_tags"] = list(self.tags)
        record |= {
            "time": self.now_us // 1_000_000,
            "time_ms": self.now_us // 1000,
            "time_us": self.now_us,
            "log_type": log_type,
            "log_type_name": name,
            "event_name": None,
            "logger_name": "torchtitan.structured_logger",
            "seq_id": len(self.lines),
            "message": "",
        }
        if self.task is not None:
            record["task_name"] = self.task
        self.lines.append(json.dumps(record | more))

    def set_step(self, step: int, since: int) -> None:
        self.step, self.since, self.tags = step, since, []

    def begin(self, name: str) -> None:
        self.write(f"{name}_start")

    def finish(self, name: str, ms: float, error: str | None = None) -> None:
        if error is not None:
            self.write(f"{name}_error", message=f"[step {self.step}] {name}_error: {error}")
        self.write(f"{name}_end", value=ms)

    def span(self, name: str, ms: float, error: str | None = None) -> None:
        self.begin(name)
        self.finish(name, ms, error)

    def scalar(self, name: str, value: float) -> None:
        self.write("metric_value", "instant", event_name=name, value=value)

    def one_step(self, step: int, since: int, *, save: bool = False, loss: float = 2.5) -> None:
        self.set_step(step, since)
        self.begin("step")
        self.span("fetching_batch", 4.0)
        self.span("fwd_bwd", 200.0)
        self.span("fwd_bwd", 300.0)
        self.span("optim", 50.0)
        self.scalar("train.loss", loss)
        self.begin("checkpoint_save")
        if save:
            self.tags.append("checkpoint_save")
        self.finish("checkpoint_save", 1500.0 if save else 0.1)
        self.finish("step", 2100.0 if save else 600.0)


def facts(lines: list[str], name: str = FILE, reader: TorchtitanSpans | None = None) -> list:
    reader = reader or TorchtitanSpans()
    found = []
    for number, line in enumerate(lines, 1):
        found += reader.read(LogLine(line), f"/run/structured_logs/{name}:{number}")
    return [*found, *reader.end()]


def steps(found: list) -> list[Step]:
    return [it for it in found if isinstance(it, Step)]


def named(found: list, *names: str) -> list[Event]:
    return [it for it in found if isinstance(it, Event) and it.name in names]


def test_the_file_is_known_by_its_name_or_its_first_line() -> None:
    head = "\n".join(started().lines).encode()[:4096]
    assert TorchtitanSpans.fits(head, "anything.jsonl")
    assert TorchtitanSpans.fits(b'{"delta_ms": 0.1', f"/run/structured_logs/{FILE}")
    assert TorchtitanSpans.fits(b"", FILE)
    assert not TorchtitanSpans.fits(b'{"t": 1.0, "step": 1, "rank": 0}', "rank_00000.jsonl")
    assert not TorchtitanSpans.fits(b"[titan] log_type_name log_type", "log.txt")


def started(**about: Any) -> Writer:
    writer = Writer(**about)
    writer.write("structured_logger_started", "instant")
    writer.write("training_start", "instant")
    return writer


def test_a_step_holds_its_spans_in_seconds_and_its_scalars() -> None:
    writer = started()
    writer.one_step(1, 1)
    (step,) = steps(facts(writer.lines))
    assert (step.step, step.rank, step.host) == (1, 3, "n1")
    assert step.values == {
        "data_wait_s": 0.004,
        "span_fwd_bwd_s": 0.5,
        "opt_s": 0.05,
        "loss": 2.5,
        "ckpt_s": 0.0001,
        "step_time_s": 0.6,
        "relative_step": 1.0,
    }
    assert step.t == pytest.approx(writer.now_us / 1e6)


def test_that_every_step_asks_whether_to_save_is_no_save() -> None:
    writer = started()
    for step in (1, 2, 3):
        writer.one_step(step, step, save=step == 2)
    saves = named(facts(writer.lines), "ckpt_start", "ckpt_saved", "phase_start", "phase_end")
    assert [(it.name, it.step) for it in saves] == [("ckpt_start", 2), ("ckpt_saved", 2)]
    assert saves[1].details == {"duration_s": 1.5, "blocking_s": 1.5}
    assert saves[0].t < saves[1].t


def test_an_error_followed_by_a_normal_end_is_a_failed_save() -> None:
    writer = started()
    writer.set_step(23, 3)
    writer.tags.append("checkpoint_save")
    writer.span("checkpoint_save", 900.0, error="OSError: disk full")
    found = facts(writer.lines)
    (failed,) = named(found, "ckpt_failed", "ckpt_saved")
    assert (failed.name, failed.step, failed.details) == ("ckpt_failed", 23, {"error": "OSError: disk full"})
    (fault,) = [it for it in found if isinstance(it, Fault)]
    assert (fault.fault, fault.rank, fault.step) == ("checkpoint_failed", 3, 23)


def test_an_exception_is_told_by_the_innermost_span_that_it_leaves() -> None:
    writer = started()
    writer.set_step(5, 5)
    writer.begin("step")
    writer.begin("fwd_bwd")
    writer.finish("fwd_bwd", 10.0, error="RuntimeError: shapes differ: [2] and [3]")
    writer.finish("step", 11.0, error="RuntimeError: shapes differ: [2] and [3]")
    (fault,) = [it for it in facts(writer.lines) if isinstance(it, Fault)]
    assert (fault.fault, fault.step) == ("exception", 5)
    assert fault.details == {
        "type": "RuntimeError",
        "message": "shapes differ: [2] and [3]",
        "span": "fwd_bwd",
    }


def test_a_task_that_was_cancelled_is_no_fault() -> None:
    writer = started()
    writer.set_step(5, 5)
    writer.span("rollout", 10.0, error="CancelledError: ")
    assert not [it for it in facts(writer.lines) if isinstance(it, Fault)]


def test_durations_are_the_values_of_the_ends_whatever_the_clock_does() -> None:
    writer = started()
    writer.set_step(1, 1)
    writer.begin("step")
    writer.now_us -= 3_600_000_000
    writer.finish("step", 600.0)
    (step,) = steps(facts(writer.lines))
    assert step.values["step_time_s"] == 0.6
    assert step.t == pytest.approx(writer.now_us / 1e6)


def test_a_resume_is_known_by_the_first_step_and_so_is_the_load() -> None:
    writer = started()
    writer.span("checkpoint_load", 2500.0)
    writer.one_step(21, 1)
    found = facts(writer.lines)
    (loaded,) = named(found, "ckpt_loaded")
    assert (loaded.step, loaded.details) == (20, {"duration_s": 2.5})
    fresh = started()
    fresh.span("checkpoint_load", 0.2)
    fresh.one_step(1, 1)
    assert not named(facts(fresh.lines), "ckpt_loaded")


def test_without_step_spans_a_step_is_told_when_the_next_begins_or_the_file_ends() -> None:
    writer = started()
    for step in (21, 22, 23):
        writer.set_step(step, step - 20)
        if step == 22:
            writer.tags.append("gc")
            writer.span("gc_collect", 2.0)
        writer.span("Optimizer", 5.0)
        writer.scalar("train.loss", math.nan if step == 23 else 2.5)
    told = steps(facts(writer.lines))
    assert [it.step for it in told] == [21, 22, 23]
    assert [it.values.get("gc_s") for it in told] == [None, 0.002, None]
    assert told[0].values["opt_s"] == 0.005
    assert math.isnan(told[2].values["loss"])


def test_tags_stand_in_the_step() -> None:
    writer = started()
    writer.set_step(50, 50)
    writer.begin("step")
    writer.tags.append("gc")
    writer.span("gc_collect", 20.0)
    writer.finish("step", 600.0)
    (step,) = steps(facts(writer.lines))
    assert (step.values["tag_gc"], step.values["gc_s"]) == (1.0, 0.02)


def test_after_sigkill_it_is_known_what_the_rank_was_in() -> None:
    writer = started()
    writer.one_step(1, 1)
    writer.set_step(2, 2)
    writer.begin("step")
    writer.span("fetching_batch", 3.0)
    writer.begin("fwd_bwd")
    torn = [*writer.lines, writer.lines[-1][:140]]
    reader = TorchtitanSpans()
    found = facts(torn, reader=reader)
    assert [it.step for it in steps(found)] == [1]
    (left,) = named(found, "span_open")
    assert (left.rank, left.step) == (3, 2)
    assert left.details == {"span": "fwd_bwd", "inside": ["step"]}
    assert reader.damaged == {"not_json": 1}


def test_an_open_save_tells_its_phase() -> None:
    writer = started()
    writer.set_step(2, 2)
    writer.begin("step")
    writer.begin("checkpoint_save")
    (left,) = named(facts(writer.lines), "span_open")
    assert (left.details["phase"], left.details["inside"]) == ("checkpoint_save", ["step"])


def test_spans_that_never_end_take_no_more_room_than_a_limit() -> None:
    writer, reader = started(), TorchtitanSpans()
    writer.set_step(1, 1)
    for task in range(20_000):
        writer.task = f"Task-{task}"
        writer.begin("rl_rollout")
    writer.task = "Task-0"
    for _ in range(1000):
        writer.begin("deeper")
    left = named(facts(writer.lines, reader=reader), "span_open")
    assert len(left) == 1 << 14
    assert max(len(it.details["inside"]) for it in left) == 255


def test_an_error_without_its_start_is_told_all_the_same() -> None:
    writer = started()
    writer.set_step(2, 2)
    writer.finish("optim", 3.0, error="RuntimeError: lost")
    (fault,) = [it for it in facts(writer.lines) if isinstance(it, Fault)]
    assert fault.details["span"] == "optim"


def test_tasks_and_threads_do_not_close_each_others_spans() -> None:
    writer = started()
    writer.set_step(1, 1)
    for task in ("Task-1", "Task-2"):
        writer.task = task
        writer.begin("fwd_bwd")
    writer.task = "Task-1"
    writer.finish("fwd_bwd", 5.0)
    writer.tid, writer.task = 78, None
    writer.span("fwd_bwd", 7.0)
    (left,) = named(facts(writer.lines), "span_open")
    assert left.details["span"] == "fwd_bwd"


def test_evaluation_and_teardown_are_phases() -> None:
    writer = started()
    writer.set_step(10, 10)
    writer.span("eval", 4000.0)
    writer.span("torch_distributed_teardown", 30.0)
    found = named(facts(writer.lines), "eval_start", "eval_end", "phase_start", "phase_end")
    assert [it.name for it in found] == ["eval_start", "eval_end", "phase_start", "phase_end"]
    assert found[1].details == {"duration_s": 4.0}
    assert found[3].details == {"phase": "shutdown", "duration_s": 0.03}
    assert [it.rank for it in named(facts(writer.lines), "run_end")] == [3]


def test_before_the_first_step_the_rank_starts_up() -> None:
    writer = Writer()
    writer.begin("trainer_init")
    writer.span("model_parallelism_init", 800.0)
    writer.finish("trainer_init", 900.0)
    found = named(facts(writer.lines), "phase_start", "phase_end")
    assert [(it.name, it.details["phase"], it.details["span"]) for it in found] == [
        ("phase_start", "start_up", "trainer_init"),
        ("phase_end", "start_up", "trainer_init"),
    ]


def test_ranks_of_meshes_that_do_not_train_are_not_melted_with_those_that_do() -> None:
    trainer, generator = (
        started(rank=0, source="rl_trainer"),
        started(rank=0, source="rl_generator", pid=5000),
    )
    trainer.one_step(7, 7)
    generator.set_step(7, 7)
    generator.span("rl_generate", 40.0)
    generator.set_step(8, 8)
    generator.span("rl_generate", 40.0, error="ValueError: no tokens")
    found = facts(trainer.lines + generator.lines)
    assert [(it.rank, it.step, "span_fwd_bwd_s" in it.values) for it in steps(found)] == [(0, 7, True)]
    (measured,) = [it for it in named(found, "metrics") if it.step == 7]
    assert (measured.rank, measured.details) == (
        None,
        {"span_rl_generate_s": 0.04, "mesh": "rl_generator", "mesh_rank": 0},
    )
    (fault,) = [it for it in found if isinstance(it, Fault)]
    assert [it.rank for it in named(found, "run_start")] == [0]
    assert (fault.rank, fault.details["mesh"], fault.details["mesh_rank"]) == (None, "rl_generator", 0)


def test_a_loss_of_a_stage_that_has_none_is_left_out() -> None:
    writer = started()
    writer.one_step(1, 1, loss=-1.0)
    (step,) = steps(facts(writer.lines))
    assert "loss" not in step.values


@pytest.mark.parametrize(
    "record",
    [
        {"log_type_name": None, "step": 4, "rank": 3},
        {"log_type": "event", "log_type_name": "fwd_bwd_start", "step": 4, "rank": 3},
        {"log_type_name": "fwd_bwd_end", "value": "long", "step": "four", "rank": -1},
        {"log_type_name": ["x"], "step": 10**400, "rank": True, "time_us": "noon", "step_tags": "gc"},
        {"log_type_name": "metric_value", "event_name": None, "value": 3, "step": 4},
        {"log_type_name": "x_end", "value": None, "source": 5, "task_name": {"a": 1}, "tid": []},
        {},
    ],
)
def test_records_that_lack_or_garble_things_raise_nothing(record: dict[str, Any]) -> None:
    writer = started()
    writer.lines += [json.dumps(record), json.dumps({**record, "message": 5})]
    writer.one_step(5, 5)
    told = steps(facts(writer.lines))
    assert told[-1].step == 5
    assert told[-1].rank == 3


@pytest.mark.parametrize("line", ["[1]", "null", "7", '"x"', "{", "", "   ", "{" * 5000, "[" * 5000])
def test_lines_that_are_no_records_are_counted(line: str) -> None:
    reader = TorchtitanSpans()
    assert facts([line], reader=reader) == []
    assert reader.damaged["not_json"] == (1 if line.strip() else 0)


def test_the_rank_is_taken_from_the_name_of_the_file_where_no_record_tells_it() -> None:
    lines = [json.dumps({"log_type": "event", "log_type_name": "step_end", "value": 100.0, "step": 3})]
    (step,) = steps(facts(lines))
    assert (step.rank, step.values["step_time_s"]) == (3, 0.1)


def test_joined_files_of_two_starts_are_two_processes() -> None:
    first, second = started(), started()
    first.one_step(11, 11)
    first.set_step(12, 12)
    first.begin("step")
    second.one_step(11, 1)
    found = facts(first.lines + second.lines)
    assert [it.step for it in steps(found)] == [11, 11]
    assert [it.details["span"] for it in named(found, "span_open")] == ["step"]


def test_a_task_that_lags_does_not_turn_the_step_back() -> None:
    writer = started()
    writer.one_step(1, 1)
    writer.set_step(2, 2)
    writer.begin("step")
    writer.write("metric_value", "instant", event_name="late", value=1.0, step=1)
    writer.finish("step", 500.0)
    assert [(it.step, "late" in it.values) for it in steps(facts(writer.lines))] == [(1, False), (2, False)]


def test_mutated_lines_raise_nothing() -> None:
    writer = started()
    for step in range(1, 40):
        writer.one_step(step, step, save=step % 10 == 0)
    rng, reader = random.Random(13), TorchtitanSpans()
    for number in range(10_000):
        data = bytearray(rng.choice(writer.lines).encode())
        for _ in range(rng.randint(0, 4)):
            at = rng.randrange(len(data) + 1)
            data[at : at + rng.randint(0, 5)] = rng.randbytes(rng.randint(0, 5))
        for fact in reader.read(LogLine(data.decode("utf-8", "replace")), f"{FILE}:{number}"):
            assert isinstance(fact, Step | Event | Fault)
    list(reader.end())


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KINDS = ["step_start", "step_end", "a_error", "metric_value", "checkpoint_save_end"]
records = st.dictionaries(
    st.sampled_from([*torchtitan_record.Record.__struct_fields__]), json_values | st.sampled_from(KINDS)
)


@settings(max_examples=100)
@given(st.lists(records, max_size=12))
def test_any_records_raise_nothing(lines: list[dict[str, Any]]) -> None:
    for fact in facts([json.dumps(it) for it in lines]):
        assert isinstance(fact, Step | Event | Fault)


def test_half_a_pair_of_utf_16_is_replaced() -> None:
    record = torchtitan_record.read_record(r'{"host_name": "n\ud800", "message": "a \ud83d!"}')
    assert record is not None
    assert (record.host_name, record.message) == ("n\ufffd", "a \ufffd!")


@pytest.mark.parametrize("module", [torchtitan_process, torchtitan_record])
def test_the_examples(module) -> None:
    assert doctest.testmod(module).failed == 0
