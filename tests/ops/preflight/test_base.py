"""A hundred steady steps, and what is none."""

from ops.preflight.made import step, told
from train_ledger.ops.preflight.base import base_checks, drill_base, own_base
from train_ledger.ops.preflight.own_run import OwnRun


def trained(seconds, mfu=42.0, attempt=0, **more):
    values = {} if mfu is None else {"mfu": mfu}
    of = {
        n: step(n, attempt=attempt, step_time_s=took, **values, **more)
        for n, took in enumerate(seconds, start=1)
    }
    return OwnRun({}, {attempt: {0: of}})


EVEN = [1.0] * 105
UNEVEN = [1.0] * 95 + [1.2] * 10


def test_a_hundred_even_steps_pass_and_give_the_base():
    own = trained(EVEN)
    found = told(base_checks(own, None, True, "trace.json"))
    assert [found[name] for name in ("even steps", "MFU", "trace")] == ["pass"] * 3
    assert own_base(own).mfu == 42.0


def test_p95_of_1_15_times_p50_is_too_much():
    found = told(base_checks(trained(UNEVEN), None, True, None))
    assert found["even steps"] == "fail"
    assert "not kept as a base" in found.said("MFU")
    assert told(base_checks(trained([1.0] * 95 + [1.14] * 10), None, True, None))["even steps"] == "pass"


def test_the_warm_up_and_steps_that_save_do_not_count():
    own = trained([60.0] * 5 + [1.0] * 100)
    assert own_base(own).p95_s == 1.0
    steps = {**trained([1.0] * 110).steps[0][0], 50: step(50, step_time_s=30.0, ckpt_s=29.0, mfu=42.0)}
    assert own_base(OwnRun({}, {0: {0: steps}})).p95_s == 1.0


def test_fewer_than_a_hundred_are_no_base():
    assert own_base(trained([1.0] * 104)) is None
    found = told(base_checks(trained([1.0] * 104), None, False, None))
    assert [found[name] for name in ("even steps", "MFU", "trace")] == ["not_possible"] * 3


def test_an_mfu_that_is_not_known_or_cannot_be():
    assert told(base_checks(trained(EVEN, mfu=None), None, True, None))["MFU"] == "not_possible"
    assert told(base_checks(trained(EVEN, mfu=104.0), None, True, None))["MFU"] == "fail"


def test_the_last_attempt_counts():
    own = OwnRun({}, {0: trained(UNEVEN).steps[0], 1: trained(EVEN, attempt=1).steps[1]})
    assert own_base(own).ratio == 1.0


def test_the_drills_steps_are_judged_on_gpus_alone_and_never_give_an_mfu():
    drilled = drill_base({n: step(n, step_time_s=1.0 + 0.3 * (n > 90)) for n in range(1, 200)}, 1, 100)
    on_gpu = told(base_checks(None, drilled, True, "t"))
    on_cpu = told(base_checks(None, drilled, False, "t"))
    assert (on_gpu["even steps"], on_gpu["MFU"]) == ("fail", "not_possible")
    assert on_cpu["even steps"] == "not_possible"
    assert "p95/p50 1.30" in on_cpu.said("even steps")
