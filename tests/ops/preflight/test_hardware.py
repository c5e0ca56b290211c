"""GPUs that are sound, weak, uneven, throttled – or not there."""

from ops.preflight.made import clocks, gpu, rank, told
from train_ledger.ops.preflight.hardware import clock_checks, gpu_checks


def node(**of_one):
    """Two GPUs on each of two nodes; what is given is rank 3's alone."""
    tests = {number: gpu(**(of_one if number == 3 else {})) for number in range(4)}
    return {number: rank(f"n{number // 2}", device="cuda", gpu=it) for number, it in tests.items()}


def test_sound_gpus_pass():
    found = told(gpu_checks(node()))
    assert {found[name] for name in ("memory", "GEMM", "evenness", "XID")} == {"pass"}


def test_a_byte_that_comes_back_changed_fails_and_names_the_rank():
    found = told(gpu_checks(node(memory_wrong_bytes=1)))
    assert found["memory"] == "fail"
    assert "rank 3" in found.said("memory")


def test_exactly_95_percent_is_not_over_it():
    assert told(gpu_checks(node(gemm_flops=0.95 * 989e12)))["GEMM"] == "fail"
    assert told(gpu_checks(node(gemm_flops=0.951 * 989e12)))["GEMM"] == "pass"


def test_a_peak_that_is_said_goes_before_the_data_sheets():
    weak = node(gemm_flops=700e12)
    assert told(gpu_checks(weak))["GEMM"] == "fail"
    all_like_that = {number: rank("n0", gpu=gpu(gemm_flops=700e12)) for number in range(4)}
    found = told(gpu_checks(all_like_that, gemm_flops=720e12))
    assert (found["GEMM"], found["evenness"]) == ("pass", "pass")


def test_a_model_that_is_not_in_the_table_has_no_verdict():
    found = told(gpu_checks({0: rank(gpu=gpu(name="Some GPU", peak_flops=None))}))
    assert found["GEMM"] == "not_possible"
    assert "Some GPU" in found.said("GEMM")


def test_an_uneven_node_fails_though_its_peers_on_other_nodes_are_even():
    figures = {number: rank("n0", gpu=gpu(gemm_flops=960e12)) for number in range(3)}
    figures[3] = rank("n0", gpu=gpu(gemm_flops=945e12 * 0.95))
    assert told(gpu_checks(figures))["evenness"] == "fail"


def test_one_gpu_a_node_has_nothing_to_be_even_with():
    assert told(gpu_checks({0: rank("a", gpu=gpu()), 1: rank("b", gpu=gpu())}))["evenness"] == "not_possible"


def test_an_xid_fails_and_silence_about_xids_is_no_pass():
    assert told(gpu_checks(node(xid=79)))["XID"] == "fail"
    assert told(gpu_checks({0: rank(gpu=gpu(xid=None))}))["XID"] == "not_possible"


def test_without_a_gpu_nothing_is_possible_and_the_reason_is_said():
    for checks in (gpu_checks({0: rank()}), clock_checks({0: rank()}), gpu_checks({})):
        (check,) = checks
        assert check.verdict == "not_possible"
        assert "GPU" in check.said


def test_clocks_near_the_maximum_without_reasons_pass():
    found = told(clock_checks({0: rank(clocks=clocks()), 1: rank(clocks=clocks())}))
    assert (found["clocks"], found["reasons"]) == ("pass", "pass")


def test_a_low_clock_fails_and_so_does_a_power_cap_at_a_full_clock():
    found = told(clock_checks({0: rank(clocks=clocks()), 1: rank(clocks=clocks(1400.0))}))
    assert (found["clocks"], found["reasons"]) == ("fail", "pass")
    found = told(clock_checks({0: rank(clocks=clocks()), 1: rank(clocks=clocks(reasons=0x04 | 0x01))}))
    assert (found["clocks"], found["reasons"]) == ("pass", "fail")
    assert "rank 1: power cap" in found.said("reasons")


def test_idle_and_application_clocks_are_no_trouble():
    assert told(clock_checks({0: rank(clocks=clocks(reasons=0x01 | 0x02 | 0x10))}))["reasons"] == "pass"


def test_a_driver_that_tells_no_reasons_is_no_pass():
    assert told(clock_checks({0: rank(clocks=clocks(reasons=None))}))["reasons"] == "not_possible"
