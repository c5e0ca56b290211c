"""Which hangs can be planted: what options do not go together is said before a job is started."""

import pytest

from train_ledger.chaos import MODES, Layout, plan_of
from train_ledger.run_dir import RunDir, RunDirError


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_that_hangs_can_be_planted_in_every_group_of_eight_ranks(mode):
    for group in ("world", "tp", "dp", "pp") if MODES[mode].gloo == "hangs" else ("world",):
        plan = plan_of(mode, 5, 8, group=group)
        assert plan.does in ("hangs", "aborts")
        if group != "world":
            assert plan.layout == Layout(dp=2, tp=2, pp=2)


def test_the_plain_job_is_taken_where_one_group_is_enough():
    assert plan_of("sleep", 3, 4).layout is None
    assert plan_of("order_swap", 3, 4).layout == Layout(dp=2, tp=2)


def test_what_is_not_said_is_left_to_the_job(tmp_path):
    command = plan_of("sleep", 3, 4).command(RunDir(tmp_path))
    assert not {"--layout", "--timeout-s", "--worker-server", "--no-dump-path"} & {*command}
    assert "--worker-server" in plan_of("lock_gil", 3, 4).command(RunDir(tmp_path))


def test_without_a_dump_path_the_time_out_is_short_enough_to_wait_for():
    plan = plan_of("sleep", 3, 4, no_dump_path=True)
    assert plan.timeout_s is not None
    assert plan.timeout_s <= 60
    assert plan_of("sleep", 3, 4, no_dump_path=True, timeout_s=90).timeout_s == 90


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mode": "dance"}, "--mode dance is not known"),
        ({"mode": "raise"}, "--mode raise is not known"),
        ({"culprit": 8}, "--culprit 8 is not one of the 8 ranks"),
        ({"group": "ep"}, "--group ep is not known"),
        ({"layout": "dp=2,tp=2"}, "is for 4 ranks, and there are 8"),
        ({"layout": "dp=two"}, "write it as dp=2,tp=2,pp=2"),
        ({"layout": "dp=8", "group": "tp"}, "has no group tp of two ranks"),
        ({"layout": "pp=8", "mode": "order_swap"}, "give another one"),
        ({"ranks": 7, "culprit": 0, "group": "tp"}, "cannot be halved"),
        ({"ranks": 2, "culprit": 0, "mode": "type"}, "no majority against one"),
        ({"ranks": 4, "culprit": 0, "mode": "size", "group": "tp"}, "one word against another"),
        ({"mode": "dtype", "group": "dp"}, "ends the other over gloo before it can leave a dump"),
    ],
)
def test_options_that_do_not_go_together(options, said):
    given = {"mode": "sleep", "culprit": 5, "ranks": 8, **options}
    with pytest.raises(RunDirError, match=said) as refused:
        plan_of(given.pop("mode"), given.pop("culprit"), given.pop("ranks"), **given)
    assert "\n" not in str(refused.value)


def test_each_gpu_of_this_host_is_counted(monkeypatch, tmp_path):
    monkeypatch.setattr("train_ledger.chaos.plan._DRIVER", tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert plan_of("abort", 1, 4).backend == "gloo"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    plan = plan_of("abort", 1, 4)
    assert (plan.backend, plan.does) == ("nccl", "hangs")
    monkeypatch.setattr("train_ledger.chaos.plan._DRIVER", tmp_path / "no-driver")
    assert plan.backend == "gloo"
