"""What the drills' own answers come to."""

from train_ledger.chaos.preflight.drills import hang_drilled, pages_drilled

HANG = {
    "right": True,
    "named": [3],
    "cause": "hang.host",
    "dumps": {"there": [0, 1, 2], "missing": {"3": "it did not answer when it was asked"}},
}
PAGES = {
    "drills": [
        {"path": "embedded", "notified_s": 8.9, "messages": 1, "why_not": None},
        {"path": "prometheus", "notified_s": None, "messages": 0, "why_not": "no message came"},
    ]
}


def test_a_hang_that_was_named_and_a_dump_that_was_not_there():
    found = hang_drilled(HANG, 3)
    assert (found.right, found.planted, found.named, found.there) == (True, 3, (3,), 3)
    assert found.missing == ("rank 3: it did not answer when it was asked",)


def test_a_drill_that_found_nothing_has_no_dumps():
    found = hang_drilled({"right": False, "named": [], "cause": None, "dumps": None}, 3)
    assert (found.right, found.cause, found.missing) == (False, "", ("nobody looked for dumps",))


def test_a_drill_without_an_answer_says_what_it_said():
    assert "needs torch" in hang_drilled(None, 3, "needs torch").why_not
    assert pages_drilled(None, "no receiver") == ((), "the drill did not run: no receiver")


def test_each_way_of_the_page():
    pages, why_not = pages_drilled(PAGES)
    assert [(it.way, it.notified_s) for it in pages] == [
        ("watch", 8.9),
        ("Prometheus and Alertmanager", None),
    ]
    assert (pages[0].why_not, pages[1].why_not, why_not) == ("", "no message came", "")
