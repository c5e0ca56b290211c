"""The answer as text, JSON and page."""

from train_ledger.ops.preflight import (
    answer_of,
    as_object,
    as_page,
    as_terminal,
    failed,
    not_possible,
    passed,
)
from train_ledger.ops.preflight.records import Preflight

ANSWER = Preflight(
    "runs/r42",
    1796007600.0,
    75.0,
    "4 ranks over gloo on n0",
    (
        answer_of("gpu", [not_possible("self-test", "no GPU", "run it on the nodes")]),
        answer_of(
            "recorder",
            [failed("variables", "/gone\x1b[2J: <b>no such folder", "make it"), passed("drill", "named")],
        ),
    ),
    ("clocks under load",),
)


def test_the_terminal_is_told_the_verdict_every_check_and_what_to_do():
    text = as_terminal(ANSWER)
    assert text.startswith("not ready: 1 of 2 items fails (Flight Recorder); 1 check not possible here\n")
    for told in (
        "runs/r42",
        "no GPU",
        "FAIL",
        "not possible",
        "named",
        "9 variables: make it",
        "clocks under load",
    ):
        assert told in text
    assert "\x1b" not in text


def test_nothing_from_outside_acts_on_a_page():
    page = as_page(ANSWER)
    assert "<b>no such folder" not in page
    assert "&lt;b&gt;no such folder" in page
    assert "<dt>passes if</dt><dd>its variables hold on every rank" in page
    assert "to mend" in page


def test_json_has_the_verdicts():
    told = as_object(ANSWER)
    assert told["verdict"] == "fail"
    assert [item["verdict"] for item in told["items"]] == ["not_possible", "fail"]
    assert told["items"][1]["checks"][0]["fix"] == "make it"
    assert told["not_asked"] == ["clocks under load"] or told["not_asked"] == ("clocks under load",)


def test_where_nothing_could_be_checked_that_is_the_verdict():
    open_one = Preflight(None, 0.0, 1.0, "here", ANSWER.items[:1])
    assert open_one.verdict == "not_possible"
    assert as_terminal(open_one).startswith("cannot tell: nothing could be checked here")


def test_all_that_was_checked_held():
    fine = Preflight(None, 0.0, 1.0, "here", (answer_of("logs", [passed("logs", "4 files")]),))
    assert as_terminal(fine).startswith("nothing found wrong: 1 of 1 item passes")
