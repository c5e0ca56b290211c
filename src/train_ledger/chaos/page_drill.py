"""Does the page come, and in time, when the steps of a run stop?

Starts a small job of its own in a throw-away run directory, stops its steps on purpose, and measures the
seconds until the message is at a receiver – sent by `train-ledger watch`, and by Prometheus and Alertmanager
with what is generated for them. All of it real processes on loopback, ended when the drill ends.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

from train_ledger.answer import ExitCode
from train_ledger.chaos import servers
from train_ledger.chaos.page_outcome import WITHIN_S, DrilledPath, as_object, as_text, judge
from train_ledger.chaos.standing_job import STEP_S
from train_ledger.chaos.webhook import Webhook
from train_ledger.config import Config, Notify
from train_ledger.ledger import journal
from train_ledger.run_dir import RunDir

__all__ = ["page_drill"]

_RUN = "drill-nothing-is-wrong"
"""What whoever is called reads first."""

_RANKS = 2
_STEPS_FOR_S = 10.0
"""Forty steps: twenty make a step time that is usual."""

_WATCHED_AFTER_S = 10.0
"""For so long after the page a second one is waited for."""

_OTHERS_TAKE_IT_WITHIN_S = 30.0
_COMES_UP_WITHIN_S = 60.0


def page_drill(
    config: Config,
    *,
    prometheus: bool | None = None,
    notify: Notify | None = None,
    threshold_s: float = 10.0,
    within_s: float = WITHIN_S,
    as_json: bool = False,
    out: Callable[[str], None] = print,
) -> ExitCode:
    """Stop a run's steps and see the page come; NOTHING_WRONG only where every way told it once and in time.

    Thresholds and intervals are those of `config`, but for the floor of a stall, which is `threshold_s`.
    `prometheus` says whether the page is to go through Prometheus and Alertmanager, too (None: if both are
    installed); `notify` who is to be told besides the drill's own receiver. Raises ServerError where a server
    is missing or does not come up, or where the drill's own parts do not.
    """
    missing = servers.missing_servers()
    if prometheus and missing:
        raise servers.ServerError(f"{' and '.join(missing)}: not installed; --no-prometheus drills without")
    config = replace(config, alerts=replace(config.alerts, stall_floor_s=threshold_s))
    place = tempfile.TemporaryDirectory(prefix="train-ledger-drill-", ignore_cleanup_errors=True)
    with _ended_by_sigterm(), place as folder:
        say = _say_nothing if as_json else out
        drill = _Drill(Path(folder), config, notify or Notify(), within_s, say)
        drilled = drill.run(through_prometheus=not missing if prometheus is None else prometheus)
    if as_json:
        out(json.dumps({"schema": 1, "drills": [as_object(each) for each in drilled]}))
    else:
        out("\n".join(as_text(each) for each in drilled))
        if missing and prometheus is None:
            out(f"not drilled through Prometheus and Alertmanager: {' and '.join(missing)} not installed")
    return ExitCode.NOTHING_WRONG if all(each.ok for each in drilled) else ExitCode.TROUBLE


def _say_nothing(text: str) -> None:
    """Scripts read the answer alone."""


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the drill as Ctrl-C does: with everything that it started."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@dataclass(slots=True)
class _Drill:
    folder: Path
    config: Config
    notify: Notify
    within_s: float
    say: Callable[[str], None]

    @property
    def run_dir(self) -> RunDir:
        return RunDir(self.folder / _RUN)

    @property
    def _stop_file(self) -> Path:
        return self.folder / "stop"

    @property
    def _threshold_s(self) -> float:
        return max(self.config.alerts.stall_floor_s, self.config.alerts.stall_factor * STEP_S)

    def run(self, *, through_prometheus: bool) -> list[DrilledPath]:
        """Everything up, then the job; its steps stop; what came, by each way."""
        self.run_dir.path.mkdir()
        with contextlib.ExitStack() as stack:
            hooks, prometheus = {"embedded": stack.enter_context(Webhook())}, ""
            self._start_keeper(stack, hooks["embedded"])
            if through_prometheus:
                hooks["prometheus"] = stack.enter_context(Webhook())
                prometheus = self._start_servers(stack, hooks["prometheus"])
            self.say(f"a job of {_RANKS} ranks in {self.run_dir.path} steps for {_STEPS_FOR_S:.0f} s")
            self._start_job(stack)
            time.sleep(_STEPS_FOR_S)
            stopped_t = self._stop_steps()
            self.say(
                f"it has stopped; after {self._threshold_s:g} s that is a stall, and the page is awaited"
            )
            self._await(hooks, stopped_t)
            others = {"embedded": self._not_taken()}
            if prometheus and not hooks["prometheus"].arrivals:
                others["prometheus"] = servers.where_it_ended(prometheus, "TrainingStepStalled")
            return [
                judge(
                    path,
                    self._threshold_s,
                    stopped_t,
                    hook.arrivals,
                    others.get(path),
                    within_s=self.within_s,
                )
                for path, hook in hooks.items()
            ]

    def _start_keeper(self, stack: contextlib.ExitStack, hook: Webhook) -> None:
        told = replace(self.notify, urls=(hook.apprise_url, *self.notify.urls), digest_urls=())
        self.run_dir.config_file.touch(mode=0o600)  # addresses hold secrets
        settings = _toml({"alerts": self.config.alerts, "notify": told, "respond": self.config.respond})
        self.run_dir.config_file.write_text(settings, encoding="utf-8")
        keeper = self._start(stack, "watch", str(self.run_dir.path), "--no-web")
        self._want_up("watch", keeper, self.run_dir.journal.exists)

    def _start_servers(self, stack: contextlib.ExitStack, hook: Webhook) -> str:
        """Prometheus' address, once it scrapes our exporter."""
        port = servers.free_port()
        where = ("--port", str(port), "--all-hosts", "--state", "none")
        exporter = self._start(stack, "export", str(self.run_dir.path), *where)
        self._want_up("export", exporter, lambda: self._log("export").stat().st_size > 0)
        target = f"127.0.0.1:{port}"
        return stack.enter_context(servers.paging(self.folder, self.config, [target], hook.url))

    def _start(self, stack: contextlib.ExitStack, verb: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "train_ledger", verb, *arguments]
        return stack.enter_context(servers.child(command, self._log(verb)))

    def _start_job(self, stack: contextlib.ExitStack) -> None:
        command = [sys.executable, "-m", "train_ledger.chaos.standing_job"]
        command += [str(self.run_dir.path), str(self._stop_file)]
        for rank in range(_RANKS):
            named = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(_RANKS)}
            job = stack.enter_context(servers.child(command, self._log(f"job{rank}"), named))
            self._want_up(f"job{rank}", job, self.run_dir.signals_of(rank).exists)

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _want_up(self, name: str, process: subprocess.Popen[bytes], is_up: Callable[[], bool]) -> None:
        """Wait for a part of ours; raises ServerError where it ends instead."""
        servers.until(lambda: process.poll() is not None or is_up(), _COMES_UP_WITHIN_S)
        if process.poll() is not None or not is_up():
            said = self._log(name).read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise servers.ServerError(
                f"{name} of the drill did not come up; it says: {(said or ['nothing'])[-1]}"
            )

    def _stop_steps(self) -> float:
        """When the last step was completed (unix seconds)."""
        self._stop_file.touch()
        time.sleep(4 * STEP_S)  # what a rank has begun it completes
        return min(_last_step_t(self.run_dir.signals_of(rank)) for rank in range(_RANKS))

    def _await(self, hooks: Mapping[str, Webhook], stopped_t: float) -> None:
        """Until every receiver has its page or the time is over, and then a while for pages too many."""
        latest_s = stopped_t + self._threshold_s + WITHIN_S - time.time()
        servers.until(lambda: all(hook.arrivals for hook in hooks.values()), latest_s)
        time.sleep(_WATCHED_AFTER_S)
        if self.notify.urls or self.notify.command:
            servers.until(lambda: bool(self._outcomes()), _OTHERS_TAKE_IT_WITHIN_S)

    def _not_taken(self) -> str | None:
        """What the keeper says where an address beside our own receiver did not take the page."""
        outcome = next(iter(self._outcomes()), "delivered")
        return None if outcome == "delivered" else outcome

    def _outcomes(self) -> list[str]:
        entries = journal.read(self.run_dir.journal).entries
        return [str(each["outcome"]) for each in entries if each["kind"] == "notification_done"]


def _last_step_t(signals: Path) -> float:
    lines = [json.loads(line) for line in signals.read_bytes().splitlines()]
    return max(float(line["t"]) for line in lines if "event" not in line)


def _toml(tables: Mapping[str, Any]) -> str:
    """Tables of the configuration as a file; JSON's strings, numbers and lists are TOML's, too."""
    lines: list[str] = []
    for name, table in tables.items():
        lines.append(f"[{name}]")
        for key, value in asdict(table).items():
            lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f"))
    return "\n".join(lines) + "\n"
