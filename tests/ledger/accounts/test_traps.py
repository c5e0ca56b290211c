"""What other tools got wrong of runs that were restarted (../shared/research/ux.md §5, cases 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterable

from train_ledger.config import Alerts
from train_ledger.facts import Event, Fault, Step
from train_ledger.ledger.accounts import Accounts, History, accounts_of
from train_ledger.ledger.accounts.rates import Rate, rate_of

T0 = 1_790_000_000.0


def tokens(t: float, step: int, attempt: int, consumed: int) -> Step:
    return Step(T0 + t, step, 0, attempt, values={"consumed_tokens": float(consumed)})


def start(t: float, attempt: int, rank: int = 0) -> Event:
    return Event(T0 + t, "run_start", rank, attempt=attempt, details={"world_size": 1})


def told(facts: Iterable[Step | Event | Fault]) -> History:
    history = History("r42")
    history.add_all(facts)
    return history


def test_tokens_a_second_after_a_resume_are_those_of_the_session_alone() -> None:
    history = told(
        [
            start(0, 0),
            tokens(0, 1, 0, 0),
            tokens(10, 2, 0, 1000),
            start(99, 1),
            tokens(100, 3, 1, 1000),
            tokens(101, 4, 1, 1100),
        ]
    )
    assert rate_of(history) == Rate("consumed_tokens", 100.0)


def test_before_a_second_line_of_the_new_session_the_last_one_tells() -> None:
    history = told(
        [start(0, 0), tokens(0, 1, 0, 0), tokens(10, 2, 0, 1000), start(99, 1), tokens(100, 3, 1, 1000)]
    )
    assert rate_of(history) == Rate("consumed_tokens", 100.0)


def test_without_positions_there_is_no_rate() -> None:
    assert rate_of(told([start(0, 0), Step(T0 + 1, 1, 0)])) is None


def restarted() -> History:
    """Steps 1 to 12, a restart, steps 11 to 14; each takes 2 s."""
    first = [Step(T0 + 2 * step, step, 0, values={"loss": 2.0}) for step in range(1, 13)]
    again = [Step(T0 + 60 + 2 * (step - 10), step, 0, 1, values={"loss": 2.0}) for step in range(11, 15)]
    return told([start(0, 0), *first, start(60, 1), *again])


def accounts(until_s: float) -> Accounts:
    return accounts_of(restarted(), Alerts(), T0 + until_s)


def test_steps_that_go_back_are_kept_and_those_done_before_are_rework() -> None:
    found = accounts(68)
    assert found.seconds["rework"] == 2 * 2
    assert found.steps == 14
    assert [span.last_step for span in found.spans if span.category == "productive"][-1] == 14
    assert [(it.first_step, it.last_step, it.attempt) for it in found.spans if it.category == "rework"] == [
        (11, 12, 0)
    ]


def test_the_recovery_counts_the_steps_that_were_done_once_more() -> None:
    (recovery,) = accounts(68).recoveries
    assert (recovery.resumed_step, recovery.redone_steps) == (10, 2)
    assert recovery.over_t == T0 + 64
    assert recovery.loss_joins_on is True


def test_history_is_recomputed_and_not_edited() -> None:
    assert accounts(24).seconds["productive"] == 24
    assert accounts(24).seconds["rework"] == 0
    assert accounts(68).seconds["productive"] == 20 + 8


def test_steps_of_the_others_count_though_rank_0_begins_to_write_in_the_middle() -> None:
    others = [start(0, 0, rank=1), *(Step(T0 + 30 + 2 * step, step, 1) for step in range(1, 31))]
    late = [Step(T0 + 30 + 2 * step, step, 0) for step in range(21, 31)]
    found = accounts_of(told([*others, *late]), Alerts(), T0 + 90)
    assert found.seconds["productive"] == 60
    assert found.seconds["start_up"] == 30


def test_a_line_that_names_no_rank_and_one_that_does_may_tell_of_one_moment() -> None:
    gone = [
        Fault(T0 + 20, "killed", rank, details={"why": "NODE FAILURE"}, source="slurm.out")
        for rank in (3, None)
    ]
    history = told([start(0, 0), Step(T0 + 1, 1, 0), Step(T0 + 2, 2, 0), *gone])
    (stop,) = accounts_of(history, Alerts(), T0 + 30).interruptions
    assert stop.cause == "killed"


def log_of(*laps: tuple[int, float, range]) -> list[Step | Event]:
    """What a log tells that names no rank: steps of 2 s, in each of these attempts from a time on."""
    steps = [
        Step(T0 + t + 2 * place, step, None, attempt)
        for attempt, t, numbers in laps
        for place, step in enumerate(numbers, 1)
    ]
    return [Event(T0, "log_start", None), *steps]


def test_a_load_that_a_log_tells_before_its_new_start_belongs_to_that() -> None:
    before, after = log_of((0, 0, range(1, 31))), log_of((1, 410, range(21, 41)))[1:]
    load = [
        Event(T0 + 360, "phase_start", None, details={"phase": "checkpoint_load"}),
        Event(T0 + 400, "ckpt_loaded", None, 20, details={"duration_s": 40.0}),
    ]
    begins = Event(T0 + 400, "run_start", None, attempt=1)
    found = accounts_of(told([*before, *load, begins, *after]), Alerts(), T0 + 450)
    assert found.seconds["start_up"] == 50
    assert found.seconds["unknown"] == 300
    assert found.seconds["stalled"] == 0


def test_hours_between_two_jobs_of_a_log_are_no_start_up() -> None:
    history = told(log_of((0, 0, range(1, 31)), (0, 7260, range(21, 41))))
    found = accounts_of(history, Alerts(), T0 + 7300)
    assert found.seconds["unknown"] == 7200
    assert found.seconds["start_up"] < 5


def died(*deaths: Event | Fault) -> Accounts:
    """Four ranks do three steps, then these deaths; a new attempt goes on."""
    facts: list[Step | Event | Fault] = []
    for rank in range(4):
        facts += [Event(T0, "run_start", rank, attempt=0, details={"world_size": 4})]
        facts += [Step(T0 + 10 * step, step, rank, 0) for step in (1, 2, 3)]
        facts += [Event(T0 + 90, "run_start", rank, attempt=1, details={"world_size": 4})]
        facts += [Step(T0 + 90 + 10 * step, step, rank, 1) for step in (3, 4, 5)]
    return accounts_of(told(sorted((*facts, *deaths), key=lambda it: it.t or 0.0)), Alerts(), T0 + 145)


def terminated(rank: int, t: float = 33.0) -> Event:
    return Event(T0 + t, "signal", rank, 3, 0, details={"number": 15})


def killed(rank: int, t: float) -> Fault:
    return Fault(T0 + t, "killed", rank, attempt=0, details={"root": True})


def test_who_was_killed_ended_it_and_not_the_launchers_signal_to_the_others() -> None:
    others = [terminated(rank) for rank in (0, 1, 3)]
    assert [it.cause for it in died(*others, killed(2, 34)).interruptions] == ["killed"]


def test_a_signal_to_all_ended_it_though_one_that_did_not_go_was_killed_later() -> None:
    everybody = [terminated(rank) for rank in range(4)]
    assert [it.cause for it in died(*everybody, killed(2, 34)).interruptions] == ["signal 15"]
    others = [terminated(rank) for rank in (0, 1, 3)]
    assert [it.cause for it in died(*others, killed(2, 63)).interruptions] == ["signal 15"]
