"""Which items are wanted, and what an item and the whole come to."""

import pytest

from train_ledger.ops.preflight.items import ITEMS, answer_of, chosen
from train_ledger.ops.preflight.records import Preflight, PreflightError, failed, not_possible, passed

PASS, FAIL, OPEN = passed("a", "it holds"), failed("b", "it does not", "mend it"), not_possible("c", "no GPU")


def test_there_are_the_seeds_thirteen():
    assert [item.number for item in ITEMS] == list(range(1, 14))
    assert len({item.key for item in ITEMS}) == 13


def test_items_are_chosen_by_number_or_word():
    assert [it.key for it in chosen(["9,page", "2"], [])] == ["bandwidth", "recorder", "page"]
    assert len(chosen([], ["1", "clocks"])) == 11


@pytest.mark.parametrize(("only", "skip"), [(["14"], []), ([], ["gpus"]), (["gpu"], ["1"])])
def test_no_such_item_and_no_item_at_all(only, skip):
    with pytest.raises(PreflightError):
        chosen(only, skip)


@pytest.mark.parametrize(
    ("checks", "verdict"),
    [((PASS,), "pass"), ((PASS, OPEN), "pass"), ((PASS, FAIL, OPEN), "fail"), ((OPEN,), "not_possible")],
)
def test_one_failing_check_fails_the_item_and_the_whole(checks, verdict):
    item = answer_of("gpu", checks)
    assert item.verdict == verdict
    assert Preflight(None, 0.0, 1.0, "here", (item, answer_of("clocks", [OPEN]))).verdict == verdict
    assert item.open == checks.count(OPEN)
