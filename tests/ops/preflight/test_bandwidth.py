"""Links that carry what they should, a slow node, a wrong sum."""

from ops.preflight.made import link, rank, told
from train_ledger.ops.preflight.bandwidth import bandwidth_checks

PAIRS = [(f"n{number}", f"n{number + 1}") for number in range(5)]


def cluster(slow=(), gb_per_s=380.0, nic=400e9):
    """Six nodes of one rank; pairs that `slow` names have half of the bandwidth."""
    links = {
        pair: [link(pair, gb_per_s / 2 if pair in slow else gb_per_s, op) for op in OPS] for pair in PAIRS
    }
    return {
        number: rank(
            f"n{number}",
            device="cuda",
            bandwidth=tuple(links.get((f"n{number}", f"n{number + 1}"), ())),
            nic_bytes_per_s=nic,
        )
        for number in range(6)
    }


OPS = ("all_reduce", "all_gather")


def test_all_near_the_nominal_pass():
    found = told(bandwidth_checks(cluster()))
    assert [found[name] for name in ("results", "nominal", "odd node")] == ["pass"] * 3


def test_fifteen_percent_below_the_nominal_is_the_limit():
    assert told(bandwidth_checks(cluster(gb_per_s=0.851 * 400)))["nominal"] == "pass"
    assert told(bandwidth_checks(cluster(gb_per_s=0.849 * 400)))["nominal"] == "fail"


def test_a_nominal_that_is_said_goes_before_the_ports():
    assert told(bandwidth_checks(cluster(), nominal_bytes_per_s=500e9))["nominal"] == "fail"


def test_an_odd_node_is_told_by_both_its_pairs():
    found = told(bandwidth_checks(cluster(slow=[("n1", "n2"), ("n2", "n3")])))
    assert found["odd node"] == "fail"
    assert "n1 and n2" in found.said("odd node")
    assert "n2 and n3" in found.said("odd node")
    assert "n3 and n4" not in found.said("odd node")


def test_without_ports_that_tell_a_rate_the_nominal_is_not_known():
    assert told(bandwidth_checks(cluster(nic=None)))["nominal"] == "not_possible"


def test_two_nodes_cannot_have_an_odd_one():
    figures = {0: rank("a", bandwidth=(link(("a", "b"), 10.0),)), 1: rank("b", bandwidth=())}
    assert told(bandwidth_checks(figures, 10e9))["odd node"] == "not_possible"


def test_a_wrong_sum_fails_whatever_the_speed():
    figures = {0: rank("a", bandwidth=(link(("a", "b"), 10.0, right=False),)), 1: rank("b", bandwidth=())}
    assert told(bandwidth_checks(figures, 10e9))["results"] == "fail"


def test_one_machine_says_what_it_is_and_calls_nobody_odd():
    pairs = [("rank 0", "rank 1"), ("rank 1", "rank 2"), ("rank 2", "rank 3")]
    figures = {number: rank(bandwidth=(link(pair, 1.0 + 2 * number),)) for number, pair in enumerate(pairs)}
    found = told(bandwidth_checks(figures))
    assert [found[name] for name in ("results", "nominal", "odd node")] == [
        "pass",
        "not_possible",
        "not_possible",
    ]
    assert "gloo within this machine" in found.said("results")


def test_one_rank_has_nobody_to_talk_to():
    (check,) = bandwidth_checks({0: rank(bandwidth=())})
    assert check.verdict == "not_possible"
