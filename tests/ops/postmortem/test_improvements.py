"""What the figures of an incident point at, and what they do not."""

from __future__ import annotations

import dataclasses

from train_ledger.ledger.accounts import Accounts, Checkpointing, Interruption
from train_ledger.ops.postmortem.detection import Detection
from train_ledger.ops.postmortem.improvements import does_not_add_up, to_improve, went_well
from train_ledger.ops.postmortem.incident import Happened, Incident
from train_ledger.ops.postmortem.moment import Moment
from train_ledger.ops.postmortem.split import Split

T = 1_800_000_000.0
PARTS = {"detect": 100.0, "dump": 75.0, "decide": 445.0, "restart": 480.0, "load": 420.0, "redo": 1480.0}
SPLIT = Split(T, {"over": T + 3000}, PARTS, first_step_t=T + 1500, redone_steps=300)
ACCOUNTS = Accounts(
    "r42",
    T - 9000,
    T + 9000,
    {},
    mtbi_s=10_800.0,
    checkpointing=Checkpointing(7, 0, interval_s=1440.0, interval_steps=300, blocking_s=45.0),
)


def _told(
    *moments: Moment,
    parts: Split = SPLIT,
    accounts: Accounts | None = None,
    detection: Detection | None = None,
) -> list[str]:
    return list(to_improve(moments, parts, accounts, detection or Detection()))


def _xid(before_s: float, *, pages: bool = True) -> Moment:
    return Moment(T - before_s, "", "", host="node037", xid=79, pages=pages)


def test_an_xid_shortly_before_would_have_saved_the_decision() -> None:
    assert _told(_xid(28))[0].startswith("XID 79 on node037 was known 28 s before the last step")
    assert "7 min 25 s" in _told(_xid(28))[0]


def test_an_xid_afterwards_long_before_or_of_no_weight_is_no_warning() -> None:
    for moment in (_xid(-5), _xid(3600), _xid(28, pages=False)):
        assert not any("XID" in line for line in _told(moment))


def test_the_interval_by_young() -> None:
    (line, _) = _told(accounts=ACCOUNTS)
    assert "24 min 0 s apart" in line
    assert "16 min 26 s, about 205 steps" in line


def test_a_mean_of_one_interruption_is_told_to_be_one() -> None:
    once = dataclasses.replace(ACCOUNTS, interruptions=(Interruption(T, 0, 41),))
    assert _told(accounts=once)[0].endswith("taken off; but M rests on 1 interruption")


def test_an_interval_that_is_near_youngs_is_left_alone() -> None:
    near = dataclasses.replace(ACCOUNTS.checkpointing, interval_s=1000.0)
    assert len(_told(accounts=dataclasses.replace(ACCOUNTS, checkpointing=near))) == 1


def test_nothing_is_said_of_an_interval_that_was_not_measured() -> None:
    unknown = dataclasses.replace(ACCOUNTS, checkpointing=Checkpointing())
    assert not any("Young" in line for line in _told(accounts=unknown))


def test_the_longest_part_is_not_what_was_done_again() -> None:
    assert "restart, 8 min 0 s" in _told()[-1]


def test_of_two_known_parts_none_is_called_the_longest() -> None:
    few = dataclasses.replace(SPLIT, parts_s={**dict.fromkeys(PARTS), "detect": 100.0, "dump": 4.0})
    assert _told(parts=few) == []


def test_a_late_page() -> None:
    late = Detection(paged_s=400.0, threshold_s=90.0, expected_s=110.0)
    assert _told(detection=late)[0].startswith("the page came 4 min 50 s later")


def test_time_that_the_steps_done_again_do_not_explain() -> None:
    (line,) = does_not_add_up(SPLIT, 2.0)
    assert "300 steps at the usual 2 s are 10 min 0 s: 14 min 40 s are not explained" in line
    assert list(does_not_add_up(SPLIT, 4.8)) == []


def test_parts_that_nothing_bounds() -> None:
    holes = dataclasses.replace(SPLIT, parts_s={**PARTS, "decide": None, "restart": None})
    (line,) = does_not_add_up(holes, 4.8)
    assert "decide, restart" in line


def test_first_answers_that_took_nothing_did_not_go_well() -> None:
    def said(dumps: int) -> list[str]:
        entry = {"summary": f"{dumps} dumps and 0 stacks in 0.0 s", "dumps": dumps, "stacks": 0}
        incident = Incident("i1", (Happened("response_done", T + 9, entry, 1),), is_closed=True)
        return list(went_well(Detection(), incident, Split(T, {}, {})))

    assert said(0) == []
    assert said(4) == ["the first answers were complete: 4 dumps and 0 stacks in 0.0 s"]
