import json

import pytest

from train_ledger.answer import Diagnosis, Impact, RuledOut, to_json
from train_ledger.config import Config
from train_ledger.ledger import Journal
from train_ledger.ops.postmortem import as_markdown
from train_ledger.ops.postmortem import postmortem as drafted
from train_ledger.run_dir import RunDir, RunDirError

T = 1_800_000_000.0


@pytest.fixture
def run(tmp_path):
    return RunDir(tmp_path / "r42")


def postmortem(run, config, **wanted):
    """As a person reads it."""
    return as_markdown(drafted(run, config, **wanted))


def write(run, *entries):
    journal = Journal(run.journal)
    for entry in entries:
        journal.append(entry)
    journal.close()


def an_incident(name="i1", **diagnosis):
    found = Diagnosis(
        "stalled",
        "hang.host",
        (3,),
        ("node001",),
        since_step=41,
        since_t=T,
        impact=Impact(100.0, 28.4, 71.1),
        evidence=("rank 3: asleep",),
        ruled_out=(RuledOut("hang.rank_died", "all live"),),
        confidence="high",
    )
    return (
        {
            "t": T + 90,
            "kind": "alert_fired",
            "incident": name,
            "alert": "TrainingStepStalled",
            "level": "page",
            "summary": "r42: no step",
        },
        {"t": T + 90, "kind": "incident_opened", "incident": name, "alert": "TrainingStepStalled"},
        {"t": T + 95, "kind": "verdict", "incident": name, "diagnosis": {**to_json(found), **diagnosis}},
        {"t": T + 95.5, "kind": "notification_intended", "incident": name, "notification": f"{name}-open"},
    )


def test_the_draft_of_a_job_without_gpus_tells_of_time_alone(run):
    write(run, *an_incident(impact={"wall_s": 100.0, "gpu_hours": None, "cost": None}))
    draft = postmortem(run, Config())
    assert "- in all: 1 min 36 s (until the last entry; no record says that it is back at its step)" in draft
    assert "- cost: the ranks say of no GPU\n" in draft


def test_the_draft_tells_impact_timeline_cause_and_detection(run):
    write(run, *an_incident())
    draft = postmortem(run, Config())
    assert draft.startswith("# 2027-01-15 r42 hung at step 41 (rank 3 on node001)\n")
    assert "- in all: 1.6 min × 1,022 GPUs = 27.111 GPU-hours (until the last entry; no record" in draft
    assert "- cost: 67.87 USD" in draft
    assert "- 08:01:30  TrainingStepStalled fired (page): r42: no step" in draft
    assert "hang.host: a rank stands in host code, by its stack; confidence high\n" in draft
    assert "- ruled out: hang.rank_died – all live" in draft
    assert "- from the last step to the page: 95.5 s" in draft


def test_how_the_run_came_back_is_in_the_timeline(run):
    after = [
        {"t": T + 400, "kind": "state_changed", "state": "restarting", "step": None, "attempt": 1},
        {"t": T + 500, "kind": "state_changed", "state": "running", "step": 42, "attempt": 1},
    ]
    closed = {"t": T + 800, "kind": "incident_closed", "incident": "i1", "alert": ""}
    later = {"t": T + 900, "kind": "state_changed", "state": "finished", "step": 99, "attempt": 1}
    write(run, *an_incident(), *after, closed, later)
    draft = postmortem(run, Config())
    assert "- 08:08:20  the run is running at step 42, attempt 1" in draft
    assert (
        draft.index("the run is restarting")
        < draft.index("the run is running")
        < draft.index("incident closed")
    )
    assert "finished" not in draft


def test_a_run_that_stands_still_again_is_not_detected_before_it_stood(run):
    again = an_incident(since_step=80, since_t=T + 600)[2]
    told = {
        "t": T + 700.5,
        "kind": "notification_intended",
        "incident": "i1",
        "notification": "i1-again-1-80",
    }
    write(run, *an_incident(), {**again, "t": T + 700}, told)
    draft = postmortem(run, Config())
    assert "- from the last step to the page: 100.5 s" in draft
    assert "to the alert" not in draft
    assert draft.index("page handed over") < draft.index("last step completed (step 80)")


def test_the_latest_incident_is_drafted_unless_one_is_named(run):
    write(run, *an_incident("i1"), *an_incident("i2", cause="hang.mismatch"))
    assert "hang.mismatch" in postmortem(run, Config())
    assert "hang.mismatch" not in postmortem(run, Config(), incident="i1")


def test_an_incident_without_a_verdict_still_has_a_draft(run):
    write(run, *an_incident()[:2])
    assert "nobody accused" in postmortem(run, Config())


def test_no_incident_and_an_unknown_one_are_told_in_one_sentence(run):
    with pytest.raises(RunDirError, match="holds no incident"):
        postmortem(run, Config())
    write(run, *an_incident())
    with pytest.raises(RunDirError, match="no incident i9; there is i1"):
        postmortem(run, Config(), incident="i9")


def test_nothing_from_a_log_acts_in_the_draft(run):
    write(run, *an_incident(evidence=["<script>alert(1)</script>\n# heading `x`\x1b[31m"]))
    draft = postmortem(run, Config())
    assert "<script>" not in draft
    assert "\n# heading" not in draft
    assert "\x1b" not in draft


HOSTILE = "a\x1b[31m\x07\n# b <script> `c` [d](javascript:e) ![f](http://g)"


def test_nothing_from_the_journal_acts_in_the_draft_wherever_it_stands(run):
    opened = {"t": T, "kind": "incident_opened", "incident": HOSTILE, "alert": HOSTILE}
    verdict = {
        "cause": HOSTILE,
        "confidence": HOSTILE,
        "ranks": [HOSTILE, 3],
        "hosts": [HOSTILE],
        "evidence": [HOSTILE],
        "ruled_out": [{"cause": HOSTILE, "by": HOSTILE}],
        "not_observed": [HOSTILE],
        "since_step": HOSTILE,
    }
    told = {
        kind: {"t": T, "kind": kind, "incident": HOSTILE, "summary": HOSTILE, "outcome": HOSTILE}
        for kind in ("alert_fired", "response_done", "notification_done")
    }
    write(run, opened, *told.values(), {"t": T, "kind": "verdict", "incident": HOSTILE, "diagnosis": verdict})
    draft = postmortem(run, Config())
    for active in ("\x1b", "\x07", "<script>", "\n# b", "[d](", "[f](", "`c"):
        assert active not in draft.replace("\\[", "").replace("\\]", "").replace("\\`", "")
    assert "(rank 3 on a" in draft


@pytest.mark.parametrize(
    "diagnosis", [None, "hang", [1], {}, {"impact": 5}, {"hosts": 5}, {"ranks": "35"}, 7]
)
@pytest.mark.parametrize("t", [1e30, -5.0, True, "noon", None, 8.85e11, [1]])
def test_what_is_not_understood_is_left_out_and_counted(run, diagnosis, t):
    opened = {"t": t, "kind": "incident_opened", "incident": "i1"}
    write(run, opened, {"t": t, "kind": "verdict", "incident": "i1", "diagnosis": diagnosis})
    draft = postmortem(run, Config())
    assert draft.startswith("# undated r42 was in trouble (nobody accused)\n")
    wrong = 2 * (t is not None) + (diagnosis != {})
    assert (f"\n{wrong} value{'s' if wrong > 1 else ''} in the journal made no sense" in draft) == (wrong > 0)


@pytest.mark.parametrize("t", ["NaN", "Infinity", "1e400", "1" + "0" * 400])
def test_times_that_only_a_lenient_reader_takes(run, t):
    write(run, {"t": T, "kind": "incident_opened", "incident": "i1"})
    with run.journal.open("a") as file:
        file.write(f'{{"t":{t},"kind":"alert_resolved","incident":"i1","alert":"X"}}\n')
    assert "- --:--:--  X resolved" in postmortem(run, Config())


def test_an_incident_without_a_name_is_none(run):
    write(run, {"t": T, "kind": "incident_opened", "incident": ["i0"]}, *an_incident())
    draft = postmortem(run, Config())
    assert "incident i1." in draft
    assert "\n1 line of the journal could not be read; not in this draft." in draft


def test_of_a_thousand_incidents_the_newest_are_named(run):
    names = [f"i{number}{'x' * 500}" for number in range(1000)]
    opened = [{"t": 1e9, "kind": "incident_opened", "incident": name} for name in names]
    run.ledger.mkdir(parents=True)
    run.journal.write_text("".join(f"{json.dumps(entry)}\n" for entry in opened))
    with pytest.raises(RunDirError, match="there are 1000, the newest of them i995") as refused:
        postmortem(run, Config(), incident="../../etc/passwd" * 999)
    assert len(str(refused.value)) < 1200


def test_a_line_without_a_time_hides_no_incident_that_has_one(run):
    write(run, *an_incident(), {"t": True, "kind": "incident_opened", "incident": "i2"})
    assert "incident i1." in postmortem(run, Config())


def test_where_no_verdict_was_taken_and_nobody_knows_why_the_signals_still_say_since_when(run):
    lines = [{"t": 1e9 + number, "step": number, "rank": 0} for number in range(1, 60)]
    run.signals.mkdir(parents=True)
    run.signals_of(0).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    alert = {"incident": "i1", "alert": "TrainingStepStalled", "level": "page"}
    write(run, *({"t": 1e9 + 159, "kind": kind, **alert} for kind in ("alert_fired", "incident_opened")))
    told = postmortem(run, Config())
    assert "last step completed (step 59)" in told
    assert "from the last step to the alert: 100.0 s" in told
    assert "--:--:--" not in told


def test_a_note_of_nobody_is_somebodys(run):
    write(run, *an_incident())
    run.notes.mkdir(parents=True)
    (run.notes / "a.json").write_text('{"t": 1800000001, "text": "saw it", "by": " "}')
    (run.notes / "b.json").write_text('{"t": 1800000001, "text": " ", "by": "ada"}')
    told = postmortem(run, Config())
    assert "saw it (noted by somebody)" in told
    assert "1 file in notes/ could not be read" in told


def test_an_alert_that_another_one_explains_is_told_to_have_woken_nobody(run):
    write(run, *an_incident(), {**an_incident()[0], "inhibited": True})
    assert "fired (page, but another alert explains it): r42: no step" in postmortem(run, Config())


def verdict(name, t, place, **found):
    told = Diagnosis("stalled", **{"cause": "hang.host", "confidence": "high", **found})
    return {"t": t, "kind": "verdict", "incident": name, "place": place, "diagnosis": to_json(told)}


def test_an_incident_of_two_matters_tells_both_and_is_counted_from_the_first(run):
    alert, opened, *_ = an_incident()
    first = {
        "ranks": (3,),
        "hosts": ("node001",),
        "since_step": 41,
        "since_t": T,
        "evidence": ("in its loader",),
    }
    second = {
        "cause": "hang.rank_died",
        "ranks": (6,),
        "hosts": ("node002",),
        "since_step": 55,
        "since_t": T + 700,
        "evidence": ("killed (SIGKILL)",),
    }
    again = {
        "t": T + 720,
        "kind": "alert_fired",
        "incident": "i1",
        "alert": "TrainingStepStalled",
        "level": "page",
    }
    write(
        run,
        alert,
        opened,
        verdict("i1", T + 95, [0, 41], cause="unknown", since_step=41, since_t=T),
        verdict("i1", T + 99, [0, 41], **first),
        again,
        verdict("i1", T + 730, [1, 55], **second),
        {"t": T + 1000, "kind": "incident_closed", "incident": "i1"},
    )
    draft = drafted(run, Config())
    assert draft.title == (
        "2027-01-15 r42 hung at step 41 (rank 3 on node001), "
        "then hang.rank_died at step 55 (rank 6 on node002)"
    )
    causes = next(part for part in draft.parts if part.heading == "Root cause").lines
    assert causes[0].startswith("hang.host: ")
    assert "in its loader" in causes
    also = next(number for number, line in enumerate(causes) if line.startswith("also in this incident"))
    assert causes[also].startswith("also in this incident at step 55: hang.rank_died: ")
    assert causes[also + 1] == "killed (SIGKILL)"
    assert draft.split.stood_t == T
    assert draft.loss.impact.wall_s == 1000
    assert [it.text for it in draft.timeline if "last step completed" in it.text] == [
        "last step completed (step 41)"
    ]


def test_what_was_not_known_at_the_first_place_and_is_at_the_next_is_the_cause(run):
    alert, opened, *_ = an_incident()
    write(
        run,
        alert,
        opened,
        verdict("i1", T + 95, [0, 41], cause="unknown", confidence="low", since_step=41, since_t=T),
        verdict("i1", T + 730, [1, 41], ranks=(6,), since_step=41, since_t=T + 650),
    )
    draft = drafted(run, Config())
    assert "hung at step 41 (rank 6)" in draft.title
    assert "then" not in draft.title
    assert draft.split.stood_t == T
