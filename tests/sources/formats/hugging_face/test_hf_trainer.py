"""What the Hugging Face Trainer prints, and to which steps it belongs: the certain ones and no others."""

from __future__ import annotations

import doctest
import math
import random
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.facts import Event, Fault, Step
from train_ledger.sources.formats.hugging_face import hf_line, hf_log, hf_summary
from train_ledger.sources.formats.hugging_face.hf_line import parts
from train_ledger.sources.formats.hugging_face.hf_trainer import HfTrainer
from train_ledger.sources.lines.log_line import read_line

RECORDED = Path(__file__).parents[3] / "recorded" / "logs" / "hf_trainer_with_bars.log"


def bar(done: int, total: int, elapsed: str = "00:30", rate: str = "1.17s/it") -> str:
    percent = 100 * done // total
    return f"{percent:3}%|{'#' * (percent // 10):<10}| {done}/{total} [{elapsed}<1:10:00,  {rate}]"


def record(loss: str = "2.5", epoch: str = "0.5", **more: str) -> str:
    items = {"loss": loss, "grad_norm": "1.25", "learning_rate": "4.9e-05", **more, "epoch": epoch}
    return "{" + ", ".join(f"'{key}': {word}" for key, word in items.items()) + "}"


def facts(*lines: str, reader: HfTrainer | None = None) -> list:
    """What is read of a log by somebody who passes over lines without a mark, as a reader of logs does."""
    reader = reader or HfTrainer()
    found = []
    for number, line in enumerate(lines, 1):
        if reader.wants_more or any(mark in line.encode() for mark in reader.marks):
            found += reader.read(read_line(line.encode()), f"hf.log:{number}")
    return [*found, *reader.end()]


def steps(found: list) -> list[Step]:
    return [it for it in found if isinstance(it, Step)]


def test_the_step_is_that_of_the_bar_drawn_behind_the_record() -> None:
    lagging = "\r" + bar(398, 7500) + "\r" + " " * 60 + "\r" + record()
    (step,) = facts(lagging, "\r" + bar(400, 7500))
    assert (step.step, step.source, step.rank) == (400, "hf.log:1", None)
    assert step.values == {"loss": 2.5, "grad_norm": 1.25, "lr": 4.9e-05, "epoch": 0.5}
    assert math.isnan(step.t)


def test_the_bar_may_stand_in_the_same_line() -> None:
    (step,) = facts(bar(398, 7500) + record() + "  " + bar(400, 7500))
    assert step.step == 400


def test_numbers_may_be_strings() -> None:
    words = {key: f"'{word}'" for key, word in {"grad_norm": "nan", "learning_rate": "6.05e-06"}.items()}
    step, _ = facts(record(loss="'1.922'", epoch="'0.03'", **words) + "\r" + bar(10, 100))
    assert (step.values["loss"], step.values["lr"], step.values["epoch"]) == (1.922, 6.05e-06, 0.03)


@pytest.mark.parametrize(
    ("word", "number"), [("6.05e-06", 6.05e-06), ("1E+1", 10.0), ("inf", math.inf), ("-1.0", -1.0)]
)
def test_an_exponent_is_kept(word: str, number: float) -> None:
    (step,) = steps(facts(record(loss=word) + "\r" + bar(10, 100)))
    assert step.values["loss"] == number


def test_a_nan_is_one() -> None:
    (step,) = steps(facts(record(loss="nan") + "\r" + bar(10, 100)))
    assert math.isnan(step.values["loss"])


def test_a_finite_loss_beside_a_gradient_norm_that_is_not_is_a_suspected_nan() -> None:
    found = facts(
        *(
            record(loss="2.0", grad_norm=norm) + "\r" + bar(10 * at, 100)
            for at, norm in ((1, "1.5"), (2, "nan"))
        )
    )
    (fault,) = [it for it in found if isinstance(it, Fault)]
    assert (fault.fault, fault.step, fault.details["loss"]) == ("nan_suspected", 20, 2.0)


def test_where_no_bar_follows_no_step_is_invented() -> None:
    found = facts(record(epoch="0.01"), record(loss="2.25", epoch="0.02", grad_norm="inf"))
    assert steps(found) == []
    first, second, fault = found
    assert (first.name, first.step, first.details["loss"], first.details["epoch"]) == (
        "metrics",
        None,
        2.5,
        0.01,
    )
    assert second.details["loss"] == 2.25
    assert (fault.fault, fault.step) == ("nan_suspected", None)


def test_a_record_of_ms_swift_tells_its_step_itself() -> None:
    swift = {"'global_step/max_steps'": "'15/60'", "'elapsed_time'": "'3m 53s'"}
    more = ", ".join(f"{key}: {word}" for key, word in swift.items())
    (step,) = facts("Train:  25%|##  | 15/60 [03:53<11:39, 15.5s/it]" + record().rstrip("}") + f", {more}}}")
    assert (step.step, step.values["loss"], step.values["lr"]) == (15, 2.5, 4.9e-05)
    assert "global_step_max_steps" not in step.values
    (end,) = facts(f"{{'eval_loss': 0.25, 'epoch': 1.0, {more}}}")
    assert (end.name, end.step, end.details["eval_loss"]) == ("eval_end", 15, 0.25)


def test_a_time_may_stand_in_front_of_a_record() -> None:
    (step,) = facts("2026-02-03 04:05:06 " + record().rstrip("}") + ", 'step': 500}")
    assert (step.step, step.t) == (500, datetime.fromisoformat("2026-02-03 04:05:06").timestamp())
    assert facts("the last was " + record().rstrip("}") + ", 'step': 500}") == []


def test_transformers_3_printed_the_step_in_each_record() -> None:
    (step,) = facts("  0%|          | 0/90 [00:00<?, ?it/s]" + record().rstrip("}") + ", 'step': 500}")
    assert (step.step, step.values) == (500, {"loss": 2.5, "grad_norm": 1.25, "lr": 4.9e-05, "epoch": 0.5})


def test_a_bar_that_comes_later_is_not_that_of_the_record() -> None:
    found = facts(record(), "something else is printed", "\r" + bar(17, 100))
    assert [it.name for it in found] == ["metrics"]
    reader = HfTrainer()  # and where what is between was passed over
    early = list(reader.read(read_line(record().encode()), "hf.log:1"))
    late = list(reader.read(read_line(bar(17, 100).encode()), "hf.log:9"))
    assert (early, [it.name for it in late]) == ([], ["metrics"])


def test_an_empty_line_may_lie_between_where_the_same_bar_stands_in_front_and_behind() -> None:
    found = facts(bar(10, 70), record(), "", bar(10, 70), bar(20, 70), record("2.25"), "", bar(20, 70))
    assert [(it.step, it.values["loss"]) for it in steps(found) if it.values] == [(10, 2.5), (20, 2.25)]
    assert not steps(facts(bar(9, 70), record(), "", bar(10, 70)))


def test_bars_of_loaders_and_evaluations_are_no_steps() -> None:
    found = facts(
        "Map: " + bar(400, 1000),
        "\r" + bar(3, 5),
        record() + "\r" + bar(10, 100),
        "\r" + bar(4, 5),
        "\rLoading shards: " + bar(90, 100),
        "\r" + bar(11, 100),
    )
    assert [it.step for it in steps(found)] == [10, 11]


def test_bars_alone_tell_steps_once_the_training_length_is_known() -> None:
    found = facts(
        "[INFO|trainer.py:1149] 2026-03-04 05:06:07,250 >>   Total optimization steps = 1,600",
        "\r" + "\r".join(bar(it, 1600, f"{it:02}:00", "60.00s/it") for it in (0, 1, 2, 2, 3)),
    )
    begun, *told = found
    assert (begun.name, begun.details) == ("run_start", {"steps": 1600})
    assert [it.step for it in told] == [1, 2, 3]
    assert [it.values.get("step_time_s") for it in told] == [None, 60.0, 60.0]


def test_the_front_that_logging_put_there_in_2020() -> None:
    front = "06/12/2020 10:05:38 - INFO - transformers.trainer -   "
    begun, step = facts(
        front + "***** Running training *****",
        front + "  Total optimization steps = 29",
        "\r" + bar(0, 29) + "\r" + bar(1, 29),
    )
    assert (begun.name, begun.details, step.step) == ("run_start", {"steps": 29}, 1)


def test_bars_tell_the_time_where_the_start_told_it() -> None:
    front = "[INFO|trainer.py:1149] 2026-03-04 05:06:07,250 >> "
    _, step, logged = facts(
        front + "***** Running training *****",
        front + "  Total optimization steps = 29",
        "\r" + bar(1, 29, "01:00"),
        record() + "\r" + bar(2, 29, "02:00"),
    )
    began_t = datetime(2026, 3, 4, 5, 6, 7, 250_000).timestamp()
    assert (step.t - began_t, logged.t - began_t) == (60.0, 120.0)


def test_the_time_of_a_step_leaves_evaluations_and_saves_out() -> None:
    found = facts(
        record() + "\r" + bar(10, 100, "01:00"),
        record() + "\r" + bar(20, 100, "02:00"),
        "***** Running Evaluation *****",
        record() + "\r" + bar(30, 100, "09:00"),
        record() + "\r" + bar(40, 100, "10:00"),
    )
    assert [it.values.get("step_time_s") for it in steps(found)] == [None, 6.0, None, 6.0]


def test_tokens_per_second_after_a_resume_are_a_difference_within_the_session() -> None:
    def line(tokens: int, runtime: str, done: int) -> str:
        more = {"num_input_tokens_seen": str(tokens), "train_runtime": runtime}
        return record(**more, train_tokens_per_second="1100.0") + "\r" + bar(done, 100)

    lines = (line(0, "0.0", 1), line(1000, "10.0", 2), line(1000, "0.5", 3), line(1100, "1.5", 4))
    told = steps(facts(*lines))
    assert [it.values.get("tokens_per_second") for it in told] == [None, 100.0, None, 100.0]
    assert [it.values["consumed_tokens"] for it in told] == [0.0, 1000.0, 1000.0, 1100.0]
    assert not any("train_tokens_per_second" in it.values for it in told)


def test_tokens_per_second_by_the_clock_of_the_bar() -> None:
    lines = [
        record(num_input_tokens_seen=str(tokens)) + "\r" + bar(done, 100, elapsed)
        for tokens, done, elapsed in (
            (0, 1, "00:10"),
            (1000, 2, "00:15"),
            (9000, 3, "01:40"),
            (9900, 4, "00:30"),
        )
    ]
    told = [it.values.get("tokens_per_second") for it in steps(facts(*lines))]
    assert told == [None, None, 100.0, None]


def test_tokens_per_second_wait_until_the_clock_is_fine_enough() -> None:
    def line(tokens: int, runtime: str, done: int) -> str:
        more = {"num_input_tokens_seen": str(tokens), "train_runtime": f"'{runtime}'"}
        return record(**more) + "\r" + bar(done, 100)

    told = steps(facts(line(0, "1.000e+05", 1), line(900, "1.001e+05", 2), line(30_000, "1.030e+05", 3)))
    assert [it.values.get("tokens_per_second") for it in told] == [None, None, 10.0]


def test_an_evaluation_is_no_step_and_gets_one_only_from_the_training_bar() -> None:
    evaluated = "{'eval_loss': '1.38', 'eval_runtime': '4.5', 'epoch': '0.5'}"
    found = facts(
        record() + "\r" + bar(50, 100),
        "***** Running Evaluation *****",
        "\r" + bar(0, 5) + "\x1b[A\r" + evaluated,
        "\r" + bar(5, 5),
        "\r" + bar(50, 100),
    )
    step, begun, ended = found
    assert (step.step, begun.name) == (50, "eval_start")
    assert (ended.name, ended.step, ended.details["eval_loss"]) == ("eval_end", 50, 1.38)


def test_a_save_is_known_to_have_succeeded_when_the_training_goes_on() -> None:
    begun, saved, step = facts(
        bar(500, 1000)
        + "[INFO|trainer.py:3000] 2026-03-04 05:06:07,250 >> Saving model checkpoint to /out/checkpoint-500",
        record() + "\r" + bar(510, 1000),
    )
    assert (begun.name, begun.step, begun.t) == (
        "ckpt_start",
        500,
        datetime(2026, 3, 4, 5, 6, 7, 250_000).timestamp(),
    )
    assert (saved.name, saved.step) == ("ckpt_saved", 500)
    assert step.step == 510
    assert [it.name for it in facts("Saving model checkpoint to /out/checkpoint-500")] == ["ckpt_start"]


def test_the_summary_at_the_end_tells_its_clock_in_seconds() -> None:
    (event,) = facts(
        "***** train metrics *****",
        "  epoch                    =        1.0",
        "  total_flos               =        3GF",
        "  train_runtime            = 1 day, 0:15:19.02",
        "  train_mem_gpu_peaked     =        7MB",
        "  train_samples_per_second =      1.088",
        "Model card saved",
    )
    assert (event.name, event.details["split"]) == ("run_end", "train")
    assert event.details["train_runtime"] == pytest.approx(86_400 + 919.02)
    assert (event.details["total_flos"], event.details["train_mem_gpu_peaked"]) == (3 * 2**30, 7 * 2**20)


def test_the_last_record_is_the_end_of_the_run() -> None:
    (event,) = facts("{'train_runtime': 915.3, 'train_samples_per_second': 1.088, 'epoch': 1.0}")
    assert (event.name, event.details["train_runtime"]) == ("run_end", 915.3)


def test_a_training_that_begins_in_the_same_log_has_its_own_bar() -> None:
    found = facts(
        record() + "\r" + bar(90, 100),
        record() + "\r" + bar(10, 60),
        record() + "\r" + bar(20, 60),
    )
    assert [it.step for it in steps(found)] == [90, 20]
    assert [it.name for it in found if isinstance(it, Event)] == ["metrics"]


def test_ranks_that_write_into_each_other_are_kept_apart_by_their_fronts() -> None:
    found = facts(
        "[rank0]:" + record(loss="2.0"),
        "[rank1]:" + record(loss="3.0"),
        "[rank0]:" + bar(10, 100),
        "[rank1]:" + bar(11, 100),
    )
    told = {it.rank: (it.step, it.values["loss"]) for it in steps(found)}
    assert told.get(0, (10, 2.0)) == (10, 2.0)
    assert told.get(1, (11, 3.0)) == (11, 3.0)


@pytest.mark.parametrize(
    "line",
    [
        "        print({'loss': 1.0, 'epoch': 2})",
        "    {'loss': 1.0, 'epoch': 2},",
        "logs = {'loss': 1.0, 'epoch': 2}",
        "{'lr': 5e-05, 'betas': [0.9, 0.999], 'eps': 1e-08, 'weight_decay': 0.0}",
        "{'loss': 1.0, 'step': 3}",
        '        logger.info(f"  Total optimization steps = {max_steps:,}")',
        '        logger.info("***** Running training *****")',
        '    print("***** train metrics *****")',
        '        logger.info(f"Saving model checkpoint to {output_dir}")',
    ],
)
def test_source_code_and_other_dictionaries_say_nothing(line: str) -> None:
    assert facts(line) == []


def recorded() -> list[str]:
    return RECORDED.read_bytes().decode().split("\n")


def test_a_whole_log_where_a_line_of_bars_has_sixty_kilobytes() -> None:
    lines = recorded()
    drawn = next(at for at, line in enumerate(lines) if line.count("\r") > 4)
    lines[drawn] = "\r" + "\r".join([bar(48, 400)] * 1200) + lines[drawn]
    assert len(lines[drawn]) > 60_000
    found = facts(*lines)
    logged = [(it.step, it.values["loss"]) for it in steps(found) if "loss" in it.values]
    assert logged == [(100, 2.75), (200, 2.5), (300, 2.25), (400, 2.0)]
    assert [it.step for it in steps(found)] == sorted(it.step for it in steps(found))
    assert [it.name for it in found if isinstance(it, Event)] == [
        "run_start",
        "eval_start",
        "eval_end",
        "ckpt_start",
        "ckpt_saved",
        "run_end",
        "run_end",
    ]


def test_mutated_lines_raise_nothing() -> None:
    rng, reader = random.Random(6), HfTrainer()
    lines = [line.encode()[-3000:] for line in recorded() if line]
    for number in range(5000):
        data = bytearray(rng.choice(lines))
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(data) + 1)
            data[at : at + rng.randint(0, 5)] = rng.randbytes(rng.randint(0, 5))
        for fact in reader.read(read_line(bytes(data)), f"mutated:{number}"):
            assert isinstance(fact, Step | Event | Fault)
    list(reader.end())


@given(st.lists(st.text(alphabet="{}'%|/[]<:, 0123456789\r\nlosepch*=>", max_size=120), max_size=6))
def test_no_text_raises(texts: list[str]) -> None:
    facts(*(text + record()[: len(text) % 90] for text in texts))


@pytest.mark.parametrize("text", ["{'" * 40_000, "9%|" * 40_000, "{'a': " * 20_000, "1%|" + "|" * 90_000])
def test_hostile_lines_are_read_in_linear_time(text: str) -> None:
    assert list(parts(text)) == [text.rstrip()]


@pytest.mark.parametrize("module", [hf_line, hf_log, hf_summary])
def test_the_examples(module) -> None:
    assert doctest.testmod(module).failed == 0


def test_a_record_and_a_bar_behind_the_number_of_a_task() -> None:
    """srun -l writes it in front of each line; what is drawn over the line has none."""
    line = "  3: {'loss': 1.5, 'epoch': 0.5}\r 50%|##5  | 6/12 [01:02<01:02, 10.3s/it]"
    assert list(parts(line.partition("\r")[0])) == list(parts("{'loss': 1.5, 'epoch': 0.5}"))
    assert list(parts("3:  50%|##5  | 6/12 [01:02<01:02, 10.3s/it]")) == list(parts(line.partition("\r")[2]))
    assert list(parts("step 3: {'loss': 1.5, 'epoch': 0.5}")) == []
