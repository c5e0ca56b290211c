"""Who fell first, and who fell with it."""

from __future__ import annotations

import pytest

from train_ledger.hang import RankKnowledge, first_fallen
from train_ledger.hang.knowledge import in_words


def test_who_raises_because_a_peer_is_gone_is_a_victim() -> None:
    known = {
        0: RankKnowledge(0, exception="RuntimeError: Connection closed by peer [127.0.0.1]:8113"),
        1: RankKnowledge(1, exception="IndexError: list index out of range"),
        2: RankKnowledge(2, exception="DistBackendError: NCCL communicator was aborted on rank 2"),
    }
    assert first_fallen(known, range(4)) == (1,)


@pytest.mark.parametrize(("number", "fell"), [(9, (1,)), (11, (1,)), (15, ()), (6, ())])
def test_some_signals_are_done_to_a_rank(number: int, fell: tuple[int, ...]) -> None:
    """SIGTERM is the launcher's; SIGABRT is what gloo does to the receiver of a size that does not fit."""
    assert first_fallen({1: RankKnowledge(1, gone=True, signal=number)}, range(4)) == fell


def test_one_silent_death_among_the_living_is_the_first() -> None:
    assert first_fallen({2: RankKnowledge(2, gone=True), 3: RankKnowledge(3)}, range(4)) == (2,)


def test_where_all_are_gone_in_silence_nobody_is_the_first() -> None:
    assert first_fallen({rank: RankKnowledge(rank, gone=True) for rank in range(4)}, range(4)) == ()


def test_what_is_not_known_is_not_said() -> None:
    assert in_words(RankKnowledge(3)) is None
    assert in_words(RankKnowledge(3, gone=True, signal=99)) == "rank 3: its process is gone (signal 99)"


def test_an_error_that_came_from_a_closed_connection_is_a_consequence_whatever_it_is_called() -> None:
    wrapped = (
        "StepFailed: step 41 (from RuntimeError: Timed out waiting 5000ms for recv operation to complete)"
    )
    known = {rank: RankKnowledge(rank, exception=wrapped, gone=True) for rank in (0, 1)}
    assert first_fallen({**known, 2: RankKnowledge(2)}, range(3)) == ()


def test_who_the_kernel_killed_and_whom_the_launcher_saw_fail_first_fell_by_themselves() -> None:
    killed = {0: RankKnowledge(0), 1: RankKnowledge(1, no_memory=True, gone=True)}
    assert first_fallen(killed, range(4)) == (1,)
    seen = {
        0: RankKnowledge(0, gone=True, signal=15),
        1: RankKnowledge(1, gone=True, exit_code=1, failed_first=True),
    }
    assert first_fallen(seen, range(4)) == (1,)


@pytest.mark.parametrize("number", [6, 9, 11, 15])
def test_where_one_signal_ended_all_ranks_nobody_is_the_first(number: int) -> None:
    """Whom the launcher saw first says only whom it looked at first."""
    killed = {
        rank: RankKnowledge(rank, gone=True, signal=number, failed_first=rank == 2) for rank in range(4)
    }
    assert first_fallen(killed, range(4)) == ()
    killed[1] = RankKnowledge(1, gone=True, signal=number, no_memory=True)
    assert first_fallen(killed, range(4)) == (1,)


def test_whom_the_launcher_had_to_kill_fell_with_the_first() -> None:
    known = {
        0: RankKnowledge(0, gone=True, signal=9),
        1: RankKnowledge(1, gone=True, signal=11, failed_first=True),
        2: RankKnowledge(2, gone=True, signal=15),
    }
    assert first_fallen(known, range(3)) == (1,)
    known[1] = RankKnowledge(1, gone=True, signal=9, failed_first=True)
    assert first_fallen(known, range(3)) == (1,)


def test_whom_the_launcher_saw_first_is_a_victim_where_its_exception_says_so() -> None:
    lost = "RuntimeError: Connection closed by peer [127.0.0.1]:8113"
    known = {0: RankKnowledge(0, gone=True, exit_code=1, failed_first=True, exception=lost)}
    assert first_fallen(known, range(4)) == ()


def test_the_exception_of_a_check_of_collectives_is_no_fall() -> None:
    raised = "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective"
    assert first_fallen({0: RankKnowledge(0, exception=raised)}, range(4)) == ()


def test_an_exit_status_is_told() -> None:
    assert in_words(RankKnowledge(1, gone=True, exit_code=3)) == "rank 1: its process is gone (exit status 3)"
