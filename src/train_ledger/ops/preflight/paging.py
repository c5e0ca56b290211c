"""Would the page come, and does Prometheus see every rank? (item 10)"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from train_ledger.ops.preflight.records import Check, failed, not_possible, passed
from train_ledger.render import duration, ranks_in_brief

__all__ = ["PAGE_WITHIN_S", "PageDrilled", "Scraped", "page_checks"]

PAGE_WITHIN_S = 120.0


@dataclass(frozen=True, slots=True)
class PageDrilled:
    """One way of the page in the drill: seconds from the last step to the message, None where none came."""

    way: str
    notified_s: float | None
    messages: int
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Scraped:
    """Which ranks' step clock Prometheus has, how many GPUs it hears of, or why it was not asked."""

    ranks: tuple[int, ...] = ()
    gpus: int = 0
    url: str = ""
    why_not: str = ""
    fails: bool = False


def page_checks(
    drilled: Sequence[PageDrilled], why_not: str, scraped: Scraped, expected: Collection[int]
) -> Iterator[Check]:
    """`why_not` says why no page was drilled; `expected` are the run's ranks, empty where not known."""
    if not drilled:
        yield not_possible("page", why_not or "the drill was not run", "train-ledger drill page")
    yield from map(_page, drilled)
    yield from _scraped(scraped, expected)


def _page(drilled: PageDrilled) -> Check:
    name = f"page by {drilled.way}"
    if drilled.notified_s is None:
        said = f"steps stopped, and no message came: {drilled.why_not}"
        return failed(name, said, "train-ledger drill page shows how far it came")
    said = f"the message was there {duration(drilled.notified_s)} after the last step"
    if drilled.notified_s > PAGE_WITHIN_S:
        return failed(name, f"{said}, not within 2 min", "shorten evaluation_interval_s or stall_floor_s")
    if drilled.why_not:
        return failed(name, f"{said}, but {drilled.why_not}", "train-ledger drill page shows it")
    return passed(name, said)


def _scraped(scraped: Scraped, expected: Collection[int]) -> Iterator[Check]:
    name = "scrapes"
    if scraped.why_not:
        make = failed if scraped.fails else not_possible
        yield make(
            name, scraped.why_not, "[prometheus] url in train-ledger.toml: where your Prometheus answers"
        )
        return
    missing = sorted(set(expected) - set(scraped.ranks))
    if missing or not scraped.ranks:
        who = ranks_in_brief(missing) if missing else "any rank of this run"
        said = f"{scraped.url} has no train_* series of {who}"
        yield failed(name, said, "is train-ledger export up on its node, and a target of Prometheus?")
    else:
        of = f"all {len(scraped.ranks)} ranks" if expected else f"{len(scraped.ranks)} ranks"
        yield passed(name, f"{scraped.url} has the step clock of {of}")
    if scraped.gpus:
        yield passed("GPU metrics", f"of {scraped.gpus} GPUs (DCGM_FI_DEV_*)")
    else:
        said = f"{scraped.url} has no DCGM_FI_DEV_* series"
        fix = "dcgm-exporter on every node: train-ledger deploy writes its fields and targets"
        yield not_possible("GPU metrics", said, fix)
