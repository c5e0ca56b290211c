"""What do the tries of a preflight, and RUN itself, come to for each item?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping

from train_ledger.chaos.dump_place import DUMP_PATH_VARIABLES
from train_ledger.chaos.preflight.tries import Tries
from train_ledger.chaos.preflight.wanted import OWN_ONLY, STAGES_OF
from train_ledger.config import Config
from train_ledger.ops import preflight as room
from train_ledger.ops.preflight import Check
from train_ledger.ops.slow import look_at
from train_ledger.run_dir import RunDir

__all__ = ["Judging"]

_TOLD_IN: Mapping[str, str] = {
    "gpu": "environment",
    "bandwidth": "bandwidth",
    "clocks": "environment",
    "mfu": "steady",
    "restore": "saved",
    "layout": "saved",
}
"""The stage without which there is nothing to say of an item."""


class Judging:
    """The checks of each item, out of what was found."""

    def __init__(self, found: Tries) -> None:
        self._found = found

    def checks_of(self, key: str) -> list[Check]:
        """The checks of that item."""
        if key in STAGES_OF and not self._figures(key) and not self._found.has_torch:
            own = list(self._own_checks(key))
            return [room.not_possible("job", "torch is not installed here", "pip install torch"), *own]
        if key in _TOLD_IN and (why := self._why_not_told(_TOLD_IN[key], self._figures(key))):
            return [room.failed("job", why, "see RUN/preflight/job_logs"), *self._own_checks(key)]
        return list(_CHECKS[key](self))

    def _why_not_told(self, stage: str, figures: Mapping[int, room.RankFigures]) -> str:
        """Why no rank tells of that stage, where the job ended before it."""
        if any(getattr(it, stage) is not None for it in figures.values()):
            return ""
        if self._found.launched is not None and not self._found.launched.came_back:
            return f"the preflight's job ended before: {self._found.launched.said or 'it said nothing'}"
        return ""

    def _own_checks(self, key: str) -> Iterator[Check]:
        """Of the run's own dry run, which takes no torch."""
        if key == "mfu" and self._found.own is not None and room.own_base(self._found.own) is not None:
            yield from room.base_checks(self._found.own, None, False, None)

    def _figures(self, key: str) -> Mapping[int, room.RankFigures]:
        return (
            self._found.far
            if self._found.far and (key not in OWN_ONLY or not self._found.local)
            else self._found.local
        )

    def _gpu(self) -> Iterator[Check]:
        yield from room.gpu_checks(self._figures("gpu"), self._found.wanted.gemm_flops)

    def _bandwidth(self) -> Iterator[Check]:
        yield from room.bandwidth_checks(self._figures("bandwidth"), self._found.wanted.nominal_bytes_per_s)

    def _clocks(self) -> Iterator[Check]:
        yield from room.clock_checks(self._figures("clocks"))

    def _memory(self) -> Iterator[Check]:
        figures = self._figures("gpu").values()
        total = min((it.gpu.total_bytes for it in figures if it.gpu is not None), default=None)
        if self._found.own is None:
            yield room.not_possible(
                "account", "without RUN no dry run is known", "train-ledger preflight RUN"
            )
            return
        allocated, reserved = (
            self._found.own.largest("mem_allocated_peak"),
            self._found.own.largest("mem_reserved_peak"),
        )
        yield from room.memory_checks(self._found.own.run, allocated, reserved, total)

    def _mfu(self) -> Iterator[Check]:
        figures = self._figures("mfu")
        steady = next((it.steady for it in figures.values() if it.steady is not None), None)
        base = None
        if steady is not None:
            job = room.read_own_run(
                RunDir((self._found.cluster if self._found.far else self._found.job) / "run")
            )
            ranks = job.steps.get(job.last_attempt or 0, {})
            base = room.drill_base(ranks[min(ranks)], steady.first, steady.last) if ranks else None
        on_gpu = any(it.environment.device == "cuda" for it in figures.values())
        yield from room.base_checks(self._found.own, base, on_gpu, self._found.trace or None)

    def _restore(self) -> Iterator[Check]:
        figures = self._figures("restore")
        folder = self._found.job if figures is self._found.local else self._found.cluster
        before, after = (room.read_steps(folder, attempt, list(figures)) for attempt in (0, 1))
        yield from room.restore_checks(figures, before, after, self._found.own)

    def _layout(self) -> Iterator[Check]:
        yield from room.layout_checks(self._figures("layout"))

    def _faults(self) -> Iterator[Check]:
        figures = self._figures("faults")
        folder = self._found.job if figures is self._found.local else self._found.cluster
        slow = None
        if any(it.slow is not None for it in figures.values()):
            found = look_at(RunDir(folder / "run"), Config())
            load = os.getloadavg()[0] / (os.cpu_count() or 1) if figures is self._found.local else None
            slow = room.SlowFound(found.cause, found.ranks, load)
        yield from room.fault_checks(figures, self._found.launched, slow)

    def _recorder(self) -> Iterator[Check]:
        is_own_place = self._found.run_dir is None and not any(
            os.environ.get(it) for it in DUMP_PATH_VARIABLES
        )
        figures = {**self._found.local, **self._found.far}
        yield from room.recorder_checks(figures, self._found.own, self._found.hang, is_own_place=is_own_place)

    def _page(self) -> Iterator[Check]:
        name = (
            self._found.run_dir.name_in(self._found.own.run)
            if self._found.run_dir and self._found.own
            else None
        )
        scraped = room.scraped_by(self._found.config.prometheus.url, name)
        yield from room.page_checks(
            self._found.pages, self._found.no_page, scraped, range(self._world_size or 0)
        )

    @property
    def _world_size(self) -> int | None:
        size = self._found.own.run.get("world_size") if self._found.own else None
        return size if isinstance(size, int) else None

    def _logs(self) -> Iterator[Check]:
        if (
            self._found.run_dir is not None
            and self._found.own is not None
            and any(self._found.run_dir.signal_files())
        ):
            known = room.places(self._found.run_dir)
            on_gpu = bool(self._found.own.run.get("device"))
            folders = self._found.run_dir.log_folders()
            ranks = self._world_size or len(known)
            yield from room.log_checks(folders, ranks, known, on_gpu, "your training")
        elif self._found.local:
            known = room.places(RunDir(self._found.job / "run"))
            on_gpu = any(it.environment.device == "cuda" for it in self._found.local.values())
            yield from room.log_checks(
                [self._found.job / "logs"], len(self._found.local), known, on_gpu, "the drill"
            )
            why = "your training has not started in RUN yet" if self._found.run_dir else "no RUN was named"
            yield room.not_possible("your training", why, "let it do a few steps in RUN, and run this again")
        else:
            why = "your training has not started in RUN yet, and no job ran here"
            yield room.not_possible("logs", why, "let it do a few steps in RUN, and run this again")

    def _configuration(self) -> Iterator[Check]:
        run = self._found.own.run if self._found.own is not None else {}
        yield from room.configuration_checks(self._found.run_dir, run, os.environ, self._found.wanted.code)

    def _roster(self) -> Iterator[Check]:
        came = None
        if self._found.pages:
            came = all(it.notified_s is not None and not it.why_not for it in self._found.pages)
        run = self._found.own.run if self._found.own is not None else None
        yield from room.roster_checks(run, self._found.config, came, self._found.wanted.ring)


_CHECKS: Mapping[str, Callable[[Judging], Iterator[Check]]] = {
    item.key: getattr(Judging, f"_{item.key}") for item in room.ITEMS
}
