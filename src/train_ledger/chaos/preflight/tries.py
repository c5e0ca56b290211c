"""What do the preflight's job and the drills find?"""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

from train_ledger.chaos import servers
from train_ledger.chaos.plan import gpus_here
from train_ledger.chaos.preflight import drills
from train_ledger.chaos.preflight.launch import run_job
from train_ledger.chaos.preflight.stages import STAGES
from train_ledger.chaos.preflight.wanted import MEASURED, OWN_ONLY, STAGES_OF, Wanted
from train_ledger.config import Config
from train_ledger.ops import preflight as room
from train_ledger.render import moment
from train_ledger.run_dir import RunDir

__all__ = ["Tries"]

_CPU_RANKS = 4
_HUNG_CPU_RANKS = 2


class Tries:
    """The job and the drills, and what each of them found; what was not done is empty or None."""

    def __init__(
        self, run_dir: RunDir | None, config: Config, wanted: Wanted, folder: Path, say: Callable[[str], None]
    ) -> None:
        self.run_dir, self.config, self.wanted, self.folder, self.say = (
            run_dir,
            config,
            wanted,
            folder,
            say,
        )
        self.own = room.read_own_run(run_dir) if run_dir else None
        self.has_torch = importlib.util.find_spec("torch") is not None
        self.ranks = wanted.ranks or gpus_here() or _CPU_RANKS
        self.job = folder / "job"
        self.cluster = run_dir.path / MEASURED if run_dir else folder / "none"
        self.launched: room.Launched | None = None
        self.local: Mapping[int, room.RankFigures] = {}
        self.far = room.read_figures(self.cluster)
        self.hang: room.HangDrilled | None = None
        self.pages: tuple[room.PageDrilled, ...] = ()
        self.no_page = ""
        self.trace = ""

    @property
    def where(self) -> str:
        """On how many ranks, over what, on which hosts, in words."""
        figures = self.far or self.local
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
        if not self.far or self.wanted.cluster_only:
            return ""
        newest_t = max(path.stat().st_mtime for path in self.cluster.glob("rank_*.json"))
        return f"; measured together at {moment(newest_t)}"

    def run(self) -> None:
        """The job and the drills, the page drill beside them."""
        with contextlib.ExitStack() as stack:
            page = None
            if "page" in self.wanted.items and not self.wanted.cluster_only:
                self.say("page drill: a small run of its own stops its steps")
                run = self.run_dir.path if self.run_dir else None
                by_prometheus = bool(self.config.prometheus.url) and not servers.missing_servers()
                page = stack.enter_context(
                    drills.page_drill(self.folder, run, prometheus=by_prometheus, ring=self.wanted.ring)
                )
            if self.has_torch and not self.wanted.cluster_only:
                self._run_job_and_hang()
            if page is not None:
                self.say("page drill: waiting for its end")
                self.pages, self.no_page = page.result()
        self._keep_trace()

    def _run_job(self) -> None:
        items = [key for key in self.wanted.items if key in OWN_ONLY or (key in STAGES_OF and not self.far)]
        wanted = {stage for key in items for stage in STAGES_OF[key]}
        if "recorder" in self.wanted.items and not self.far and not wanted:
            wanted = {"bandwidth"}  # some job has to tell of its ranks' environment
        if not wanted:
            return
        if "kill" in wanted:
            wanted.add("steps")
        stages = [stage for stage in STAGES if stage in wanted]
        self.say(f"job of {self.ranks} ranks: {', '.join(stages)}")
        self.launched = run_job(self.job, self.ranks, stages, self.wanted.load_s)
        self.local = room.read_figures(self.job)
        if not self.launched.came_back and self.run_dir is not None:
            kept = self.run_dir.path / "preflight" / "job_logs"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(self.job / "logs", kept, dirs_exist_ok=True)

    def _run_job_and_hang(self) -> None:
        """One after the other on GPUs; on processors at once: the one mostly waits while the other works."""
        if "recorder" not in self.wanted.items:
            self._run_job()
            return
        on_gpu = gpus_here() >= self.ranks
        if on_gpu:
            self._run_job()
        self.say("hang drill: one rank does not come to a collective")
        ranks = max(self.ranks, 2) if on_gpu else _HUNG_CPU_RANKS
        with drills.hang_drill(self.folder / "hang", ranks) as drill:
            if not on_gpu:
                self._run_job()
            self.hang = drill.result()

    def _keep_trace(self) -> None:
        """Out of the work folder, which goes."""
        trace = next((it.trace for it in {**self.local, **self.far}.values() if it.trace), None)
        if trace is None or self.run_dir is None or not Path(trace).exists():
            return
        kept = self.run_dir.path / "preflight" / "trace_rank_0.json"
        if Path(trace) != kept:
            shutil.copyfile(trace, kept)
        self.trace = str(kept)
