"""Whatever a rank hangs in, the monitor does not keep it from dying."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from train_ledger.run_dir import RunDir

pytest.importorskip("torch", reason="the drill trains with torch: pip install 'train-ledger[demo]'")

HUNG_AND_ALIVE = ["sleep", "loader", "exhausted", "skip", "type", "size", "exception"]


@pytest.fixture
def job(tmp_path, request):
    """A two-rank job that hangs in the mode of the test; (run directory, its ranks' processes)."""
    run_dir = RunDir(tmp_path / "run")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["--log-dir", str(tmp_path / "logs"), "--redirects", "3"]
    command += ["-m", "train_ledger.chaos.hang_drill", "--run-dir", str(run_dir.path)]
    command += ["--mode", request.param, "--culprit", "1", "--hang-at", "5"]
    launcher = subprocess.Popen(command, start_new_session=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        wait_until_hung(run_dir)
        yield run_dir, psutil.Process(launcher.pid).children()
    finally:
        os.killpg(launcher.pid, signal.SIGKILL)
        launcher.wait()


def wait_until_hung(run_dir):
    deadline = time.monotonic() + 300
    size = None
    while time.monotonic() < deadline:
        time.sleep(1.5)
        now = [path.stat().st_size for _, path in run_dir.signal_files()]
        text = run_dir.signals_of(1).read_text() if len(now) == 2 else ""
        if now == size and '"step":4' in text:
            return
        size = now
    raise AssertionError("the job did not come to its hang")


@pytest.mark.slow
@pytest.mark.parametrize("job", HUNG_AND_ALIVE, indirect=True)
def test_a_hung_rank_dies_of_sigterm_at_once_and_says_so(job):
    run_dir, ranks = job
    assert len(ranks) == 2
    for rank in ranks:
        rank.send_signal(signal.SIGTERM)
    started = time.monotonic()
    gone, alive = psutil.wait_procs(ranks, timeout=60)
    took_s = time.monotonic() - started
    dead = [*gone, *(rank for rank in alive if rank.status() == psutil.STATUS_ZOMBIE)]
    assert len(dead) == 2
    assert took_s < 20.0
    for rank in range(2):
        assert '"event":"signal"' in run_dir.signals_of(rank).read_text()
