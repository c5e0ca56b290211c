"""What ranks measure: pairs, checksums, GPUs that stand-ins play."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from train_ledger.chaos.preflight.bandwidth import bus_bandwidth, neighbours
from train_ledger.chaos.preflight.gpu import CardReading, NvmlCard, self_test, under_load
from train_ledger.chaos.preflight.tampering import odd_ones


def test_every_node_is_measured_with_the_next():
    hosts = ["a", "a", "b", "b", "c", "c"]
    assert neighbours(hosts) == [(("a", "b"), (0, 1, 2, 3)), (("b", "c"), (2, 3, 4, 5))]


def test_ranks_that_are_laid_out_in_turns_belong_to_their_node_all_the_same():
    assert neighbours(["a", "b", "a", "b"]) == [(("a", "b"), (0, 2, 1, 3))]


def test_one_rank_has_no_neighbour():
    assert neighbours(["a"]) == []


def test_bus_bandwidth_is_the_same_for_any_number_of_ranks_of_a_perfect_ring():
    """A ring of links of 100 bytes/s reduces a kilobyte in 2 (n - 1) / n × 10 s."""
    for ranks in (2, 8, 1024):
        seconds = 2 * (ranks - 1) / ranks * 10
        assert bus_bandwidth("all_reduce", 1000, ranks, seconds) == pytest.approx(100)
        assert bus_bandwidth("all_gather", 1000, ranks, seconds / 2) == pytest.approx(100)


@pytest.mark.parametrize(
    ("checksums", "odd"),
    [([5, 5, 5, 5], ()), ([5, 5, 6, 5], (2,)), ([5, 6], (0, 1)), ([5, 5, 6, 6], (0, 1, 2, 3)), ([5], ())],
)
def test_who_has_other_bits_than_most(checksums, odd):
    assert odd_ones(checksums) == odd


class PlayedGpu:
    """A GPU that reaches `flops`, and takes as long as it is asked to work."""

    name = "NVIDIA H200"
    pci = None
    total_bytes = 141 << 30

    def __init__(self, clock, flops=950e12, wrong=0):
        self.clock, self.flops, self.wrong = clock, flops, wrong

    def memory_errors(self):
        return 100 << 30, self.wrong

    def gemm(self, seconds):
        self.clock.now_s += seconds
        return self.flops


class PlayedCard:
    """A card that throttles after half a minute."""

    def __init__(self, clock):
        self.clock = clock

    def read(self):
        hot = self.clock.now_s > 30
        return CardReading(1400.0 if hot else 1980.0, 1980.0, 0x20 if hot else 0, 85.0, 0)


@pytest.fixture
def clock():
    return SimpleNamespace(now_s=0.0)


def test_a_self_test_tells_the_gpus_own_figures_beside_its_peak(clock):
    found = self_test(PlayedGpu(clock, wrong=3), PlayedCard(clock))
    assert (found["gemm_flops"], found["peak_flops"]) == (950e12, 989e12)
    assert (found["memory_tested_bytes"], found["memory_wrong_bytes"], found["xid"]) == (100 << 30, 3, 0)


def test_the_clocks_are_read_throughout_and_not_while_they_settle(clock):
    found = under_load(PlayedGpu(clock), PlayedCard(clock), 60.0, clock=lambda: clock.now_s)
    readings = found["readings"]
    assert len(readings) == 25
    assert [it["reasons"] for it in readings].count(0x20) == 15
    assert clock.now_s == 60.0


def test_a_short_load_has_readings_all_the_same(clock):
    assert under_load(PlayedGpu(clock), PlayedCard(clock), 4.0, clock=lambda: clock.now_s)["readings"]


class PlayedNvml:
    """nvidia-ml-py as far as it is asked for a maximal clock; everything else it does not know."""

    NVML_CLOCK_SM = 1

    class NVMLError(Exception):
        value = 3

    def __getattr__(self, name):
        def refuse(*_):
            raise self.NVMLError("not supported")

        return refuse

    def nvmlInit(self):  # noqa: N802
        pass

    def nvmlShutdown(self):  # noqa: N802
        pass


def test_a_driver_that_tells_nothing_gives_an_empty_reading():
    assert NvmlCard(0, PlayedNvml()).read() == CardReading()
