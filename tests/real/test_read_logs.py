"""Real logs, whole, each through the command's own reading: what happened in them is what is told."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from train_ledger.facts import Event, Fact, Fault, Step
from train_ledger.sources import FileRead, Incidents, read_facts

LOGS = Path(__file__).parents[3] / "shared" / "data" / "logs"
pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason="real logs are not here")
ALL = sorted(it for it in LOGS.rglob("*") if it.is_file()) if LOGS.is_dir() else []
OF_TRAINERS = {
    "01_": "Megatron",
    "03_": "Megatron",
    "04_": "Megatron",
    "06_": "Hugging Face",
    "07_": "Megatron",
    "08_": "DeepSpeed",
    "10_": "DeepSpeed",
    "11_": "nanoGPT",
    "11b_": "nanoGPT",
}
"""What begins a file's name, and what begins the name of a format that told steps of it."""


def read(name: str) -> tuple[list[Fact], FileRead]:
    (path,) = (it for it in ALL if it.name.startswith(name))
    reading = read_facts([path])
    facts = list(reading)
    return facts, reading.files[0]


def faults(facts: list[Fact]) -> list[Fault]:
    return [it for it in facts if isinstance(it, Fault)]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name[:20])
def test_every_file_is_read_to_its_end(path: Path) -> None:
    reading = read_facts([path])
    facts = list(reading)
    (file,) = reading.files
    content = path.read_bytes()
    assert file.not_read is None
    assert file.lines == content.count(b"\n") + (not content.endswith(b"\n"))
    assert 0 <= file.of_no_format <= file.lines
    places = [int(it.source.rpartition(":")[2]) for it in facts]
    assert all(1 <= place <= file.lines for place in places)
    assert all(it.source.startswith(str(path)) for it in facts)
    told = Counter((it.source, type(it).__name__, it.step, str(it)) for it in facts)
    assert not [it for it, times in told.items() if times > 1]


@pytest.mark.parametrize("name", sorted(OF_TRAINERS))
def test_the_trainer_is_recognised(name: str) -> None:
    _, file = read(name)
    assert any(it.name.startswith(OF_TRAINERS[name]) for it in file.formats if it.steps)


def test_a_step_that_two_programs_tell_is_one() -> None:
    facts, _ = read("03_")
    steps = Counter(it.step for it in facts if isinstance(it, Step))
    assert (steps[1], steps[2]) == (1, 1)


def test_source_code_in_front_of_a_log_tells_nothing() -> None:
    facts, file = read("11_")
    assert min(int(it.source.rpartition(":")[2]) for it in facts) > 1860
    assert not faults(facts)
    (attempt,) = file.progress.attempts.values()
    assert (attempt.first_step, attempt.last_step, attempt.redone) == (0, 4740, 0)


@pytest.mark.parametrize("name", ["03_", "04_", "06_", "08_", "10_", "11_", "11b_", "23c_"])
def test_a_log_without_trouble_tells_of_none(name: str) -> None:
    assert faults(read(name)[0]) == []


def test_a_job_that_ran_into_its_limit() -> None:
    (fault,) = faults(read("01_")[0])
    assert (fault.fault, fault.details["why"]) == ("killed", "TIME LIMIT")


def test_every_kernel_line_with_a_code() -> None:
    facts, file = read("12_")
    assert {it.fault for it in faults(facts)} == {"xid"}
    assert len(facts) >= 97
    assert {it.details["code"] for it in facts if isinstance(it, Fault)} >= {
        *(14, 31, 63, 64, 69, 74, 79, 94, 102, 144, 145, 146, 147, 148, 149, 150, 154),
    }
    assert file.of_no_format <= 7


def test_two_hosts_the_rank_that_lacks_a_file_and_those_that_wait_for_it() -> None:
    told = faults(read("17b_")[0])
    (raised,) = (it for it in told if it.details.get("type"))
    assert (raised.fault, raised.rank, raised.host) == ("exception", 4, "10.0.0.2")
    assert raised.details["type"] == "FileNotFoundError"
    timeouts = [it for it in told if it.fault == "watchdog_timeout"]
    assert [(it.rank, it.host, it.details["group"], it.details["seq"]) for it in timeouts] == [
        (0, "localhost", "1", 2),
        (0, "localhost", "17", 2),
    ]
    assert told.index(raised) < told.index(timeouts[0])


def test_fifteen_siblings_are_victims_of_one_root() -> None:
    told = faults(read("17c_")[0])
    (root,) = (it for it in told if it.details.get("root"))
    assert (root.rank, root.host, root.details["exit_code"]) == (1, "dgx2-1", 1)
    victims = [it for it in told if it.details.get("victim")]
    assert {it.rank for it in victims} == {*range(16)} - {1}
    assert {(it.fault, it.details["number"]) for it in victims} == {("signal", 15)}
    assert "ModuleNotFoundError" in {it.details.get("type") for it in told}


@pytest.mark.parametrize(("name", "fault", "code"), [("23a_", "killed", -9), ("23b_", "exception", 1)])
def test_who_died_first_is_no_matter_of_the_order_in_the_log(name: str, fault: str, code: int) -> None:
    told = faults(read(name)[0])
    (root,) = (it for it in told if it.details.get("root"))
    assert (root.fault, root.rank, root.details["exit_code"]) == (fault, 1, code)
    lost = [it for it in told if it.fault == "nccl_error"]
    assert {it.rank for it in lost} == {0, 2}
    assert all(told.index(it) < told.index(root) for it in lost)
    assert {it.rank for it in told if it.details.get("victim")} == {0, 2}
    assert not Incidents(told).all[0].first.details.get("victim")


def test_the_stacks_of_four_processes() -> None:
    facts, _ = read("23d_")
    assert Counter(it.details["pid"] for it in facts if isinstance(it, Event)) == {
        26130: 2,
        26136: 1,
        26137: 1,
        26138: 1,
    }
    (apart,) = (it for it in facts if it.details["frames"] == ["<module> (hang.py:10)"])
    assert apart.details["pid"] == 26137
    ((event,), _) = read("23e_")
    assert event.details["frames"][-1] == "<module> (hang.py:6)"


def test_each_generation_of_the_watchdog_and_the_launcher() -> None:
    told = faults(read("dialects")[0])
    timeouts = [it for it in told if it.fault == "watchdog_timeout"]
    assert [(it.rank, it.details["rank_in_group"], it.details.get("seq")) for it in timeouts] == [
        (None, 3, 5120),
        (None, 0, 777),
        (6, 6, 64),
        (9, 9, None),
        (2, 2, 901),
        (2, 2, 41),
        (4, 0, 12),
    ]
    assert {it.fault for it in told} >= {"signal", "exception", "nan_suspected"}


def test_files_of_strangers_tell_in_one_folder_what_each_tells_alone() -> None:
    alone = [fact for path in ALL for fact in read_facts([path])]
    assert Counter(map(str, read_facts([LOGS]))) == Counter(map(str, alone))


def test_skipped_steps_and_the_loss_on_what_was_held_out() -> None:
    chat = read("08_")[1].progress
    assert chat.overflows == {0: 139}
    assert [it.last["skipped"] for it in chat.attempts.values()] == [139.0]
    held_out = read("11_")[1].progress.evaluated
    assert held_out is not None
    assert (held_out.first, held_out.last, held_out.times) == (10.8323, 2.9166, 20)
