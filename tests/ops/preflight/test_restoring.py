"""Runs that go on as if nothing had been, and runs that do not."""

import pytest

from ops.preflight.made import event, rank, step, told
from train_ledger.ops.preflight.figures import Layout, Saved, TakenUp
from train_ledger.ops.preflight.own_run import OwnRun
from train_ledger.ops.preflight.restoring import layout_checks, restore_checks

BEFORE = {0: {9: ("0x1.0p+1", 11), 10: ("0x1.1p+1", 12)}, 1: {9: ("0x1.2p+1", 13), 10: ("0x1.3p+1", 14)}}
SAVED = Saved(8, 0.4, "0x1.8p+1")


def ranks(restarts=1, layout=None):
    return {number: rank(saved=SAVED, taken_up=TakenUp(8, restarts), layout=layout) for number in range(2)}


def after(rank, step, loss=None, data=None):
    """BEFORE, but for one step of one rank."""
    was = BEFORE[rank][step]
    return {**BEFORE, rank: {**BEFORE[rank], step: (loss or was[0], data or was[1])}}


def test_the_same_losses_and_batches_pass():
    found = told(restore_checks(ranks(), BEFORE, BEFORE, None))
    assert (found["drill: loss"], found["drill: data"]) == ("pass", "pass")
    assert "2 redone steps agree to the bit" in found.said("drill: loss")


def test_one_loss_that_differs_in_its_last_bit_fails():
    found = told(restore_checks(ranks(), BEFORE, after(1, 10, loss="0x1.3000000000001p+1"), None))
    assert (found["drill: loss"], found["drill: data"]) == ("fail", "pass")
    assert "step 10 on rank 1" in found.said("drill: loss")


def test_another_batch_fails():
    found = told(restore_checks(ranks(), BEFORE, after(0, 9, data=99), None))
    assert (found["drill: loss"], found["drill: data"]) == ("pass", "fail")


def test_a_job_that_did_not_come_back_fails():
    found = told(restore_checks({0: rank(saved=SAVED)}, BEFORE, {}, None))
    assert found["drill: loss"] == "fail"


def test_where_nobody_was_killed_that_is_said():
    found = told(restore_checks(ranks(restarts=0), BEFORE, BEFORE, None))
    assert (found["drill: loss"], found["drill: kill"]) == ("pass", "not_possible")


def own(losses, positions=(64.0, 64.0), **more):
    """The run's own step 5 in two attempts."""
    steps = {
        attempt: {0: {5: step(5, 0, attempt, loss=losses[attempt], consumed_samples=positions[attempt])}}
        for attempt in (0, 1)
    }
    return OwnRun({}, steps, **more)


@pytest.mark.parametrize(
    ("losses", "verdict"),
    [
        ((2.5, 2.5), "pass"),
        ((2.5, 2.5001), "pass"),
        ((2.5, 2.51), "fail"),
        ((2.5, float("nan")), "fail"),
        ((float("nan"), float("nan")), "pass"),
    ],
)
def test_the_runs_own_restart_is_held_to_its_losses(losses, verdict):
    assert told(restore_checks(ranks(), BEFORE, BEFORE, own(losses)))["your training"] == verdict


def test_the_runs_own_data_position_must_be_the_same_at_the_same_step():
    found = told(restore_checks(ranks(), BEFORE, BEFORE, own((2.5, 2.5), positions=(64.0, 96.0))))
    assert found["your training"] == "fail"
    assert "96 samples, before 64" in found.said("your training")


def test_without_a_restart_of_its_own_the_run_has_shown_nothing():
    found = told(restore_checks(ranks(), BEFORE, BEFORE, OwnRun({}, {0: {0: {5: step(5, loss=2.5)}}})))
    assert (found["your training"], found["duration"]) == ("not_possible", "not_possible")


def test_the_duration_of_a_save_is_the_runs_own():
    saves = (event("ckpt_saved", duration_s=40.0), event("ckpt_saved", duration_s=44.0))
    found = told(restore_checks(ranks(), BEFORE, BEFORE, own((1.0, 1.0), events=saves)))
    assert found["duration"] == "pass"
    assert "42 s" in found.said("duration")


def test_another_layout_must_give_the_same_loss():
    same = told(layout_checks(ranks(layout=Layout("dp=2, tp=2", SAVED.loss))))
    other = told(layout_checks(ranks(layout=Layout("dp=2, tp=2", "0x1.8000000000001p+1"))))
    assert (same["other layout"], other["other layout"]) == ("pass", "fail")


def test_two_ranks_have_no_other_layout():
    found = told(layout_checks(ranks(layout=Layout(why_not="2 ranks make no grid of two by some"))))
    assert found["other layout"] == "not_possible"


def test_a_job_that_never_loaded_fails():
    assert told(layout_checks({0: rank(saved=SAVED)}))["other layout"] == "fail"
