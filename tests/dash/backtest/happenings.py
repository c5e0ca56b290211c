"""What can happen to a made run: each takes the seconds of health before it, and for how long it is seen."""

from __future__ import annotations

from collections.abc import Callable

from dash.backtest.made import Made

__all__ = ["LAST", "data_goes_back", "gpu_reads", "gpu_vanishes", "host_falls_silent", "rank_falls_silent"]

LAST = ("node1", 1)
"""The GPU of rank 3."""

Happening = Callable[[Made], object]


def gpu_reads(after_s: float = 120, **values: float) -> Happening:
    """From then on the GPU of rank 3 reads so."""

    def happen(run: Made) -> None:
        run.go(after_s)
        run.gpus[LAST] = values
        run.go(300)

    return happen


def gpu_vanishes(after_s: float, seen_s: float) -> Happening:
    def happen(run: Made) -> None:
        run.go(after_s)
        run.lost.add(LAST)
        run.go(seen_s)

    return happen


def host_falls_silent(after_s: float, seen_s: float) -> Happening:
    def happen(run: Made) -> None:
        run.go(after_s)
        run.dark.add("node1")
        run.go(seen_s)

    return happen


def rank_falls_silent(after_s: float, seen_s: float) -> Happening:
    def happen(run: Made) -> None:
        run.go(after_s)
        run.silent.add(3)
        run.go(seen_s)

    return happen


def data_goes_back(by: float, restart_s: float) -> Happening:
    """After a restart each step stands at so many samples more than it did."""

    def counted(job: Made) -> None:
        job.values["consumed_samples"] = 64.0 * job.step

    def counted_otherwise(job: Made) -> None:
        job.values["consumed_samples"] = 64.0 * job.step + by

    def happen(run: Made) -> None:
        run.go(200, each=counted).restart(restart_s, at_step=20).go(200, each=counted_otherwise)

    return happen
