"""Is a hang that we plant found, paged and rightly named, end to end, without anyone touching it?

Starts a webhook receiver, `train-ledger watch` and a real torchrun job on this machine, lets one rank leave
the common path, and compares the verdict with what was planted. Everything runs on loopback.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train_ledger.answer import ExitCode
from train_ledger.chaos.faults import MODES
from train_ledger.chaos.webhook import Webhook
from train_ledger.ledger import journal
from train_ledger.run_dir import RunDir, RunDirError

__all__ = ["DemoOutcome", "demo"]

_VERDICT_WITHIN_S = 120.0
_KILL_GRACE_S = 5.0
_AFTER_THE_JOB_S = 25.0

_CONFIGURATION = """\
# Written by the demo: limits low enough that a minute is time for a whole incident.
[alerts]
stall_floor_s = {stall_floor_s}
process_gone_s = {stall_floor_s}
evaluation_interval_s = 1

[notify]
urls = ["{webhook}"]

[cost]
gpu_price_per_hour = 2.5
"""


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """What was planted, what was named, and how long it took (seconds from the start of the job)."""

    run: str
    mode: str
    culprit: int
    cause: str | None
    named: tuple[int, ...]
    right: bool
    job_start_to_verdict_s: float | None
    pages_received: int
    postmortem: str | None


def demo(
    folder: Path | None,
    *,
    culprit: int = 3,
    mode: str = "skip",
    hang_at: int = 20,
    ranks: int = 4,
    stall_floor_s: float = 5.0,
    port: int = 0,
    as_json: bool = False,
    out: Callable[[str], None] = print,
) -> ExitCode:
    """Plant a hang and see it named; NOTHING_WRONG only where the named rank is the planted one.

    `folder` is the run directory to make (None: under ./runs). Raises RunDirError where it cannot be made or
    holds a run already, and where torch is not installed.
    """
    run_dir = _fresh(folder, mode, culprit)
    if importlib.util.find_spec("torch") is None:
        raise RunDirError(
            "the demo trains with torch, which is not installed: pip install 'train-ledger[demo]'"
        )
    if not 0 <= culprit < ranks:
        raise RunDirError(f"--culprit {culprit} is not one of the {ranks} ranks (0 to {ranks - 1})")
    if ranks < MODES[mode].fewest_ranks:
        fewest = MODES[mode].fewest_ranks
        raise RunDirError(f"--mode {mode} needs {fewest} ranks or more: fewer are no majority against one")
    with Webhook() as webhook:
        settings = _CONFIGURATION.format(stall_floor_s=stall_floor_s, webhook=webhook.apprise_url)
        run_dir.config_file.write_text(settings, encoding="utf-8")
        if not as_json:
            out(f"run {run_dir.path}: at step {hang_at} rank {culprit} of {ranks} {MODES[mode].what}")
        started_t = time.time()
        with (
            _watch(run_dir, port, as_json) as watch,
            _job(run_dir, mode, culprit, hang_at, ranks) as job,
        ):
            _wait(watch, job, stall_floor_s)
        outcome = _judge(run_dir, mode, culprit, started_t, len(webhook.received))
    out(_as_json(outcome) if as_json else _as_text(outcome))
    return ExitCode.NOTHING_WRONG if outcome.right else ExitCode.TROUBLE


def _fresh(folder: Path | None, mode: str, culprit: int) -> RunDir:
    path = folder or Path("runs") / f"demo-{mode}-rank{culprit}-{time.strftime('%Y%m%d-%H%M%S')}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise RunDirError(f"{path}: is not empty; the demo wants a folder of its own")
    except OSError as error:
        raise RunDirError(f"{path}: {error.strerror}; name another folder with --run") from error
    return RunDir(path.resolve())


@contextlib.contextmanager
def _watch(run_dir: RunDir, port: int, quiet: bool) -> Iterator[subprocess.Popen[bytes]]:
    command = [
        sys.executable,
        "-m",
        "train_ledger",
        "watch",
        str(run_dir.path),
        "--until-verdict",
        "--port",
        str(port),
    ]
    with open(run_dir.path / "watch.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log if quiet else None, stderr=log if quiet else None)
        try:
            yield process
        finally:
            _stop(process, process.pid)


@contextlib.contextmanager
def _job(
    run_dir: RunDir, mode: str, culprit: int, hang_at: int, ranks: int
) -> Iterator[subprocess.Popen[bytes]]:
    drill = {"run-dir": run_dir.path, "mode": mode, "culprit": culprit, "hang-at": hang_at}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    command += ["--log-dir", str(run_dir.logs), "--redirects", "3", "-m", "train_ledger.chaos.hang_drill"]
    command += [word for name, value in drill.items() for word in (f"--{name}", str(value))]
    command += ["--worker-server"] if MODES[mode].worker_server else []
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with open(run_dir.path / "torchrun.log", "wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
        try:
            yield process
        finally:
            _stop(process, -process.pid)


def _stop(process: subprocess.Popen[bytes], target: int) -> None:
    """SIGTERM, then SIGKILL to the same process or (negative) process group, as a launcher would."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(target, number) if target > 0 else os.killpg(-target, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_KILL_GRACE_S)


def _wait(watch: subprocess.Popen[bytes], job: subprocess.Popen[bytes], stall_floor_s: float) -> None:
    """Until the keeper has its verdict; a job that is over leaves it the time to find one, not more."""
    deadline = time.monotonic() + _VERDICT_WITHIN_S
    while watch.poll() is None and time.monotonic() < deadline:
        if job.poll() is not None:
            deadline = min(deadline, time.monotonic() + stall_floor_s + _AFTER_THE_JOB_S)
            with contextlib.suppress(subprocess.TimeoutExpired):
                watch.wait(deadline - time.monotonic())
        time.sleep(0.1)


def _judge(run_dir: RunDir, mode: str, culprit: int, started_t: float, pages: int) -> DemoOutcome:
    entries, _ = journal.read(run_dir.journal) if run_dir.journal.exists() else ((), ())
    verdict: dict[str, Any] = next((dict(e) for e in entries if e.get("kind") == "verdict"), {})
    diagnosis = verdict.get("diagnosis", {})
    named, cause = tuple(diagnosis.get("ranks", ())), diagnosis.get("cause")
    drafts = sorted(run_dir.reports.glob("*.md")) if run_dir.reports.is_dir() else []
    return DemoOutcome(
        run=str(run_dir.path),
        mode=mode,
        culprit=culprit,
        cause=cause,
        named=named,
        right=named == (culprit,) and cause in MODES[mode].causes,
        job_start_to_verdict_s=round(verdict["t"] - started_t, 1) if verdict else None,
        pages_received=pages,
        postmortem=str(drafts[0]) if drafts else None,
    )


def _as_json(outcome: DemoOutcome) -> str:
    from train_ledger.answer import to_json

    return json.dumps(to_json(outcome))


def _as_text(outcome: DemoOutcome) -> str:
    named = ", ".join(f"rank {rank}" for rank in outcome.named) or "nobody"
    took = "never" if outcome.job_start_to_verdict_s is None else f"{outcome.job_start_to_verdict_s} s"
    return "\n".join(
        (
            "",
            f"planted  rank {outcome.culprit}, mode {outcome.mode}",
            f"named    {named}, {outcome.cause or 'no verdict'} – {'right' if outcome.right else 'WRONG'}",
            f"took     {took} from the start of the job to the verdict",
            f"pages    {outcome.pages_received} received by the webhook",
            f"draft    {outcome.postmortem or 'none'}",
            f"run      {outcome.run}",
            *(
                []
                if outcome.cause
                else [f"why      see {outcome.run}/torchrun.log: {_last_line(outcome.run)}"]
            ),
        )
    )


def _last_line(run: str) -> str:
    """What the launcher said last; a job that did not train says there why."""
    try:
        lines = (Path(run) / "torchrun.log").read_text(errors="replace").split("\n")
    except OSError:
        return "it was not written"
    return next((line.strip() for line in reversed(lines) if line.strip()), "it is empty")
