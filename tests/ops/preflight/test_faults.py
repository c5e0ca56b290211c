"""Planted faults that are noticed, and planted faults that are not."""

from ops.preflight.made import rank, told
from train_ledger.ops.preflight.faults import Launched, SlowFound, fault_checks
from train_ledger.ops.preflight.figures import Slowed, Tamper

FOUND = SlowFound("slow.straggler.software", (2,))


def job(before=(), after=(2,), ranks=4):
    tamper = Tamper(2, before, after)
    return {number: rank(ranks=ranks, slow=Slowed(2, 120, 179), tamper=tamper) for number in range(ranks)}


def test_all_three_are_noticed():
    found = told(fault_checks(job(), Launched(True), FOUND))
    assert {found[it] for it in ("kill a rank", "slow a rank", "tamper with a gradient")} == {"pass"}


def test_a_tampered_gradient_that_nothing_sees_fails():
    found = told(fault_checks(job(after=()), Launched(True), FOUND))
    assert found["tamper with a gradient"] == "fail"
    assert "saw nothing" in found.said("tamper with a gradient")


def test_replicas_that_differ_beforehand_fail():
    found = told(fault_checks(job(before=(1,)), Launched(True), FOUND))
    assert found["tamper with a gradient"] == "fail"
    assert "rank 1" in found.said("tamper with a gradient")


def test_two_ranks_see_that_one_is_odd_and_not_which():
    found = told(fault_checks(job(after=(0, 1), ranks=2), Launched(True), None))
    assert (found["tamper with a gradient"], found["slow a rank"]) == ("not_possible", "not_possible")


def test_it_is_never_said_that_a_checksum_of_the_drill_watches_the_training():
    found = told(fault_checks(job(), Launched(True), FOUND))
    assert found["in your training"] == "not_possible"
    assert "nothing here would find it" in found.said("in your training")


def test_another_rank_or_another_cause_than_the_planted_fails():
    for named in (
        SlowFound("slow.straggler.software", (1,)),
        SlowFound("slow.communication", ()),
        SlowFound("none", ()),
    ):
        assert told(fault_checks(job(), Launched(True), named))["slow a rank"] == "fail"


def test_where_so_many_want_each_core_that_nobody_stands_out_it_is_not_possible_and_says_why():
    busy = told(fault_checks(job(), Launched(True), SlowFound("none", (), 6.5)))
    assert busy["slow a rank"] == "not_possible"
    assert "not here now, because 6.5 processes want each core" in busy.said("slow a rank")
    for load, named in ((0.9, ()), (None, ()), (6.5, (1,))):
        found = told(fault_checks(job(), Launched(True), SlowFound("slow.communication", named, load)))
        assert found["slow a rank"] == "fail"


def test_a_job_that_is_not_brought_back_fails_and_the_reason_is_told():
    found = told(fault_checks({}, Launched(False, said="Connection refused"), None))
    assert (found["kill a rank"], found["slow a rank"]) == ("fail", "not_possible")
    assert "Connection refused" in found.said("kill a rank")


def test_a_job_that_comes_back_with_a_store_of_its_own_alone_fails_and_names_the_variable():
    found = told(fault_checks(job(), Launched(True, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "refused"), FOUND))
    assert found["kill a rank"] == "fail"
    assert "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1" in found.fix("kill a rank")


def test_under_a_launcher_of_the_users_nobody_is_killed():
    assert told(fault_checks(job(), None, FOUND))["kill a rank"] == "not_possible"
