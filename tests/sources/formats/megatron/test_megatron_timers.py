"""Where the time of an iteration went, by Megatron's timers in a line and in a block; all are invented."""

from __future__ import annotations

import pytest

from sources.formats.told import events, steps
from train_ledger.sources.formats.megatron.megatron import Megatron

ITERATION = " iteration       10/     100 | elapsed time per iteration (ms): 500.0 | lm loss: 2.0E+00 |"
HEAD = "(min, max) time across ranks (ms):"


def test_a_line_of_timers_is_of_the_iteration_before_it() -> None:
    line = (
        "time (ms) | forward-compute: 120.00 | backward-compute: 240.50 | forward-recv: 9.25 | optimizer:"
        " 15.00 |"
        " batch-generator: 2.50"
    )
    _, timed = steps(Megatron(), ITERATION, line)
    assert timed.step == 10
    assert timed.values == {
        "fwd_s": 0.12,
        "bwd_s": 0.2405,
        "forward_recv_s": 0.00925,
        "opt_s": 0.015,
        "data_wait_s": 0.0025,
    }


@pytest.mark.parametrize(
    "line", ["time (ms)", "time (ms) | forward: 0.00 | backward: 0.00 | optimizer: 0.00"]
)
def test_timers_that_never_ran_tell_nothing(line) -> None:
    assert len(steps(Megatron(), ITERATION, line)) == 1


@pytest.mark.parametrize("front", ["", "[default3]:", "[rank7]:", "0: "])
def test_a_block_tells_the_slowest_rank_and_the_fastest(front) -> None:
    block = [
        HEAD,
        "    forward-backward ...............................: (400.00, 480.25)",
        "    forward-compute ................................: (120.00, 150.00)",
        "    optimizer ......................................: (15.00, 20.00)",
        "    batch-generator ................................: (0.00, 6.00)",
    ]
    found = steps(Megatron(), ITERATION, *(front + it for it in block))
    values = {name: it for step in found[1:] for name, it in step.values.items()}
    assert {it.step for it in found} == {10}
    assert values == {
        "forward_backward_s": 0.48025,
        "forward_backward_min_s": 0.4,
        "fwd_s": 0.15,
        "fwd_min_s": 0.12,
        "opt_s": 0.02,
        "opt_min_s": 0.015,
        "data_wait_s": 0.006,
    }


def test_a_block_of_the_slowest_alone_has_no_least() -> None:
    rows = ["max time across ranks (ms):", "    forward-compute ...............: 150.00"]
    assert steps(Megatron(), ITERATION, *rows)[1].values == {"fwd_s": 0.15}


def test_a_block_of_all_ranks_tells_of_each() -> None:
    rows = ["times across ranks (ms):", "  forward-compute:", "     rank  0: 120.00", "     rank 11: 150.00"]
    found = steps(Megatron(), ITERATION, *rows)[1:]
    assert [(it.step, it.rank, it.values) for it in found] == [
        (10, 0, {"fwd_s": 0.12}),
        (10, 11, {"fwd_s": 0.15}),
    ]


def test_what_others_write_into_a_block_does_not_end_it_and_much_of_it_does() -> None:
    row = "    optimizer ......................................: (15.00, 20.00)"
    assert len(steps(Megatron(), ITERATION, HEAD, *["NCCL INFO ring 0"] * 3, row)) == 2
    reader = Megatron()
    assert len(steps(reader, ITERATION, HEAD, *["NCCL INFO ring 0"] * 30, row)) == 1
    assert not reader.wants_more


def test_a_table_of_arguments_is_no_block_of_timers() -> None:
    rows = ["  adam_beta1 ......................................: (0.90, 0.95)", "  lr ......: 3.0"]
    assert len(steps(Megatron(), ITERATION, *rows)) == 1


def test_the_time_of_a_checkpoint_is_of_the_step_that_was_saved() -> None:
    found = steps(
        Megatron(),
        ITERATION,
        "saving checkpoint at iteration      10 to /ckpt in torch_dist format",
        "  successfully saved checkpoint from iteration      10 to /ckpt [ t 1/1, p 1/1 ]",
        HEAD,
        "    save-checkpoint ................................: (3400.00, 3410.50)",
    )
    assert (found[-1].step, found[-1].values) == (10, {"ckpt_s": 3.4105, "ckpt_min_s": 3.4})


@pytest.mark.parametrize(
    "started", ["[before the start of training step] datetime: 2025-01-02 03:04:05 ", ITERATION]
)
def test_what_the_start_took_is_told_when_it_is_over(started) -> None:
    (event,) = events(
        Megatron(),
        "time (ms) | model-and-optimizer-setup: 583.00 | train/valid/test-data-iterators-setup: 250.00",
        "time (ms) | load-checkpoint: 7.50",
        started,
    )
    assert event.name == "phase_end"
    assert event.details == {
        "phase": "start_up",
        "model_and_optimizer_setup_s": 0.583,
        "train_valid_test_data_iterators_setup_s": 0.25,
        "load_checkpoint_s": 0.0075,
    }


def test_timers_without_an_iteration_are_counted() -> None:
    reader = Megatron()
    assert steps(reader, HEAD, "    forward-compute ................................: (1.00, 2.00)") == []
    assert reader.damaged == {"timers before the first iteration": 1}
