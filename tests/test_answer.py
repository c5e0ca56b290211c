import json

import pytest

from train_ledger.answer import (
    CAUSES,
    HANG_KINDS,
    Diagnosis,
    ExitCode,
    Finding,
    Group,
    HangAnswer,
    Impact,
    exit_code,
    to_json,
)


def test_a_hang_answer_has_every_key_of_the_contract():
    assert set(to_json(HangAnswer(verdict="no_hang"))) == {
        "schema", "verdict", "culprits", "confidence", "kind", "seq", "op", "group", "findings", "victims_of",
        "unreadable", "missing_dumps", "stale", "ruled_out", "not_observed", "next",
    }  # fmt: skip


def test_a_finding_has_every_key_of_the_contract():
    finding = Finding("missing_ranks", (5,), Group("0", "default_pg", (0, 5)), 7, "all_reduce")
    answer = to_json(HangAnswer(verdict="hang", findings=(finding,)))
    assert set(answer["findings"][0]) == {
        "kind", "culprits", "group", "seq", "op", "others_op", "state", "waiting", "frame", "cause_suspected",
        "fix", "evidence",
    }  # fmt: skip
    assert answer["findings"][0]["group"] == {
        "name": "0",
        "desc": "default_pg",
        "ranks": [0, 5],
        "inferred": False,
    }


def test_a_diagnosis_has_every_key_of_the_contract():
    answer = to_json(Diagnosis(state="stalled", cause="unknown", impact=Impact(1.0, 2.0)))
    assert set(answer) == {
        "schema", "state", "cause", "ranks", "hosts", "gpus", "confidence", "since_step", "since_t", "impact",
        "evidence", "ruled_out", "not_observed", "next", "details",
    }  # fmt: skip
    assert answer["impact"] == {"wall_s": 1.0, "gpu_hours": 2.0, "cost": None}


def test_ranks_that_are_keys_become_words_as_json_wants_them():
    answer = to_json(HangAnswer(verdict="hang", victims_of={5: (0, 1)}))
    assert json.loads(json.dumps(answer))["victims_of"] == {"5": [0, 1]}


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (HangAnswer(verdict="hang"), ExitCode.TROUBLE),
        (HangAnswer(verdict="no_hang"), ExitCode.NOTHING_WRONG),
        (HangAnswer(verdict="cannot_tell"), ExitCode.CANNOT_TELL),
        (Diagnosis(state="running", cause="none"), ExitCode.NOTHING_WRONG),
        (Diagnosis(state="stalled", cause="unknown"), ExitCode.CANNOT_TELL),
        (Diagnosis(state="stalled", cause="hang.host"), ExitCode.TROUBLE),
    ],
)
def test_the_exit_status_follows_the_answer(answer, code):
    assert exit_code(answer) == code


def test_mismatches_are_looked_for_before_ranks_are_called_missing():
    assert HANG_KINDS.index("collective_type_mismatch") < HANG_KINDS.index("missing_ranks")
    assert "none" in CAUSES
