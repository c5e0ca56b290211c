"""Are the GPUs sound, near their peak, and do they keep their clocks under load? (items 1 and 3)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from train_ledger.ops.preflight.figures import Clocks, GpuTest, RankFigures
from train_ledger.ops.preflight.records import Check, failed, not_possible, passed
from train_ledger.render import ranks_in_brief

__all__ = ["CLOSE_TO_PEAK", "clock_checks", "gpu_checks"]

CLOSE_TO_PEAK = 0.95
_EVEN = 0.95
_CLOSE_TO_CLOCK = 0.95
_REASONS: Mapping[int, str] = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "heat (software)",
    0x40: "heat (hardware)",
    0x80: "power brake",
}
"""NVML's clocks event reasons (nvml.h) that are trouble under load."""

_NO_GPU = "no rank has an NVIDIA GPU of its own that torch can use"


def gpu_checks(figures: Mapping[int, RankFigures], gemm_flops: float | None = None) -> Iterator[Check]:
    """Memory, matrix products, evenness and XIDs; `gemm_flops` goes before the data sheet's peak."""
    tests = {rank: it.gpu for rank, it in figures.items() if it.gpu is not None}
    if not tests:
        yield not_possible("self-test", _NO_GPU, "run it on the nodes, under torchrun: docs/preflight.md")
        return
    yield _memory(tests)
    yield _peak(tests, gemm_flops)
    yield from _even(tests, figures)
    yield _xids(tests)


def _memory(tests: Mapping[int, GpuTest]) -> Check:
    wrong = {rank: it.memory_wrong_bytes for rank, it in tests.items() if it.memory_wrong_bytes}
    least = min(it.memory_tested_bytes for it in tests.values())
    if wrong:
        worst = max(wrong, key=lambda rank: wrong[rank])
        said = f"{ranks_in_brief(wrong)}: bytes came back changed, {wrong[worst]:,} on rank {worst}"
        return failed("memory", said, "take the card out of the job and test it with dcgmi diag -r 3")
    return passed("memory", f"at least {least / 2**30:.0f} GiB of each GPU written and read back, unchanged")


def _peak(tests: Mapping[int, GpuTest], gemm_flops: float | None) -> Check:
    shares = {
        rank: it.gemm_flops / peak for rank, it in tests.items() if (peak := gemm_flops or it.peak_flops)
    }
    if not shares:
        names = ", ".join(sorted({it.name for it in tests.values()}))
        return not_possible("GEMM", f"the peak of {names} is not known", "say it: --gemm-tflops")
    worst = min(shares, key=lambda rank: shares[rank])
    said = (
        f"{shares[worst]:.1%} of the peak on rank {worst}, the lowest; median {median(shares.values()):.1%}"
    )
    low = [rank for rank, share in shares.items() if share <= CLOSE_TO_PEAK]
    if low:
        fix = "compare with a card known to be healthy; what such a card reaches goes into --gemm-tflops"
        return failed("GEMM", f"{said}; {ranks_in_brief(low)} not over {CLOSE_TO_PEAK:.0%}", fix)
    return passed("GEMM", said)


def _even(tests: Mapping[int, GpuTest], figures: Mapping[int, RankFigures]) -> Iterator[Check]:
    hosts: dict[str, dict[int, float]] = {}
    for rank, it in tests.items():
        hosts.setdefault(figures[rank].environment.host, {})[rank] = it.gemm_flops
    nodes = {host: of for host, of in hosts.items() if len(of) > 1}
    if not nodes:
        yield not_possible("evenness", "no node has more than one GPU in the job")
        return
    odd = [
        f"rank {rank} on {host}: {flops / median(of.values()):.1%} of its node's median"
        for host, of in nodes.items()
        for rank, flops in of.items()
        if flops < _EVEN * median(of.values())
    ]
    if odd:
        yield failed("evenness", "; ".join(odd[:8]), "look at that card's clocks, power and heat")
    else:
        yield passed("evenness", f"each GPU within 5 % of its node's median, on {len(nodes)} nodes")


def _xids(tests: Mapping[int, GpuTest]) -> Check:
    told = {rank: it.xid for rank, it in tests.items() if it.xid}
    if told:
        said = "; ".join(f"rank {rank}: XID {xid}" for rank, xid in list(told.items())[:8])
        return failed("XID", said, "look it up: train-ledger diagnose RUN, or the runbook's section xid")
    if all(it.xid is None for it in tests.values()):
        return not_possible(
            "XID", "NVML tells of no XIDs here", "watch the kernel log: train-ledger export RUN"
        )
    return passed("XID", "none while the cards worked")


def clock_checks(figures: Mapping[int, RankFigures]) -> Iterator[Check]:
    """Clocks beside the maximal ones, and reasons to go lower, of every rank's GPU under load."""
    loads = {rank: it.clocks for rank, it in figures.items() if it.clocks is not None}
    if not loads:
        yield not_possible("clocks", _NO_GPU, "run it on the nodes, under torchrun: docs/preflight.md")
        return
    yield _near_the_maximum(loads)
    yield _reasons(loads)


def _near_the_maximum(loads: Mapping[int, Clocks]) -> Check:
    shares = {rank: share for rank, it in loads.items() if (share := _share(it)) is not None}
    if not shares:
        return not_possible("clocks", "NVML tells no clocks here")
    worst = min(shares, key=lambda rank: shares[rank])
    seconds = min(it.seconds for it in loads.values())
    said = f"over {seconds:.0f} s under load {shares[worst]:.1%} of the maximal clock on rank {worst}, least"
    if shares[worst] < _CLOSE_TO_CLOCK:
        low = [rank for rank, share in shares.items() if share < _CLOSE_TO_CLOCK]
        return failed(
            "clocks", f"{said}; {ranks_in_brief(low)} under 95 %", "see the reasons; cooling, power"
        )
    return passed("clocks", said)


def _share(clocks: Clocks) -> float | None:
    shares = [it.sm_mhz / it.max_mhz for it in clocks.readings if it.sm_mhz is not None and it.max_mhz]
    return median(shares) if shares else None


def _reasons(loads: Mapping[int, Clocks]) -> Check:
    told = {
        rank: [it.reasons for it in load.readings if it.reasons is not None] for rank, load in loads.items()
    }
    if not any(told.values()):
        return not_possible("reasons", "NVML tells no reasons here")
    named = {rank: _named(bits) for rank, bits in told.items() if _named(bits)}
    if named:
        said = "; ".join(f"rank {rank}: {', '.join(words)}" for rank, words in list(named.items())[:8])
        return failed("reasons", said, "cooling and power of these cards, and nvidia-smi -q -d PERFORMANCE")
    return passed("reasons", f"none of power or heat on {len(loads)} GPUs")


def _named(bits: Sequence[int]) -> list[str]:
    seen = 0
    for reading in bits:
        seen |= reading
    return [word for bit, word in _REASONS.items() if seen & bit]
