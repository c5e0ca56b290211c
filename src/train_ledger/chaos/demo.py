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
from dataclasses import replace
from pathlib import Path

from train_ledger.answer import ExitCode, to_json
from train_ledger.chaos.dump_place import DUMP_PATH_VARIABLES, look
from train_ledger.chaos.plan import Plan
from train_ledger.chaos.webhook import Webhook
from train_ledger.run_dir import RunDir, RunDirError

__all__ = ["demo"]

_VERDICT_WITHIN_S = 120.0
_KILL_GRACE_S = 5.0
_AFTER_THE_JOB_S = 25.0
_AFTER_THE_TIMEOUT_S = 30.0

_CONFIGURATION = """\
# Written by the demo: limits low enough that a minute is time for a whole incident.
[alerts]
stall_floor_s = {stall_floor_s}
process_gone_s = {stall_floor_s}
evaluation_interval_s = 1

[respond]
on_page = ["dump", "stacks", "diagnose"]

[notify]
urls = ["{webhook}"]

[cost]
gpu_price_per_hour = 2.5
"""


def demo(
    folder: Path | None,
    plan: Plan,
    *,
    stall_floor_s: float = 5.0,
    port: int = 0,
    as_json: bool = False,
    out: Callable[[str], None] = print,
) -> ExitCode:
    """Plant a hang and see it named; NOTHING_WRONG only where the named rank is the planted one.

    `folder` is the run directory to make (None: under ./runs). Raises RunDirError where it cannot be made or
    holds a run already, and where torch is not installed.
    """
    run_dir = _fresh(folder, plan)
    if importlib.util.find_spec("torch") is None:
        raise RunDirError(
            "the demo trains with torch, which is not installed: pip install 'train-ledger[demo]'"
        )
    from train_ledger.chaos import outcome as outcomes  # the job's own ranks load this module, too

    with Webhook() as webhook:
        settings = _CONFIGURATION.format(stall_floor_s=stall_floor_s, webhook=webhook.apprise_url)
        run_dir.config_file.write_text(settings, encoding="utf-8")
        if not as_json:
            out(f"run {run_dir.path}: {plan.in_words()}")
        started_t = time.time()
        with _watch(run_dir, port, as_json) as watch, _job(run_dir, plan) as job:
            _wait(watch, job, stall_floor_s)
            dumps = outcomes.dumps_of(run_dir, plan.ranks)
            timed_out = plan.no_dump_path and _ends_by_itself(job, plan)
        outcome = outcomes.judge(run_dir, plan, started_t, len(webhook.received), dumps)
    if plan.no_dump_path:
        outcome = replace(
            outcome, default_place=look(started_t, plan.backend, timed_out, run_dir.comm_traces())
        )
    out(json.dumps(to_json(outcome)) if as_json else outcomes.as_text(outcome))
    return ExitCode.NOTHING_WRONG if outcome.right else ExitCode.TROUBLE


def _fresh(folder: Path | None, plan: Plan) -> RunDir:
    name = f"demo-{plan.mode}-rank{plan.culprit}-{time.strftime('%Y%m%d-%H%M%S')}"
    path = folder or Path("runs") / name
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
def _job(run_dir: RunDir, plan: Plan) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if plan.no_dump_path:
        environment = {name: it for name, it in environment.items() if name not in DUMP_PATH_VARIABLES}
    with open(run_dir.path / "torchrun.log", "wb") as log:
        process = subprocess.Popen(
            plan.command(run_dir),
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
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


def _ends_by_itself(job: subprocess.Popen[bytes], plan: Plan) -> bool:
    """Wait until the process groups' time-out ends the job; False where it did not."""
    try:
        job.wait((plan.timeout_s or 0.0) + _AFTER_THE_TIMEOUT_S)  # of which a part is over: it hangs already
    except subprocess.TimeoutExpired:
        return False
    return True
