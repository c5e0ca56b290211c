"""Who leaves the common path, when and where; everybody else issues what the step asks for."""

import pytest

from train_ledger.answer import CAUSES
from train_ledger.chaos import MODES
from train_ledger.chaos.faults import Meeting
from train_ledger.chaos.hang_drill import Drill, main


class Collectives:
    """What was issued, in order."""

    def __init__(self):
        self.issued = []

    def meeting(self, group):
        return Meeting(
            lambda tensor: self.issued.append((group, tensor)),
            "its tensor",
            peer=0,
            other=lambda: self.other(),
        )

    def other(self):
        self.issued.append("another group's")


def step(drill, seen, number, groups=("dp", "tp", "world")):
    assert drill.fetches(number)
    for group in groups:
        drill.meet(group, seen.meeting(group))


@pytest.mark.parametrize("rank", [0, 2])
def test_a_rank_that_is_not_the_culprit_issues_all_of_every_step(rank):
    drill, seen = Drill("skip", 1, 2, rank, "tp"), Collectives()
    for number in range(1, 5):
        step(drill, seen, number)
    assert [group for group, _ in seen.issued] == ["dp", "tp", "world"] * 4


def test_the_culprit_leaves_once_at_its_step_in_its_group():
    drill, seen = Drill("skip", 1, 2, 1, "tp"), Collectives()
    for number in range(1, 4):
        step(drill, seen, number)
    assert [group for group, _ in seen.issued] == ["dp", "tp", "world", "dp", "world", "dp", "tp", "world"]


def test_another_order_takes_the_other_group_first():
    drill, seen = Drill("order_swap", 1, 1, 1, "tp"), Collectives()
    step(drill, seen, 1, groups=("tp",))
    assert seen.issued == ["another group's", ("tp", "its tensor")]


def test_the_loader_of_the_culprit_ends_a_batch_early_and_its_collectives_are_the_usual_until_then():
    drill, seen = Drill("exhausted", 1, 3, 1), Collectives()
    for number in (1, 2):
        step(drill, seen, number)
    assert not drill.fetches(3)
    assert len(seen.issued) == 6


def test_a_job_without_a_culprit_never_hangs():
    drill, seen = Drill("sleep", -1, 1, 0), Collectives()
    step(drill, seen, 1)
    assert len(seen.issued) == 3


@pytest.mark.parametrize("mode", MODES.values(), ids=lambda mode: mode.name)
def test_every_mode_says_what_is_right_and_what_each_backend_does(mode):
    assert mode.causes <= set(CAUSES)
    assert {mode.on("gloo"), mode.on("nccl")} <= {"hangs", "aborts"}
    assert mode.what
    assert mode.fault.__doc__


@pytest.mark.parametrize("options", [["--mode", "order_swap"], ["--group", "tp"]])
def test_the_job_is_refused_that_has_no_group_to_leave(options, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["--run-dir", str(tmp_path / "run"), *options])
    assert "takes a --layout" in capsys.readouterr().err
