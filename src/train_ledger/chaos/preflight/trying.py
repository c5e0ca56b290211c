"""Does everything that a long run needs hold here?

Runs the preflight's job and the drills, reads what RUN itself tells of a dry run, and puts each item's checks
together. Whatever is started ends with this, and nothing stays but what RUN/preflight keeps.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from train_ledger.chaos import servers
from train_ledger.chaos.dump_place import DUMP_PATH_VARIABLES
from train_ledger.chaos.plan import gpus_here
from train_ledger.chaos.preflight import drills
from train_ledger.chaos.preflight.job import STAGES
from train_ledger.chaos.preflight.launch import run_job
from train_ledger.config import Config
from train_ledger.ops import preflight as room
from train_ledger.ops.coverage import Coverage, coverage
from train_ledger.ops.preflight import Check, ItemAnswer, Preflight
from train_ledger.ops.slow import look_at
from train_ledger.render import moment
from train_ledger.run_dir import RunDir, RunDirError

__all__ = ["MEASURED", "STAGES_OF", "Wanted", "preflight"]

MEASURED = "preflight/measured"
"""Below RUN: what the ranks of a cluster measured (`--as-rank`)."""

_CPU_RANKS = 4
_HUNG_CPU_RANKS = 2
STAGES_OF: Mapping[str, tuple[str, ...]] = {
    "gpu": ("gpu",),
    "bandwidth": ("bandwidth",),
    "clocks": ("clocks",),
    "mfu": ("steps", "trace"),
    "restore": ("restore", "kill"),
    "layout": ("restore", "layout"),
    "faults": ("restore", "kill", "steps", "slow", "tamper"),
}
_OWN_ONLY = frozenset({"restore", "faults"})
"""Items for which processes are killed: on this machine, whatever the cluster has measured."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for: the items' words, and what is known better than it can be found out.

    `ranks` None: one a GPU, else four. `code` is the folder of the training's scripts. `cluster_only` leaves
    out what this machine would do, as under a launcher of the user's own.
    """

    items: tuple[str, ...]
    ranks: int | None = None
    load_s: float = 300.0
    gemm_flops: float | None = None
    nominal_bytes_per_s: float | None = None
    ring: bool = False
    code: Path = field(default_factory=Path.cwd)
    cluster_only: bool = False


def preflight(
    run_dir: RunDir | None, config: Config, wanted: Wanted, say: Callable[[str], None] = lambda _: None
) -> Preflight:
    """Check what is wanted; `say` is told what goes on. Raises RunDirError and PreflightError."""
    began_t, began = time.time(), time.monotonic()
    with _work_folder(run_dir) as folder:
        tried = _Trying(run_dir, config, wanted, folder, say)
        tried.run()
        items = tuple(room.answer_of(key, tried.checks_of(key)) for key in wanted.items)
        _keep_baseline(run_dir, tried.own, items)
        return Preflight(
            run=str(run_dir.path) if run_dir else None,
            began_t=began_t,
            took_s=time.monotonic() - began,
            where=tried.where,
            items=items,
            not_asked=tuple(it.title for it in room.ITEMS if it.key not in wanted.items),
            coverage=_coverage(run_dir, config),
        )


@contextlib.contextmanager
def _work_folder(run_dir: RunDir | None) -> Iterator[Path]:
    """On the run's own storage, since that is what is tried; removed in the end."""
    place = run_dir.path / "preflight" if run_dir else None
    try:
        if place is not None:
            place.mkdir(parents=True, exist_ok=True)
        folder = Path(
            tempfile.mkdtemp(prefix="train-ledger-preflight-" if place is None else "work-", dir=place)
        )
    except OSError as error:
        raise RunDirError(
            f"{place or tempfile.gettempdir()}: {error.strerror}; give the right to write"
        ) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _keep_baseline(run_dir: RunDir | None, own: room.OwnRun | None, items: Collection[ItemAnswer]) -> None:
    """Of the run's own training, where the item of the base passed."""
    base = room.own_base(own) if own is not None else None
    passes = any(it.key == "mfu" and it.verdict == "pass" for it in items)
    if run_dir is not None and base is not None and base.mfu is not None and passes:
        run_dir.merge_run({"mfu_baseline": round(base.mfu, 2)})


_TOLD_IN: Mapping[str, str] = {
    "gpu": "environment",
    "bandwidth": "bandwidth",
    "clocks": "environment",
    "mfu": "steady",
    "restore": "saved",
    "layout": "saved",
}
"""The stage without which there is nothing to say of an item."""


def _coverage(run_dir: RunDir | None, config: Config) -> Coverage | None:
    """Which causes could be told of the run by what arrives of it, where something does."""
    if run_dir is None or not any(run_dir.signal_files()):
        return None
    return coverage(run_dir, config)


class _Trying:
    """What was found so far, of which each item's checks are made."""

    def __init__(
        self, run_dir: RunDir | None, config: Config, wanted: Wanted, folder: Path, say: Callable[[str], None]
    ) -> None:
        self._run_dir, self._config, self._wanted, self._folder, self._say = (
            run_dir,
            config,
            wanted,
            folder,
            say,
        )
        self.own = room.read_own_run(run_dir) if run_dir else None
        self._has_torch = importlib.util.find_spec("torch") is not None
        self._ranks = wanted.ranks or gpus_here() or _CPU_RANKS
        self._job = folder / "job"
        self._cluster = run_dir.path / MEASURED if run_dir else folder / "none"
        self._launched: room.Launched | None = None
        self._local: Mapping[int, room.RankFigures] = {}
        self._far = room.read_figures(self._cluster)
        self._hang: room.HangDrilled | None = None
        self._pages: tuple[room.PageDrilled, ...] = ()
        self._no_page = ""
        self._trace = ""

    @property
    def where(self) -> str:
        figures = self._far or self._local
        if not figures:
            return f"{socket.gethostname()}, where no job ran"
        one = next(iter(figures.values())).environment
        hosts = len({it.environment.host for it in figures.values()})
        on = one.host if hosts == 1 else f"{hosts} hosts"
        gpu = next((it.gpu.name for it in figures.values() if it.gpu is not None), "")
        device = f", {gpu}" if gpu else ", without a GPU"
        return f"{len(figures)} ranks over {one.backend} on {on}{device}{self._measured_at()}"

    def _measured_at(self) -> str:
        """When the cluster measured, which may be long ago."""
        if not self._far or self._wanted.cluster_only:
            return ""
        newest_t = max(path.stat().st_mtime for path in self._cluster.glob("rank_*.json"))
        return f"; measured together at {moment(newest_t)}"

    def run(self) -> None:
        """The job and the drills, the page drill beside them."""
        with contextlib.ExitStack() as stack:
            page = None
            if "page" in self._wanted.items and not self._wanted.cluster_only:
                self._say("page drill: a small run of its own stops its steps")
                run = self._run_dir.path if self._run_dir else None
                by_prometheus = bool(self._config.prometheus.url) and not servers.missing_servers()
                page = stack.enter_context(
                    drills.page_drill(self._folder, run, prometheus=by_prometheus, ring=self._wanted.ring)
                )
            if self._has_torch and not self._wanted.cluster_only:
                self._run_job_and_hang()
            if page is not None:
                self._say("page drill: waiting for its end")
                self._pages, self._no_page = page.result()
        self._keep_trace()

    def _run_job(self) -> None:
        items = [
            key for key in self._wanted.items if key in _OWN_ONLY or (key in STAGES_OF and not self._far)
        ]
        wanted = {stage for key in items for stage in STAGES_OF[key]}
        if "recorder" in self._wanted.items and not self._far and not wanted:
            wanted = {"bandwidth"}  # some job has to tell of its ranks' environment
        if not wanted:
            return
        if "kill" in wanted:
            wanted.add("steps")
        stages = [stage for stage in STAGES if stage in wanted]
        self._say(f"job of {self._ranks} ranks: {', '.join(stages)}")
        self._launched = run_job(self._job, self._ranks, stages, self._wanted.load_s)
        self._local = room.read_figures(self._job)
        if not self._launched.came_back and self._run_dir is not None:
            kept = self._run_dir.path / "preflight" / "job_logs"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(self._job / "logs", kept, dirs_exist_ok=True)

    def _run_job_and_hang(self) -> None:
        """One after the other on GPUs; on processors at once: the one mostly waits while the other works."""
        if "recorder" not in self._wanted.items:
            self._run_job()
            return
        on_gpu = gpus_here() >= self._ranks
        if on_gpu:
            self._run_job()
        self._say("hang drill: one rank does not come to a collective")
        ranks = max(self._ranks, 2) if on_gpu else _HUNG_CPU_RANKS
        with drills.hang_drill(self._folder / "hang", ranks) as drill:
            if not on_gpu:
                self._run_job()
            self._hang = drill.result()

    def _keep_trace(self) -> None:
        """Out of the work folder, which goes."""
        trace = next((it.trace for it in {**self._local, **self._far}.values() if it.trace), None)
        if trace is None or self._run_dir is None or not Path(trace).exists():
            return
        kept = self._run_dir.path / "preflight" / "trace_rank_0.json"
        if Path(trace) != kept:
            shutil.copyfile(trace, kept)
        self._trace = str(kept)

    def checks_of(self, key: str) -> list[Check]:
        """The checks of that item."""
        if key in STAGES_OF and not self._figures(key) and not self._has_torch:
            own = list(self._own_checks(key))
            return [room.not_possible("job", "torch is not installed here", "pip install torch"), *own]
        if key in _TOLD_IN and (why := self._why_not_told(_TOLD_IN[key], self._figures(key))):
            return [room.failed("job", why, "see RUN/preflight/job_logs"), *self._own_checks(key)]
        return list(_CHECKS[key](self))

    def _why_not_told(self, stage: str, figures: Mapping[int, room.RankFigures]) -> str:
        """Why no rank tells of that stage, where the job ended before it."""
        if any(getattr(it, stage) is not None for it in figures.values()):
            return ""
        if self._launched is not None and not self._launched.came_back:
            return f"the preflight's job ended before: {self._launched.said or 'it said nothing'}"
        return ""

    def _own_checks(self, key: str) -> Iterator[Check]:
        """Of the run's own dry run, which takes no torch."""
        if key == "mfu" and self.own is not None and room.own_base(self.own) is not None:
            yield from room.base_checks(self.own, None, False, None)

    def _figures(self, key: str) -> Mapping[int, room.RankFigures]:
        return self._far if self._far and (key not in _OWN_ONLY or not self._local) else self._local

    def _gpu(self) -> Iterator[Check]:
        yield from room.gpu_checks(self._figures("gpu"), self._wanted.gemm_flops)

    def _bandwidth(self) -> Iterator[Check]:
        yield from room.bandwidth_checks(self._figures("bandwidth"), self._wanted.nominal_bytes_per_s)

    def _clocks(self) -> Iterator[Check]:
        yield from room.clock_checks(self._figures("clocks"))

    def _memory(self) -> Iterator[Check]:
        figures = self._figures("gpu").values()
        total = min((it.gpu.total_bytes for it in figures if it.gpu is not None), default=None)
        if self.own is None:
            yield room.not_possible(
                "account", "without RUN no dry run is known", "train-ledger preflight RUN"
            )
            return
        allocated, reserved = self.own.largest("mem_allocated_peak"), self.own.largest("mem_reserved_peak")
        yield from room.memory_checks(self.own.run, allocated, reserved, total)

    def _mfu(self) -> Iterator[Check]:
        figures = self._figures("mfu")
        steady = next((it.steady for it in figures.values() if it.steady is not None), None)
        base = None
        if steady is not None:
            job = room.read_own_run(RunDir((self._cluster if self._far else self._job) / "run"))
            ranks = job.steps.get(job.last_attempt or 0, {})
            base = room.drill_base(ranks[min(ranks)], steady.first, steady.last) if ranks else None
        on_gpu = any(it.environment.device == "cuda" for it in figures.values())
        yield from room.base_checks(self.own, base, on_gpu, self._trace or None)

    def _restore(self) -> Iterator[Check]:
        figures = self._figures("restore")
        folder = self._job if figures is self._local else self._cluster
        before, after = (room.read_steps(folder, attempt, list(figures)) for attempt in (0, 1))
        yield from room.restore_checks(figures, before, after, self.own)

    def _layout(self) -> Iterator[Check]:
        yield from room.layout_checks(self._figures("layout"))

    def _faults(self) -> Iterator[Check]:
        figures = self._figures("faults")
        folder = self._job if figures is self._local else self._cluster
        slow = None
        if any(it.slow is not None for it in figures.values()):
            found = look_at(RunDir(folder / "run"), Config())
            slow = room.SlowFound(found.cause, found.ranks)
        yield from room.fault_checks(figures, self._launched, slow)

    def _recorder(self) -> Iterator[Check]:
        is_own_place = self._run_dir is None and not any(os.environ.get(it) for it in DUMP_PATH_VARIABLES)
        figures = {**self._local, **self._far}
        yield from room.recorder_checks(figures, self.own, self._hang, is_own_place=is_own_place)

    def _page(self) -> Iterator[Check]:
        name = self._run_dir.name_in(self.own.run) if self._run_dir and self.own else None
        scraped = room.scraped_by(self._config.prometheus.url, name)
        yield from room.page_checks(self._pages, self._no_page, scraped, range(self._world_size or 0))

    @property
    def _world_size(self) -> int | None:
        size = self.own.run.get("world_size") if self.own else None
        return size if isinstance(size, int) else None

    def _logs(self) -> Iterator[Check]:
        if self._run_dir is not None and self.own is not None and any(self._run_dir.signal_files()):
            known = room.places(self._run_dir)
            on_gpu = bool(self.own.run.get("device"))
            folders = self._run_dir.log_folders()
            ranks = self._world_size or len(known)
            yield from room.log_checks(folders, ranks, known, on_gpu, "your training")
        elif self._local:
            known = room.places(RunDir(self._job / "run"))
            on_gpu = any(it.environment.device == "cuda" for it in self._local.values())
            yield from room.log_checks([self._job / "logs"], len(self._local), known, on_gpu, "the drill")
            why = "your training has not started in RUN yet" if self._run_dir else "no RUN was named"
            yield room.not_possible("your training", why, "let it do a few steps in RUN, and run this again")
        else:
            why = "your training has not started in RUN yet, and no job ran here"
            yield room.not_possible("logs", why, "let it do a few steps in RUN, and run this again")

    def _configuration(self) -> Iterator[Check]:
        run = self.own.run if self.own is not None else {}
        yield from room.configuration_checks(self._run_dir, run, os.environ, self._wanted.code)

    def _roster(self) -> Iterator[Check]:
        came = None
        if self._pages:
            came = all(it.notified_s is not None and not it.why_not for it in self._pages)
        run = self.own.run if self.own is not None else None
        yield from room.roster_checks(run, self._config, came, self._wanted.ring)


_CHECKS: Mapping[str, Callable[[_Trying], Iterator[Check]]] = {
    item.key: getattr(_Trying, f"_{item.key}") for item in room.ITEMS
}
