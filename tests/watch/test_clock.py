from train_ledger.watch.clock import RunClock


def heard(*lags_s, at):
    clock = RunClock(lambda: 1000.0)
    for lag_s in lags_s:
        clock.heard(at - lag_s)
    return clock


def test_lines_that_are_a_moment_old_do_not_move_the_clock():
    assert heard(0.9, 0.5, 0.8, 0.4, 0.6, at=1000.0).now() == 1000.0


def test_a_host_that_is_ten_minutes_fast_is_followed():
    assert heard(0.9, 0.2, 0.5, 0.7, 0.4, at=1600.0).now() == 1599.8


def test_a_host_that_is_slow_does_not_look_stalled():
    assert heard(0.9, 0.2, 0.5, 0.7, 0.4, at=800.0).now() == 799.8


def test_old_lines_that_turn_up_once_are_old_and_no_clock_is_wrong():
    assert heard(0.0, at=100.0).now() == 1000.0


def test_one_look_at_old_lines_among_fresh_ones_does_not_matter():
    clock = heard(0.9, 0.2, 0.5, 0.7, 0.4, at=1000.0)
    clock.heard(100.0)
    assert clock.now() == 1000.0


def test_a_jump_before_the_first_look_is_carried_until_fresh_lines_show_the_offset():
    assert heard(at=0.0).now(carried_s=-600.0) == 400.0
    assert heard(0.9, 0.2, 0.5, 0.7, 0.4, at=400.0).now(carried_s=-600.0) == 400.0


def test_a_jump_while_we_look_moves_nothing():
    """The ranks' clocks jump by 600 s: their lines are carried back, ours never jumped."""
    assert heard(0.9, 0.2, 0.5, 0.7, 0.4, at=1000.0).now(carried_s=-600.0) == 999.8


def test_the_clock_goes_on_by_itself():
    clock = RunClock()
    assert clock.now() <= clock.now()
