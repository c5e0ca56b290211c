"""What a log tells of all ranks moves the run's clock and is held against none of them."""

from __future__ import annotations

from typing import Any

from train_ledger.config import Config
from train_ledger.facts import Event, Fault, Step
from train_ledger.ledger import Fold

T0 = 1_770_000_000.0


def fold_of(*facts: Step | Event | Fault, world_size: int | None = None) -> Fold:
    fold = Fold("r42", Config(), {"world_size": world_size} if world_size else None)
    fold.add_all(facts)
    return fold


def printed(*numbers: int, step_s: float = 1.0, rank: int | None = None, **others: Any) -> list[Step]:
    values = {"step_time_s": step_s}
    return [Step(T0 + it * step_s, it, rank, values=values, **others) for it in numbers]


def test_it_stands_under_rank_0_and_says_so() -> None:
    state = fold_of(*printed(1, 2, 3)).state(T0 + 4)
    assert (state.step, state.ranks[0].speaks_for_all) == (3, True)


def test_a_process_that_has_no_name_is_no_rank_s() -> None:
    start = Event(T0, "run_start", None, details={"pid": 7, "gpu": 3, "world_size": 8})
    fold = fold_of(start, Event(T0 + 1, "exception", None, details={"type": "ValueError"}))
    fold.add_all([Event(T0 + 1, "signal", None, details={"number": 15}), *printed(2, 3)])
    state = fold.state(T0 + 4)
    rank = state.ranks[0]
    assert (rank.pid, rank.gpu, rank.exception, rank.signal) == (None, None, None, None)
    assert (state.world_size, state.state) == (8, "running")


def test_single_ranks_that_are_named_now_and_then_do_not_hold_up_its_clock() -> None:
    named = [Step(T0 + 5, 5, rank) for rank in (1, 2, 3)]
    fold = fold_of(*printed(*range(1, 6)), *named, *printed(*range(6, 200)))
    state = fold.state(T0 + 200)
    assert (state.step, state.state) == (199, "running")


def test_ranks_that_go_on_alone_move_it_too() -> None:
    fold = fold_of(*printed(1, 2, 3), *printed(*range(1, 300), rank=7))
    assert fold.state(T0 + 300).step == 299


def test_ranks_that_say_when_they_start_and_which_steps_they_take_speak_for_themselves() -> None:
    fold = fold_of(*printed(1, 2, 3))
    for rank in range(2):
        fold.add(Event(T0 + 4, "run_start", rank))
        fold.add(Step(T0 + 5, 4, rank))
    fold.add(Step(T0 + 6, 900, None))
    state = fold.state(T0 + 7)
    assert (state.step, state.ranks[0].speaks_for_all) == (4, False)


def test_a_start_alone_does_not_silence_the_log() -> None:
    """Megatron's last rank may be the one that is named, and its steps come without a name."""
    fold = fold_of(Event(T0, "run_start", 7), *printed(1, 2, 3))
    assert fold.state(T0 + 4).step == 3


def test_an_end_that_is_told_of_all_ends_the_run() -> None:
    facts = [*printed(1, 2, 3), Step(T0 + 2, 2, 5), Event(T0 + 4, "run_end", None)]
    assert fold_of(*facts, world_size=8).state(T0 + 9000).state == "finished"
    raised = Fault(T0 + 4, "exception", 5, details={"type": "ValueError"})
    assert fold_of(*facts, raised, world_size=8).state(T0 + 5).state != "finished"


def test_an_end_that_is_told_of_all_ends_ranks_that_speak_for_themselves_too() -> None:
    fold = fold_of()
    for rank in range(2):
        fold.add_all([Event(T0, "run_start", rank), *printed(1, 2, 3, rank=rank)])
    fold.add(Event(T0 + 4, "run_end", None))
    assert fold.state(T0 + 9000).state == "finished"


def test_two_lines_of_an_attempt_begin_it() -> None:
    fold = fold_of(*printed(*range(10, 210, 10)), world_size=64)
    fold.add(Step(T0 + 300, 110, None, attempt=1))
    assert fold.state(T0 + 301).attempt == 0
    fold.add(Step(T0 + 310, 120, None, attempt=1))
    assert (fold.state(T0 + 311).attempt, fold.state(T0 + 311).step) == (1, 120)


def test_the_launcher_s_line_begins_one_alone() -> None:
    fold = fold_of(*printed(1, 2, 3))
    fold.add(Event(T0 + 60, "restart", None, attempt=1, details={"left": 2}))
    assert (fold.state(T0 + 61).attempt, fold.state(T0 + 61).state) == (1, "restarting")


def test_steps_that_are_told_every_tenth_are_waited_for_in_tens() -> None:
    state = fold_of(*printed(*range(10, 400, 10), step_s=12.0)).state(T0 + 400 * 12)
    assert (state.p50_step_time_s, state.stall_threshold_s) == (12.0, 360.0)
    with_one_between = fold_of(*printed(*range(10, 400, 10), 391, step_s=12.0))
    assert with_one_between.state(T0 + 400 * 12).stall_threshold_s == 360.0
    many_lost = fold_of(*printed(*range(10, 400, 10), 2000, 2010, step_s=12.0))
    assert many_lost.state(T0 + 2010 * 12).stall_threshold_s == 360.0


def test_before_the_pace_is_known_a_start_up_is_waited_for() -> None:
    assert fold_of(*printed(10, step_s=12.0)).state(T0 + 121).stall_threshold_s == 1800.0


def test_lines_of_one_moment_say_nothing_of_the_pace() -> None:
    """They lay in the log when it was read first, without a time."""
    state = fold_of(*(Step(T0, it, None) for it in range(10, 400, 10))).state(T0 + 1)
    assert (state.p50_step_time_s, state.stall_threshold_s) == (None, 1800.0)


def test_a_buffer_is_waited_for() -> None:
    fold = fold_of(*printed(*range(1, 100)))
    assert fold.state(T0 + 100).stall_threshold_s == 90.0
    fold.add(Event(T0 + 100, "log_every", None, details={"every_s": 300.0}))
    assert fold.state(T0 + 100).stall_threshold_s == 900.0


def test_what_is_forgotten_was_never_there() -> None:
    fold = fold_of(*printed(1, 2, 3), Event(T0, "ckpt_saved", None, step=2, details={"duration_s": 4.0}))
    fold.forget()
    state = fold.state(T0 + 4)
    assert (state.step, dict(state.ranks), state.attempts) == (None, {}, ())
    assert state.checkpoints.saved_t == ()


def by_a_named_rank() -> Fold:
    """Megatron behind names of ranks: the last prints the steps, each its memory once, the first saves."""
    fold = fold_of(Event(T0, "log_start", 7))
    fold.add_all(Step(T0 + 120, 10, rank, values={"mem_allocated_peak": 1e9}) for rank in range(8))
    fold.add_all(printed(*range(10, 400, 10), step_s=12.0, rank=7))
    return fold


def test_who_tells_a_step_once_is_not_waited_for() -> None:
    state = by_a_named_rank().state(T0 + 391 * 12)
    assert (state.step, state.p50_step_time_s, state.stall_threshold_s) == (390, 12.0, 360.0)


def test_a_save_that_another_rank_tells_of_is_waited_for_until_the_next_step() -> None:
    fold = by_a_named_rank()
    fold.add(Event(T0 + 390 * 12, "ckpt_start", 0, step=390))
    assert (fold.state(T0 + 391 * 12).stall_threshold_s, fold.state(T0 + 391 * 12).phase) == (
        600.0,
        "checkpoint_save",
    )
    fold.add_all(printed(400, step_s=12.0, rank=7))
    assert (fold.state(T0 + 401 * 12).stall_threshold_s, fold.state(T0 + 401 * 12).phase) == (360.0, None)
