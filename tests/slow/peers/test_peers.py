"""Who drags is named, nobody else ever is, and what only looks like it is told apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train_ledger.chaos.slow_fleet import SlowJob, SlowPlan, simulate
from train_ledger.facts import Step
from train_ledger.slow.peers import Who, who
from train_ledger.slow.peers.ratios import others_median
from train_ledger.slow.table import StepTable, table_of_facts
from train_ledger.slow.table.step_table import Floats

QUIET = SlowPlan(seed=11, dp=8, onset=300)


def slow(**changes: object) -> SlowJob:
    return simulate(replace(QUIET, **changes))  # type: ignore[arg-type]


def table_with(table: StepTable, **values: Floats | None) -> StepTable:
    told = {**table.values, **values}
    return replace(table, values={name: it for name, it in told.items() if it is not None})


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("cause", ["slow.straggler.clock", "slow.straggler.software"])
def test_one_bad_rank(cause: str, seed: int) -> None:
    job = slow(cause=cause, seed=seed)
    found = who(job.table)
    assert (found.kind, found.ranks) == ("rank", job.truth.ranks)
    assert found.phase == {"compute_s": "compute", "data_wait_s": "data", "log_s": "logging"}[job.truth.part]  # type: ignore[index]
    assert found.waits == "confirm"
    assert set(found.victims) == set(range(8)) - set(found.ranks)
    assert found.since_step == pytest.approx(300, abs=3)
    assert found.excesses[0].ratio > 1.1


def uneven(seed: int, slow_from: int | None = None) -> StepTable:
    """Eight ranks that differ by up to 4 % since ever, as cards do, and vary by 3.5 % from step to step.

    Rank 5 works 15 % longer from step `slow_from` on.
    """
    rng = np.random.default_rng(seed)
    table = slow(checkpoint_every=0).table.columns(slice(3, 303))
    since_ever, noise = rng.uniform(-0.04, 0.04, (8, 1)), rng.normal(0.0, 0.035, (8, 300))
    own_s = 0.8 * (1 + since_ever + noise)
    if slow_from is not None:
        own_s[5, slow_from:] *= 1.15
    took_s = np.broadcast_to(own_s.max(axis=0) + 0.15, own_s.shape)
    return table_with(table, compute_s=own_s, comm_wait_s=took_s - own_s, step_time_s=took_s)


@pytest.mark.parametrize(("seed", "steps"), [(20, 124), (20, 212), (25, 148), (31, 276)])
def test_who_is_a_little_slow_since_ever_is_not_named_for_its_noise(seed: int, steps: int) -> None:
    """In twenty steps of these somebody is more than 5 % longer than its peers in four of five."""
    table = uneven(seed).columns(slice(0, steps))
    newest_s = table.of("compute_s")[:, -20:]
    share = ((newest_s / others_median(newest_s)) > 1.05).mean(axis=1)
    assert share.max() >= 0.8
    found = who(table)
    assert (found.kind, found.ranks) == ("nobody", ())
    assert "by chance" in found.reason


@pytest.mark.parametrize("seed", [20, 25, 31])
def test_who_became_slow_among_such_ranks_is_named_all_the_same(seed: int) -> None:
    found = who(uneven(seed, slow_from=200).columns(slice(0, 225)))
    assert (found.kind, found.ranks) == ("rank", (5,))


def test_a_whole_host() -> None:
    job = slow(dp=32, cause="slow.straggler.clock", whole_host=True)
    found = who(job.table)
    assert (found.kind, found.ranks, found.hosts) == ("host", job.truth.ranks, job.truth.hosts)


def test_one_of_two_hosts_is_named_where_its_ranks_became_slow() -> None:
    job = slow(dp=16, cause="slow.straggler.clock", whole_host=True)
    found = who(job.table)
    assert (found.kind, found.ranks, found.hosts) == ("host", job.truth.ranks, job.truth.hosts)


def test_a_whole_stage_is_nobodys_fault() -> None:
    found = who(slow(dp=4, tp=2, pp=4, cause="slow.stage_imbalance", onset=0).table)
    assert found.kind == "stage"
    assert found.ranks == ()


def test_ranks_that_take_turns_by_their_sequences() -> None:
    found = who(slow(cause="slow.sequence_imbalance").table)
    assert (found.kind, found.ranks) == ("sequence", ())


def test_ranks_that_take_turns_by_their_garbage_collection() -> None:
    found = who(slow(cause="slow.gc").table)
    assert (found.kind, found.ranks, found.phase) == ("gc", (), "gc")


@pytest.mark.parametrize(
    "cause", ["slow.data", "slow.logging", "slow.communication", "slow.fragmentation", "slow.host_memory"]
)
def test_what_slows_all_names_nobody(cause: str) -> None:
    found = who(slow(cause=cause).table)
    assert (found.kind, found.ranks) == ("nobody", ())


def test_a_slow_rank_among_unequal_sequences_is_named_all_the_same() -> None:
    job = slow(dp=16, tokens_vary=0.1, cause="slow.straggler.clock", effect=0.3)
    assert who(job.table).ranks == job.truth.ranks


def test_who_was_slow_and_is_no_more_is_not_named() -> None:
    table = slow().table
    compute_s, waits_s = table.of("compute_s").copy(), table.of("comm_wait_s").copy()
    compute_s[2, 360:370] *= 1.5
    found = who(table_with(table, compute_s=compute_s, comm_wait_s=waits_s))
    assert (found.kind, found.ranks) == ("transient", ())
    assert "rank 2" in found.reason
    compute_s[2, 200:370] *= 1.5
    assert who(table_with(table, compute_s=compute_s)).ranks == ()


def test_too_short_to_say() -> None:
    table = slow(cause="slow.straggler.clock").table
    assert who(table.between(0, 310)).kind == "nobody"
    assert who(table.newest(15)).kind == "cannot_tell"


def test_of_two_ranks_only_the_difference_is_told() -> None:
    table = slow(cause="slow.straggler.clock", effect=0.5).table.rows([0, 1])
    found = who(replace(table, world_size=2))
    assert (found.kind, found.ranks) == ("cannot_tell", ())
    assert "a ratio of" in found.reason


def test_without_own_work_the_steps_tell_nothing() -> None:
    table = slow(cause="slow.straggler.clock").table
    names = ("compute_s", "comm_wait_s", "data_wait_s", "gc_s", "log_s", "ckpt_s")
    found = who(table_with(table, **dict.fromkeys(names)))
    assert (found.kind, found.ranks) == ("cannot_tell", ())


def test_the_step_without_its_waits_serves_where_compute_is_not_told() -> None:
    job = slow(cause="slow.straggler.clock")
    found = who(table_with(job.table, compute_s=None))
    assert found.ranks == job.truth.ranks


def test_waits_for_data_accuse_even_where_compute_is_not_told() -> None:
    job = slow(seed=1, cause="slow.data")
    data_s = np.full(job.table.shape, 0.001)
    data_s[3, 300:] = 0.3
    found = who(table_with(job.table, compute_s=None, comm_wait_s=None, data_wait_s=data_s))
    assert (found.kind, found.ranks, found.phase) == ("rank", (3,), "data")


def test_whom_nobody_waits_for_is_not_named() -> None:
    job = slow(cause="slow.straggler.clock")
    equal_s = np.full(job.table.shape, 0.2)
    found = who(table_with(job.table, comm_wait_s=equal_s))
    assert (found.kind, found.ranks, found.waits) == ("cannot_tell", (), "contradict")


def test_half_of_the_ranks_from_the_beginning_on_are_not_named() -> None:
    table = slow(dp=16).table
    factor = np.where(np.arange(16) < 8, 1.3, 1.0)[:, None]
    found = who(table_with(table, compute_s=table.of("compute_s") * factor, comm_wait_s=None))
    assert (found.kind, found.ranks) == ("cannot_tell", ())


def test_many_slow_ranks_may_be_a_stage_where_the_layout_is_not_told() -> None:
    table = slow(dp=16).table
    factor = np.where(np.arange(16) < 4, 1.3, 1.0)[:, None]
    unknown = replace(table, layout_told=False)
    found = who(table_with(unknown, compute_s=table.of("compute_s") * factor, comm_wait_s=None))
    assert (found.kind, found.ranks) == ("cannot_tell", ())
    assert "pipeline stage" in found.reason


def test_a_replica_of_two_stages_of_two_ranks_is_judged_by_its_own_history() -> None:
    job = slow(dp=2, tp=1, pp=4, cause="slow.straggler.clock", effect=0.5, onset=300)
    assert who(job.table).ranks == job.truth.ranks


def test_timers_of_all_ranks_name_nobody() -> None:
    facts = [Step(float(n), n, None, values={"fwd_s": 2.0, "fwd_min_s": 1.0}) for n in range(60)]
    found = who(table_of_facts(facts))
    assert (found.kind, found.ranks) == ("cannot_tell", ())
    assert "2.00 × as long" in found.reason


def _same(one: Who, other: Who) -> None:
    assert (one.kind, set(one.ranks), one.phase) == (other.kind, set(other.ranks), other.phase)


CAUSES = st.sampled_from([None, "slow.straggler.clock", "slow.gc", "slow.sequence_imbalance"])


@settings(max_examples=12, deadline=None)
@given(st.floats(1e-3, 1e3), CAUSES, st.integers(0, 99))
def test_the_unit_of_time_does_not_matter(factor: float, cause: str | None, seed: int) -> None:
    table = slow(cause=cause, seed=seed).table
    scaled = {name: told * factor for name, told in table.values.items() if name.endswith("_s")}
    _same(who(table), who(table_with(table, **scaled)))


@settings(max_examples=12, deadline=None)
@given(st.permutations(range(8)), CAUSES, st.integers(0, 99))
def test_the_order_of_the_ranks_does_not_matter(order: list[int], cause: str | None, seed: int) -> None:
    table = slow(cause=cause, seed=seed).table
    _same(who(table), who(table.rows(order)))


@settings(max_examples=12, deadline=None)
@given(st.floats(0.05, 5.0), st.integers(0, 99))
def test_a_slowness_that_all_have_names_nobody(more: float, seed: int) -> None:
    table = slow(seed=seed).table
    factor = np.where(table.steps >= 300, 1 + more, 1.0)
    slower = {name: table.of(name) * factor for name in ("compute_s", "comm_wait_s", "step_time_s")}
    assert who(table_with(table, **slower)).ranks == ()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.002, 0.2), st.sampled_from([3, 4, 8, 31]))
def test_nobody_is_named_among_exchangeable_ranks(seed: int, noise: float, ranks: int) -> None:
    table = simulate(SlowPlan(seed=seed, dp=ranks, noise=noise, uneven=0.0, steps=120)).table
    assert who(table).ranks == ()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 9))
def test_the_median_of_the_others(seed: int, ranks: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4, (ranks, 5)).astype(float)
    values[rng.random(values.shape) < 0.2] = np.nan
    found = others_median(values)
    for row in range(ranks):
        for column in range(5):
            others = np.delete(values[:, column], row)
            others = others[np.isfinite(others)]
            wanted = np.median(others) if len(others) > 1 else np.nan
            assert np.array_equal(found[row, column], wanted, equal_nan=True)


@pytest.mark.filterwarnings("error")
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 100_000))
def test_whatever_is_missing_it_answers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dp, tp, pp = ((1, 1, 1), (2, 1, 1), (3, 1, 1), (8, 1, 1), (2, 1, 2), (1, 1, 4), (4, 2, 2))[
        rng.integers(7)
    ]
    table = simulate(SlowPlan(seed=seed, dp=dp, tp=tp, pp=pp, steps=int(rng.integers(1, 70)))).table
    values = {}
    for name, told in table.values.items():
        values[name] = told.copy()
        fate = rng.integers(8)
        if fate == 0:
            values[name][:] = np.nan
        elif fate == 1:
            values[name][rng.random(told.shape) < 0.3] = np.nan
        elif fate == 2:
            values[name][rng.integers(len(told))] = np.nan
        elif fate == 3:
            values[name][rng.random(told.shape) < 0.3] = 0.0
    found = who(replace(table, values=values, layout_told=bool(rng.integers(2))))
    assert found.reason
    assert found.kind in ("rank", "host") or not found.ranks


def test_one_rank_that_waits_for_its_data_by_the_spans_of_a_log() -> None:
    facts = [
        Step(float(step), step, rank, values={"step_time_s": 1.0, "data_wait_s": 0.4 if rank == 2 else 0.01})
        for step in range(60)
        for rank in range(4)
    ]
    found = who(table_of_facts(facts))
    assert (found.kind, found.ranks, found.phase) == ("rank", (2,), "data")


def test_timers_that_one_rank_writes_for_all_name_nobody() -> None:
    facts = [Step(float(n), n, 7, values={"fwd_s": 2.0, "fwd_min_s": 1.0}) for n in range(60)]
    assert who(table_of_facts(facts)).kind == "cannot_tell"
