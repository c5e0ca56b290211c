"""The example of the seed article, from its run directory to the draft."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from train_ledger import config
from train_ledger.cli import app
from train_ledger.ops.postmortem import Postmortem, as_markdown, as_record, postmortem, report_of_postmortem
from train_ledger.render import as_html
from train_ledger.run_dir import RunDir

from .seed_run import at, make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return make_run(tmp_path_factory.mktemp("seed"))


@pytest.fixture(scope="module")
def draft(run: RunDir) -> Postmortem:
    return postmortem(run, config.load(run))


def test_the_title_names_day_run_step_rank_host_and_cause(draft: Postmortem) -> None:
    assert draft.title == "2026-11-30 run42 hung at step 51,300 (rank 293 on node037, XID 79)"


def test_43_minutes_down_24_redone_67_in_all_1143_gpu_hours(draft: Postmortem) -> None:
    minutes = [round((it or 0.0) / 60) for it in (draft.split.down_s, draft.split.redo_s)]
    assert minutes == [43, 24]
    assert draft.split.redone_steps == 300
    assert draft.loss.impact is not None
    assert round(draft.loss.impact.wall_s / 60) == 67
    assert round(draft.loss.impact.gpu_hours or 0) == 1143
    assert draft.loss.impact.cost == pytest.approx(2860, rel=0.01)
    assert "67.0 min × 1,024 GPUs = 1,143 GPU-hours" in as_markdown(draft)


ORDER = (
    ("02:58:12", "XID 79", "hardware/node037.kern.log:1"),
    ("02:58:40", "rank 293: its last step completed (step 51300)", "signals/rank_00293.jsonl:"),
    ("03:00:20", "TrainingStepStalled fired (page)", "ledger/journal.jsonl:1"),
    ("03:00:22", "watchdog timeout on rank 12", "logs/none_1/attempt_0/12/stderr.log:1"),
    ("03:01:35", "1024 dumps", "ledger/journal.jsonl:5"),
    ("03:01:36", "verdict: hardware.xid, rank 293 on node037", "ledger/journal.jsonl:6"),
    ("03:07:00", "missing rank 293", "notes/"),
    ("03:09:00", "decision: node037 put on the exclusion list", "notes/"),
    ("03:17:00", "started on 4 ranks", "signals/rank_00511.jsonl:"),
    ("03:24:00", "checkpoint loaded on 4 ranks", "signals/rank_00511.jsonl:"),
    ("03:41:44", "first step of the new attempt completed", "the accounts"),
    ("04:05:40", "the step once reached was passed", "the accounts"),
)


def test_the_timeline_is_in_order_and_each_line_says_where_it_is_from(draft: Postmortem) -> None:
    lines = iter(as_markdown(draft).splitlines())
    for clock, what, source in ORDER:
        found = next((it for it in lines if it.startswith(f"- {clock}  ") and what in it), None)
        assert found is not None, f"{clock} {what} is missing, or stands too early"
        assert f"  – {source}" in found
        assert found.rstrip().endswith(("clock", "clock of node037", "clock of node001", "clock of node063"))


def test_the_cause_is_hardware_and_what_was_ruled_out_is_told(draft: Postmortem) -> None:
    cause = next(part for part in draft.parts if part.heading == "Root cause")
    assert cause.lines[0].startswith("hardware.xid: ")
    assert any(line.startswith("ruled out: hang.mismatch") for line in cause.lines)
    assert cause.for_people  # why it could happen is for people to say


def test_the_page_after_100_seconds_is_as_expected(draft: Postmortem) -> None:
    assert draft.detection.paged_s == 100.0
    assert draft.detection.is_as_expected
    good = next(part for part in draft.parts if part.heading == "What went well")
    assert any("the page went out 1 min 40 s after the last step" in line for line in good.lines)
    assert any("1024 dumps" in line for line in good.lines)


def test_the_parts_of_the_recovery(draft: Postmortem) -> None:
    parts = draft.split.parts_s
    assert {name: round(length_s or -1) for name, length_s in parts.items()} == {
        "detect": 100,
        "dump": 75,
        "decide": 445,
        "restart": 480,
        "load": 420,
        "redo": 2500,
    }
    assert sum(it or 0.0 for it in parts.values()) == pytest.approx(draft.split.whole_s)


def test_the_three_improvements_are_found(draft: Postmortem) -> None:
    known, interval, longest = draft.improvements
    assert known.startswith("XID 79 on node037 was known 28 s before the last step; ")
    assert "7 min 25 s" in known
    assert "checkpoints are 24 min 45 s apart" in interval
    assert "√(2 × 45 s × 3 h 0 min)" in interval
    assert "16 min" in interval
    assert "about 199 steps" in interval
    assert "restart, 8 min 0 s" in longest


def test_the_minutes_that_do_not_add_up_are_told(draft: Postmortem) -> None:
    wrong = next(part for part in draft.parts if part.heading == "What does not add up")
    assert len(wrong.lines) == 1
    assert "41 min 40 s, but 300 steps at the usual 4.8 s are 24 min 0 s: 17 min 40 s" in wrong.lines[0]


def test_actions_are_left_to_people(draft: Postmortem) -> None:
    assert as_markdown(draft).rstrip().endswith("## Actions\n\n- (?) who, until when, what: …")


def test_the_keepers_own_draft_of_the_journal_alone_says_that_it_is_one(run: RunDir) -> None:
    short = postmortem(run, config.load(run), of_journal_alone=True)
    assert not short.is_whole
    assert round((short.split.down_s or 0) / 60) == 43
    assert short.split.redone_steps is None
    assert "Made of the journal alone" in as_markdown(short)


def test_on_a_page_and_for_a_script(run: RunDir, draft: Postmortem, tmp_path: Path) -> None:
    page = as_html(report_of_postmortem(draft))
    assert "1,143 GPU-hours" in page
    assert "Timeline (UTC)" in page
    told = as_record(draft)
    assert told["timeline"][0]["t"] == at("02:58:12")
    assert told["recovery_s"]["restart"] == 480.0
    wanted = ["postmortem", str(run.path), "--output", str(tmp_path / "night.html"), "--json"]
    answer = CliRunner().invoke(app, wanted, catch_exceptions=False)
    written = (tmp_path / "night.html").read_text()
    assert written.partition("<main>")[2].partition("</main>")[0] in page
    assert f"Made by <code>train-ledger postmortem {run.path} --output" in written
    assert json.loads(answer.stdout)["gpus"] == 1024


def test_a_word_of_a_person_does_nothing_in_the_draft_either(tmp_path: Path) -> None:
    from train_ledger.ledger.notes import Note, write_note

    run = make_run(tmp_path)
    write_note(run, Note(at("03:08:00"), "<script>x</script> [a](b)\x1b[31m", "e`ve", "h", at("03:08:00")))
    found = postmortem(run, config.load(run))
    for active in ("<script>", "[a](b)", "\x1b"):
        assert active not in as_markdown(found)
    assert "<script>x" not in as_html(report_of_postmortem(found))


def test_without_first_answers_the_draft_looks_back_itself(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    kept = [line for line in run.journal.read_text().splitlines() if '"verdict"' not in line]
    run.journal.write_text("\n".join(kept) + "\n")
    found = postmortem(run, config.load(run))
    cause = next(part for part in found.parts if part.heading == "Root cause")
    assert cause.lines[0].startswith("hardware.xid: ")
    assert "found by this draft, as known at 2026-11-30 03:10:20 UTC" in cause.lines[1]
    assert "the culprit was named" not in as_markdown(found)
    assert round((found.split.whole_s or 0) / 60) == 67
    short = postmortem(run, config.load(run), of_journal_alone=True)
    assert short.split.stood_t is None
    assert "in all: not known" in as_markdown(short)
