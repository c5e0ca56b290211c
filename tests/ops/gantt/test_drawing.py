"""A Gantt of runs as ranks write them, whole and damaged."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from ops.traces import drawn, of
from train_ledger.chaos import fleet
from train_ledger.ops.gantt import GanttError, Selection, rank_ranges, step_range

T = 1_800_000_000.0


def _rank(run: Path, rank: int, *lines: dict[str, Any], host: str | None = None) -> None:
    path = run / "signals" / f"rank_{rank:05d}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    start = [{"t": T, "event": "run_start", "host": host, "world_size": 2}] if host else []
    with path.open("a") as file:
        for line in [*start, *lines]:
            file.write(json.dumps({"rank": rank, "attempt": 0, **line}) + "\n")


def test_a_step_lies_before_its_line_and_its_parts_are_marked_as_laid_out(tmp_path: Path) -> None:
    fields = {
        "step_time_s": 2.0,
        "data_wait_s": 0.25,
        "fwd_s": 0.5,
        "bwd_s": 1.0,
        "comm_wait_s": 0.5,
        "opt_s": 0.125,
    }
    _rank(tmp_path, 0, {"t": T + 10, "step": 41, "loss": 2.5, **fields})
    _, events = drawn(tmp_path)
    (step,) = of(events, cat="step")
    assert (step["name"], step["ts"], step["dur"]) == ("step 41", 1_800_000_008_000_000, 2_000_000)
    assert step["args"] == {"step": 41, "attempt": 0, "loss": 2.5}
    parts = {it["name"]: (it["ts"] - step["ts"], it["dur"]) for it in of(events, cat="part")}
    assert parts == {
        "data": (0, 250_000),
        "forward": (250_000, 500_000),
        "backward": (750_000, 1_000_000),
        "comm_wait": (1_250_000, 500_000),
        "optimizer": (1_750_000, 125_000),
    }
    assert {it["args"]["position"] for it in of(events, cat="part")} == {"reconstructed"}


def test_a_step_that_told_no_time_begins_where_the_one_before_ended(tmp_path: Path) -> None:
    _rank(tmp_path, 0, {"t": T + 1, "step": 1}, {"t": T + 4, "step": 2})
    _, events = drawn(tmp_path)
    first, second = of(events, cat="step")
    assert (first["dur"], first["args"]["start"]) == (0, "unknown")
    assert (second["dur"], second["args"]["start"]) == (3_000_000, "the end of the line before")


def test_the_first_step_is_at_least_as_long_as_its_parts(tmp_path: Path) -> None:
    _rank(tmp_path, 0, {"t": T + 9, "step": 1, "fwd_s": 1.0, "bwd_s": 2.0, "opt_s": "NaN"})
    _, events = drawn(tmp_path)
    (step,) = of(events, cat="step")
    assert (step["dur"], step["args"]["start"]) == (3_000_000, "reconstructed from its parts")


def test_phases_and_saves_have_the_times_that_the_rank_wrote(tmp_path: Path) -> None:
    _rank(
        tmp_path,
        0,
        {"t": T + 1, "event": "ckpt_start", "step": 40},
        {"t": T + 1, "event": "phase_start", "phase": "checkpoint_save"},
        {"t": T + 2, "event": "phase_end", "phase": "checkpoint_save"},
        {"t": T + 3, "step": 41},
        {"t": T + 9, "event": "ckpt_saved", "step": 40, "duration_s": 8.0, "durable": True},
        {"t": T + 9, "event": "phase_start", "phase": "data"},
        {"t": T + 30, "event": "exception", "type": "RuntimeError", "message": "CUDA error"},
    )
    gantt, events = drawn(tmp_path)
    (phase, waiting) = of(events, cat="phase")
    assert (phase["name"], phase["dur"]) == ("checkpoint_save", 1_000_000)
    assert (waiting["name"], waiting["dur"]) == ("data", 21_000_000)
    assert waiting["args"]["unfinished"] is True
    assert [(it["name"], it["dur"]) for it in of(events, cat="checkpoint")] == [("checkpoint 40", 8_000_000)]
    (fault,) = of(events, cat="fault")
    assert (fault["name"], fault["s"], fault["args"]["message"]) == (
        "exception RuntimeError",
        "p",
        "CUDA error",
    )
    assert gantt.tally.unfinished == 1


def test_rows_are_named_by_rank_and_host_and_attempts_are_marked(tmp_path: Path) -> None:
    fleet.write(tmp_path / "run", hosts=2, ranks_per_host=2, steps=20, fault="restart")
    gantt, events = drawn(tmp_path / "run")
    names = {it["args"]["name"] for it in of(events, ph="M", name="process_name")}
    assert names == {"rank 0 on node000", "rank 1 on node000", "rank 2 on node001", "rank 3 on node001"}
    assert len(of(events, name="attempt 1 starts")) == 4
    assert {it["args"]["attempt"] for it in of(events, cat="step")} == {0, 1}
    assert gantt.tally.attempts == {0, 1}


def test_a_host_whose_clock_is_off_stands_where_the_others_stand(tmp_path: Path) -> None:
    fleet.write(tmp_path / "run", hosts=2, ranks_per_host=2, steps=20, clock_offsets_s={"node001": 600.0})
    gantt, events = drawn(tmp_path / "run")
    ends = [[it["ts"] + it["dur"] for it in of(events, cat="step", name=f"step {n}")] for n in range(1, 21)]
    assert all(len(it) == 4 and max(it) - min(it) < 50_000 for it in ends)
    assert gantt.clocks.by_host["node001"] == pytest.approx(600.0, abs=0.05)


def test_only_what_is_asked_for(tmp_path: Path) -> None:
    fleet.write(tmp_path / "run", hosts=2, ranks_per_host=2, steps=20, step_time_s=10.0)
    first, last = step_range("5:7")
    _, events = drawn(tmp_path / "run", selection=Selection(first, last, rank_ranges("1-2")))
    assert {it["pid"] for it in events} == {1, 2}
    assert {it["args"]["step"] for it in of(events, cat="step")} == {5, 6, 7}
    _, all_events = drawn(tmp_path / "run")
    (tenth,) = of(all_events, name="step 10", pid=0)
    since_t = tenth["ts"] / 1e6 + 1
    _, events = drawn(tmp_path / "run", selection=Selection(since_t=since_t, until_t=since_t + 2))
    assert {it["args"]["step"] for it in of(events, cat="step")} == {10}


def test_numbers_may_be_drawn_as_graphs_and_a_nan_is_a_mark(tmp_path: Path) -> None:
    _rank(tmp_path, 0, {"t": T + 1, "step": 1, "loss": 2.5}, {"t": T + 2, "step": 2, "loss": "NaN"})
    _, events = drawn(tmp_path, counters=["loss"])
    assert [it["args"] for it in of(events, ph="C")] == [{"loss": 2.5}]
    assert [it["args"]["loss"] for it in of(events, name="loss is not finite")] == ["nan"]


def test_rotated_files_come_before_the_newest(tmp_path: Path) -> None:
    _rank(tmp_path, 0, {"t": T + 3, "step": 3})
    newest = tmp_path / "signals" / "rank_00000.jsonl"
    for age, step in ((2, 1), (1, 2)):
        line = {"t": T + step, "step": step, "rank": 0}
        newest.with_name(f"rank_00000.jsonl.{age}").write_text(json.dumps(line) + "\n")
    _, events = drawn(tmp_path)
    assert [it["name"] for it in of(events, cat="step")] == ["step 1", "step 2", "step 3"]
    assert of(events, name="step goes back") == []


def test_what_is_not_read_is_counted(tmp_path: Path) -> None:
    _rank(tmp_path, 0, {"t": T + 1, "step": 1})
    path = tmp_path / "signals" / "rank_00000.jsonl"
    path.write_bytes(path.read_bytes() + b'[1]\n{"t": 1, "step": 2, "rank": 3}\n{"t": 18')
    (tmp_path / "signals" / "rank_00001.jsonl").mkdir()
    gantt, _ = drawn(tmp_path)
    assert gantt.tally.steps == 1
    assert {reason.split(" × ")[1].split(" (")[0] for reason in gantt.tally.not_read_lines} == {
        "not_object",
        "line of another rank",
        "torn",
        "not_a_file",
    }


def _titan(run: Path, rank: int, *records: dict[str, Any], started: str = "20261130-010203-AAAAAA") -> Path:
    path = run / "structured_logs" / f"training.global_rank_{rank}.{started}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    common = {"rank": rank, "global_rank": rank, "source": "training", "host_name": "node007", "tid": 11}
    with path.open("a") as file:
        for record in records:
            file.write(json.dumps({**common, "log_type": "event", **record}) + "\n")
    return path


def _at(t: float, name: str, **more: Any) -> dict[str, Any]:
    return {"time_us": round(t * 1e6), "log_type_name": name, "step": 21, **more}


def test_torchtitan_s_spans_are_rows_by_source_and_task(tmp_path: Path) -> None:
    _titan(
        tmp_path,
        3,
        _at(T, "step_start"),
        _at(T + 0.5, "fwd_bwd_start"),
        _at(T + 1.5, "fwd_bwd_end", value=999.5),
        _at(T + 1.5, "rollout_start", task_name="rollout-1"),
        _at(T + 2.0, "checkpoint_save_start"),
        _at(T + 2.5, "checkpoint_save_error", message="disk full"),
        _at(T + 2.5, "checkpoint_save_end", value=500.0),
        _at(T + 3.0, "step_end", value=3000.0),
        _at(T + 4.0, "rollout_end", task_name="rollout-1", value=float("nan")),
        _at(T + 5.0, "optim_start"),
        _at(T + 6.0, "training_start", log_type="instant"),
    )
    gantt, events = drawn(tmp_path)
    assert {it["args"]["name"] for it in of(events, name="thread_name")} == {
        "training",
        "training · rollout-1",
        "events",
    }
    spans = {it["name"]: it for it in of(events, cat="span")}
    assert {name: it["dur"] for name, it in spans.items()} == {
        "fwd_bwd": 1_000_000,
        "rollout": 2_500_000,
        "checkpoint_save": 500_000,
        "step": 3_000_000,
        "optim": 1_000_000,
    }
    assert spans["fwd_bwd"]["args"] == {"step": 21, "attempt": 0, "measured_s": 0.9995}
    assert spans["optim"]["args"]["unfinished"] is True
    assert [it["name"] for it in of(events, cat="fault")] == ["checkpoint_save failed"]
    assert of(events, name="process_name")[0]["args"]["name"] == "rank 3 on node007"
    assert [it["name"] for it in of(events, cat="event")] == ["training_start"]
    assert gantt.tally.unfinished == 1


def test_torchtitan_s_scalars_may_be_drawn_as_graphs(tmp_path: Path) -> None:
    scalar = _at(T, "metric_value", event_name="global_valid_tokens", value=4096.0)
    _titan(tmp_path, 0, scalar, {**scalar, "value": float("nan")}, {**scalar, "event_name": None})
    _, events = drawn(tmp_path, counters=["global_valid_tokens"])
    assert [it["args"] for it in of(events, ph="C")] == [{"global_valid_tokens": 4096.0}]


def test_hosts_that_only_torchtitan_tells_of_are_held_to_one_clock(tmp_path: Path) -> None:
    for rank, host, ahead_s in ((0, "node000", 0.0), (1, "node001", 45.0)):
        records = [
            _at(T + ahead_s + 10 * step + at_s, f"step_{how}", step=step, host_name=host)
            for step in range(1, 9)
            for how, at_s in (("start", 0.0), ("end", 9.0))
        ]
        _titan(tmp_path, rank, *records)
    gantt, events = drawn(tmp_path)
    assert gantt.clocks.by_host == {"node000": 0.0, "node001": pytest.approx(45.0)}
    begins = [sorted(it["ts"] for it in of(events, cat="span", pid=rank)) for rank in (0, 1)]
    assert begins[0] == begins[1]


def test_files_may_have_other_names(tmp_path: Path) -> None:
    named = [_titan(tmp_path, rank, _at(T, "a_start"), _at(T + 1, "a_end")) for rank in (4, 5)]
    paths = [it.rename(tmp_path / f"copy-{n}.jsonl") for n, it in enumerate(named)]
    _, events = drawn(*paths)
    assert {it["pid"] for it in of(events, cat="span")} == {4, 5}


def test_each_file_of_torchtitan_is_an_attempt(tmp_path: Path) -> None:
    _titan(tmp_path, 0, _at(T, "optim_start"), started="20261130-010203-ZZZZZZ")
    _titan(
        tmp_path, 0, _at(T + 60, "optim_start"), _at(T + 61, "optim_end"), started="20261130-010303-AAAAAA"
    )
    _, events = drawn(tmp_path / "structured_logs")
    assert [it["name"] for it in of(events, cat="attempt")] == ["attempt 0 starts", "attempt 1 starts"]
    assert [(it["dur"], it["args"]["attempt"]) for it in of(events, cat="span")] == [(0, 0), (1_000_000, 1)]


def test_where_there_is_nothing_to_draw_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(GanttError, match="nothing to draw"):
        drawn(tmp_path)
    with pytest.raises(GanttError, match="no such file"):
        drawn(tmp_path / "gone")
    _rank(tmp_path, 0, {"t": T + 1, "step": 1})
    with pytest.raises(GanttError, match="none of the ranks"):
        drawn(tmp_path, selection=Selection(ranks=rank_ranges("7")))
    for wrong in ("", "5", "7:5", "a:b", ":"):
        with pytest.raises(GanttError):
            step_range(wrong)
    for wrong in ("", "5-3", "1,,2", "x"):
        with pytest.raises(GanttError):
            rank_ranges(wrong)


def test_faults_that_logs_tell_of_are_marked(tmp_path: Path) -> None:
    fleet.write(tmp_path, hosts=2, ranks_per_host=2, steps=5, clock_offsets_s={"node001": 60.0})
    (tmp_path / "hardware").mkdir()
    kernel = "1800000090.250000 node001 kernel: NVRM: Xid (PCI:0000:10:00): 79, pid=1, GPU has fallen off\n"
    (tmp_path / "hardware" / "node001.kern.log").write_text(kernel)
    gantt, events = drawn(tmp_path)
    (fault,) = of(events, cat="fault")
    assert (fault["name"], fault["ph"], fault["s"]) == ("xid", "i", "p")
    assert fault["ts"] == pytest.approx(1_800_000_030_250_000, abs=50_000)
    assert gantt.tally.faults == 1


def test_faults_of_logs_that_lie_elsewhere_are_marked(tmp_path: Path) -> None:
    run = tmp_path / "run"
    fleet.write(run, hosts=1, ranks_per_host=2, steps=5)
    (run / "run.json").write_text('{"log_dir": "../elsewhere"}')
    (tmp_path / "elsewhere").mkdir()
    line = "1800000030.5 kernel: NVRM: Xid (PCI:0000:10:00): 79, pid=1, GPU has fallen off\n"
    (tmp_path / "elsewhere" / "dmesg.log").write_text(line)
    gantt, _ = drawn(run)
    assert gantt.tally.faults == 1


@pytest.mark.parametrize("seed", range(40))
def test_of_damaged_files_the_trace_is_still_one(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    fleet.write(tmp_path, hosts=2, ranks_per_host=1, steps=12, fault="restart", checkpoint_every=4)
    _titan(
        tmp_path,
        1,
        *(
            _at(T + n, f"{name}_{how}", value=1.0)
            for n in range(5)
            for name in "ab"
            for how in ("start", "end")
        ),
    )
    for path in [*tmp_path.glob("*/*.jsonl"), tmp_path / "ranks.jsonl"]:
        path.write_bytes(_mutated(path.read_bytes(), chance))
    drawn(tmp_path, counters=["loss", "tps"])


def _mutated(content: bytes, chance: random.Random) -> bytes:
    lines = content.split(b"\n")
    for _ in range(chance.randrange(1, 12)):
        at = chance.randrange(len(lines))
        line = bytearray(lines[at])
        how = chance.randrange(7)
        if how == 0 and line:
            line[chance.randrange(len(line))] = chance.randrange(256)
        elif how == 1:
            line = line[: chance.randrange(len(line) + 1)]
        elif how == 2:
            lines.insert(chance.randrange(len(lines)), bytes(line))
        elif how == 3:
            line = bytearray(
                bytes(line).replace(b":1", b":" + chance.choice((b"-1e300", b"9e99", b"NaN", b'"x"')))
            )
        elif how == 4:
            line = bytearray(
                bytes(line).replace(b'"phase_end"', b'"phase_start"').replace(b"_end", b"_start")
            )
        elif how == 5:
            line = bytearray(bytes(line).replace(b"18000", chance.choice((b"17999", b"18001", b"28000"))))
        else:
            chance.shuffle(lines)
        if at < len(lines):
            lines[at] = bytes(line)
    return b"\n".join(lines)
