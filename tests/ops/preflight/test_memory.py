"""The account of memory beside what was measured."""

import pytest

from ops.preflight.made import GIB, told
from train_ledger.ops.preflight.memory import computed_bytes, memory_checks

MODEL = {
    "params": 8e9,
    "layers": 32,
    "heads": 32,
    "head_dim": 128,
    "seq_len": 8192,
    "micro_batch": 1,
    "sharding": "full",
}
RUN = {"model": MODEL, "parallelism": {"dp": 16, "tp": 2}}


def test_states_are_sixteen_bytes_a_parameter_over_the_ranks_that_share_them():
    states = 8e9 * 16 / 32
    activations = 8192 * 4096 * 34 / 2 * 32
    assert computed_bytes(RUN) == pytest.approx(states + activations)


@pytest.mark.parametrize(
    ("sharding", "each"), [("none", 16), ("optimizer", 4 + 12 / 16), ("gradients", 2 + 14 / 16), ("full", 1)]
)
def test_what_is_sharded_is_divided_by_the_data_parallel_ranks(sharding, each):
    model = {**MODEL, "sharding": sharding, "layers": 1e-9}
    assert computed_bytes({**RUN, "model": model}) == pytest.approx(8e9 / 2 * each)


def test_recomputation_keeps_the_input_of_a_layer_alone():
    of_layers = [
        computed_bytes({**RUN, "model": {**MODEL, "recompute": it}}) - 4e9
        for it in ("none", "selective", "full")
    ]
    assert of_layers[0] > of_layers[1] > of_layers[2] == pytest.approx(8192 * 4096 * 2 * 32)


def test_what_is_missing_is_named():
    assert "micro_batch" in computed_bytes({"model": {**MODEL, "micro_batch": None}})
    assert "params" in computed_bytes({})
    assert "float7" in computed_bytes({"model": {**MODEL, "dtype": "float7"}})


def test_ten_percent_off_is_the_limit():
    run = {"model": {"memory_bytes": 100.0 * GIB}}
    for measured, verdict in ((109.9, "pass"), (110.1, "fail"), (90.1, "pass"), (89.9, "fail")):
        assert told(memory_checks(run, {0: measured * GIB}, {}, None))["account"] == verdict


def test_the_highest_rank_counts():
    found = told(memory_checks({"model": {"memory_bytes": 10.0}}, {0: 10.0, 7: 12.0}, {}, None))
    assert found["account"] == "fail"
    assert "rank 7" in found.said("account")


def test_a_model_without_figures_has_no_account_and_the_measured_is_told_all_the_same():
    found = told(memory_checks({}, {0: 12.0 * GIB}, {}, None))
    assert found["account"] == "not_possible"
    assert "12.00 GiB" in found.said("account")


def test_reserved_keeps_ten_percent_of_the_card():
    run = {"model": {"memory_bytes": 1.0}}
    assert told(memory_checks(run, {0: 1.0}, {0: 89.0, 1: 80.0}, 100.0))["room"] == "pass"
    found = told(memory_checks(run, {0: 1.0}, {0: 91.0, 1: 80.0}, 100.0))
    assert found["room"] == "fail"
    assert "rank 0" in found.said("room")
    assert told(memory_checks(run, {0: 1.0}, {0: 91.0}, None))["room"] == "not_possible"


def test_a_run_that_has_not_trained_on_a_gpu_has_no_account():
    (check,) = memory_checks(RUN, {}, {}, None)
    assert check.verdict == "not_possible"
