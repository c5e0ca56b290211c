"""Do the nodes talk as fast as their network cards should let them, and all alike? (item 2)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from train_ledger.ops.preflight.figures import Link, RankFigures
from train_ledger.ops.preflight.records import Check, failed, not_possible, passed

__all__ = ["bandwidth_checks"]

_NEAR = 0.85
_FEWEST_PAIRS = 3
_GIGA = 1e9


def bandwidth_checks(
    figures: Mapping[int, RankFigures], nominal_bytes_per_s: float | None = None
) -> Iterator[Check]:
    """Right results, the nominal bandwidth, and no odd node.

    `nominal_bytes_per_s` is what a node's cards carry together; where it is None the ports' own rate counts.
    """
    links = [link for it in figures.values() for link in it.bandwidth or ()]
    if not links:
        yield not_possible("bandwidth", "one rank alone has nobody to talk to", "give it two ranks or more")
        return
    hosts = {it.environment.host for it in figures.values()}
    yield _right(links, figures, len(hosts))
    if len(hosts) == 1:
        why = "one node: what its ranks reach among themselves is no figure of the network"
        yield not_possible("nominal", why, "run it on all nodes, under torchrun: docs/preflight.md")
        yield not_possible("odd node", "one node has no other to be compared with")
        return
    nominal = nominal_bytes_per_s or min((it.nic_bytes_per_s or 0.0 for it in figures.values()), default=0.0)
    yield _near_nominal(links, nominal)
    yield _odd(links)


def _right(links: Sequence[Link], figures: Mapping[int, RankFigures], hosts: int) -> Check:
    wrong = [link for link in links if not link.right]
    if wrong:
        said = "; ".join(f"{link.op} of {_pair(link)}: wrong result" for link in wrong[:8])
        return failed(
            "results", said, "take one of the two out and try again: a card or a link corrupts data"
        )
    backend = next(iter(figures.values())).environment.backend
    over = "over the network" if hosts > 1 else "within this machine"
    said = ", ".join(f"{op} {_range(links, op)} GB/s" for op in ("all_reduce", "all_gather"))
    return passed("results", f"right sums by {backend} {over}; bus bandwidth a pair: {said}")


def _range(links: Sequence[Link], op: str) -> str:
    rates = sorted(link.bytes_per_s / _GIGA for link in links if link.op == op)
    if not rates:
        return "unknown"
    return f"{rates[0]:.3g}" if len(rates) == 1 else f"{rates[0]:.3g}–{rates[-1]:.3g}"


def _near_nominal(links: Sequence[Link], nominal: float) -> Check:
    if not nominal:
        why = "what the network cards should carry is not known: no port of theirs tells a rate"
        return not_possible("nominal", why, "say it: --nominal-gbit, of all cards of a node together")
    slowest = min(links, key=lambda link: link.bytes_per_s)
    said = (
        f"{slowest.op} of {_pair(slowest)}, the slowest: {slowest.bytes_per_s / _GIGA:.3g} GB/s, "
        f"{slowest.bytes_per_s / nominal:.0%} of the nominal {nominal / _GIGA:.3g} GB/s"
    )
    if slowest.bytes_per_s < _NEAR * nominal:
        return failed("nominal", said, "look at the ports' rates and errors on both nodes, and at NCCL's log")
    return passed("nominal", said)


def _odd(links: Sequence[Link]) -> Check:
    odd, compared = [], 0
    for op in ("all_reduce", "all_gather"):
        of_op = [link for link in links if link.op == op]
        if len(of_op) < _FEWEST_PAIRS:
            continue
        compared += len(of_op)
        usual = median(link.bytes_per_s for link in of_op)
        odd += [
            f"{op} of {_pair(link)}: {link.bytes_per_s / usual:.0%} of the median"
            for link in of_op
            if link.bytes_per_s < _NEAR * usual
        ]
    if not compared:
        return not_possible("odd node", "fewer than four nodes: no pair can be called odd")
    if odd:
        fix = (
            "the node that both slow pairs have in common is the odd one: look at its ports, or leave it out"
        )
        return failed("odd node", "; ".join(odd[:8]), fix)
    return passed("odd node", "each pair within 15 % of the median")


def _pair(link: Link) -> str:
    return " and ".join(link.pair)
