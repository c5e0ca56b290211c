"""What does Prometheus read of a run on this node?

`train-ledger export RUN` follows the signal files of this host's ranks, or the run's logs where there are
none, folds them and serves the state as metrics. A look makes the whole text once; a scrape hands it out.
Two figures alone are made at the scrape: the clock of this node, by which Prometheus corrects every other
time, and the age of the last look – so a look that hangs on a dead file system shows, and does not stop the
clock.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from train_ledger.config import Config
from train_ledger.dash.conditions import exported_due_t, lost_ranks, silent_ranks
from train_ledger.dash.exposition import Exposition
from train_ledger.dash.metric_text import family, labels
from train_ledger.dash.scrapes import serving
from train_ledger.dash.speed_conditions import speed_figures
from train_ledger.ledger import Fold, Memory, MemoryUnusableError, RunState
from train_ledger.run_dir import RunDir, RunDirError
from train_ledger.sources import Liveness, RunFacts

__all__ = ["DEFAULT_PORT", "Exporter"]

DEFAULT_PORT = 9466
"""9400 is dcgm-exporter's own, on the same node."""

_WHOLE_BYTES = 16 << 20
"""So much is read in a fraction of a second: half a day of eight ranks that take a step every ten seconds."""

_LOGS_WHOLE_BYTES = 1 << 20
"""The same of logs in which every line tells a step: thousands of them."""

_QUIET_LOOK_S = 5.0
"""While nothing is written only time can change the state, and nobody scrapes more often."""


@dataclass(frozen=True, slots=True)
class _Snapshot:
    text: bytes
    monotonic_s: float


class Exporter:
    """Follows one run for as long as it is polled; `hosts` limits it to the ranks of these hosts.

    `memory` is the file in which what is known is kept for the exporter that comes after this one (None: it
    is not kept). Where there is none yet, large files are read at their ends only: what was counted before
    is not known, and `remarks` says so. Raises RunDirError where run.json cannot be read.
    """

    def __init__(
        self,
        run_dir: RunDir,
        config: Config,
        hosts: Collection[str] | None = None,
        clock: Callable[[], float] = time.time,
        memory: Path | None = None,
    ) -> None:
        run = run_dir.read_run()
        self._run_dir = run_dir
        self._run_name = run_dir.name_in(run)
        self._is_named = bool(run)
        self._config = config
        self._clock = clock
        self._files = RunFacts(run_dir, hosts)
        self._liveness = Liveness()
        self._fold = Fold(self._run_name, config, run, is_part=hosts is not None)
        self._exposition = Exposition(config)
        self._snapshot: _Snapshot | None = None
        self._remarks: list[str] = []
        self._shown_bytes = -1
        self._shown_s = 0.0
        self._text, self._series = "", 0
        self._memory = Memory(memory, run, hosts)
        _, trouble = self._memory.begin(
            self._fold, self._files, whole_bytes=_WHOLE_BYTES, logs_whole_bytes=_LOGS_WHOLE_BYTES
        )
        if trouble:
            self._remarks.append(trouble)
        self.state: RunState = self._fold.state(clock())

    def _meet_run(self) -> None:
        """Rank 0 writes run.json, and may come up after the exporters of all nodes."""
        try:
            run = self._run_dir.read_run()
        except RunDirError as error:
            self._is_named = True
            self._remarks.append(str(error))
            return
        if run:
            self._is_named = True
            self._run_name = self._run_dir.name_in(run)
            self._fold.meet(self._run_name, run)
            self._memory.meet(run)
            self._shown_bytes = -1

    def poll(self) -> bool:
        """One look; whether the files have been read up to their ends, so that there is something to serve.

        Until then nothing is served: half a history has old times and healed faults in it.
        """
        if not self._is_named:
            self._meet_run()
        self._files.fold_into(self._fold)
        if not self._files.caught_up:
            return False
        now = self._fold.carried(self._clock())
        dead = self._liveness.poll(self.state.ranks.values(), now)
        self._fold.add_all(dead)
        if dead or self._is_look_due():
            self._show(now)
        self._snapshot = _Snapshot(self._snapshot.text if self._snapshot else b"", time.monotonic())
        return True

    def _is_look_due(self) -> bool:
        written = self._files.read_bytes != self._shown_bytes
        return written or time.monotonic() - self._shown_s >= _QUIET_LOOK_S

    def _show(self, now: float) -> None:
        first, written = self._snapshot is None, self._files.read_bytes != self._shown_bytes
        if first and self._files.left_out_bytes:
            self._remarks.append(self._left_out())
        self._shown_bytes, self._shown_s = self._files.read_bytes, time.monotonic()
        before, self.state = self.state, self._fold.state(now)
        if first and (dead := self._liveness.poll(self.state.ranks.values(), now)):
            self._fold.add_all(dead)
            self.state = self._fold.state(now)
        if first or written or not self._reads_as(before):
            self._text = self._exposition.text(self.state)
            self._series = self._text.count("\n") - self._text.count("\n#")
        text = self._text + self._about_itself(self._series)
        self._snapshot = _Snapshot(text.encode(), time.monotonic())

    def _reads_as(self, before: RunState) -> bool:
        """Whether nothing but the time has changed, and that changes nothing that is shown."""
        alerts, after = self._config.alerts, self.state
        return (
            replace(before, t=after.t) == after
            and lost_ranks(before, alerts).keys() == lost_ranks(after, alerts).keys()
            and silent_ranks(before) == silent_ranks(after)
            and speed_figures(before, alerts) == speed_figures(after, alerts)
            and exported_due_t(before, alerts) == exported_due_t(after, alerts)
        )

    def _left_out(self) -> str:
        left_out_mb = self._files.left_out_bytes / 1e6
        return (
            f"{left_out_mb:,.1f} MB of earlier lines were never read: counters count from behind them, and "
            "windows begin with the last lines of each rank"
        )

    def keep_if_due(self) -> None:
        """Write down what is known for the exporter that comes after this one, where that was long ago."""
        self._keep(self._memory.keep_if_due)

    def keep(self) -> None:
        """The same at once: nobody will poll any more."""
        self._keep(self._memory.keep)

    def _keep(self, keep: Callable[[Fold, RunFacts], bool]) -> None:
        if self._snapshot is None or not self._files.caught_up:
            return
        try:
            keep(self._fold, self._files)
        except MemoryUnusableError as error:
            self._remarks.append(str(error))

    def remarks(self) -> list[str]:
        """What a person should know of this exporter and was not told yet."""
        remarks, self._remarks = self._remarks, []
        return remarks

    def metrics(self) -> str | None:
        """What a scrape is answered with now; None until the files have been read up to their ends."""
        body = self._body()
        return None if body is None else body.decode()

    def _body(self) -> bytes | None:
        snapshot = self._snapshot
        if snapshot is None:
            return None
        run, age_s = labels(run=self._run_name), time.monotonic() - snapshot.monotonic_s
        clock = family(
            "train_exporter_clock_seconds",
            "gauge",
            "This node's clock at the scrape, carried over its jumps as the times of its ranks are.",
            [(run, self._fold.carried(self._clock()))],
        )
        age = family(
            "train_exporter_poll_age_seconds",
            "gauge",
            "How long ago the files were last read.",
            [(run, age_s)],
        )
        return snapshot.text + clock.encode() + age.encode()

    def _about_itself(self, series: int) -> str:
        run = labels(run=self._run_name)
        bad = [
            (labels(run=self._run_name, reason=reason), float(count))
            for reason, count in sorted(self._files.bad_lines.items())
        ]
        left_out = self._exposition.fields_left_out
        skipped = self._files.left_out_bytes
        rows = (
            ("ready", "gauge", "1 once the files were read up to their ends.", [(run, 1.0)]),
            (
                "files",
                "gauge",
                "Signal files, or logs where there are none, that are followed.",
                [(run, float(self._files.files))],
            ),
            ("lag_bytes", "gauge", "Bytes seen and not read yet.", [(run, float(self._files.lag_bytes))]),
            ("bad_lines_total", "counter", "Lines and files that could not be read.", bad or [(run, 0.0)]),
            ("series", "gauge", "Series of the run in this answer.", [(run, float(series))]),
            ("fields_left_out", "gauge", "Unknown fields beyond the limit.", [(run, float(left_out))]),
            (
                "history_skipped_bytes",
                "gauge",
                "Bytes of earlier lines that were never read; where not 0, counters count from behind them.",
                [(run, float(skipped))],
            ),
        )
        return "".join(
            family(f"train_exporter_{name}", kind, help, samples) for name, kind, help, samples in rows
        )

    @contextlib.contextmanager
    def serve(self, host: str = "127.0.0.1", port: int = DEFAULT_PORT) -> Iterator[str]:
        """Serve /metrics and /healthz from a thread while the context lasts; yields the URL.

        Raises AddressUnusableError where the address is taken or cannot be used.
        """
        with serving(self._body, host, port) as url:
            yield url

    def close(self) -> None:
        """Let go of the files."""
        self._files.close()
