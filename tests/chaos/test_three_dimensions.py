"""Eight ranks in tensor, data and pipeline groups of two: five real hangs, each of its kind, each named."""

import json
import subprocess
import sys

import pytest

from train_ledger.chaos import MODES

pytest.importorskip("torch", reason="the drill trains with torch: pip install 'train-ledger[demo]'")

HANGS = [
    ("sleep", "tp", 5),
    ("size", "dp", 2),
    ("exception", "pp", 0),
    ("exhausted", "world", 7),
    ("order_swap", "world", 3),
]


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "group", "culprit"), HANGS)
def test_the_planted_rank_is_named(tmp_path, mode, group, culprit):
    command = [
        sys.executable,
        "-m",
        "train_ledger",
        "drill",
        "hang",
        "--run",
        str(tmp_path / "run"),
        "--json",
    ]
    command += ["--ranks", "8", "--layout", "dp=2,tp=2,pp=2", "--hang-at", "5"]
    command += ["--mode", mode, "--group", group, "--culprit", str(culprit)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout, done.stderr
    outcome = json.loads(done.stdout)
    log = (tmp_path / "run" / "watch.log").read_text()
    assert outcome["named"] == [culprit], log
    assert outcome["cause"] in MODES[mode].causes, log
    assert done.returncode == 0
    assert outcome["pages_received"] == 1
    dumps = outcome["dumps"]
    assert dumps["there"] == list(range(8)), dumps["missing"]
    assert dumps["culprits"] == [culprit], dumps
    assert dumps["gathered_s"] is not None


@pytest.mark.slow
def test_without_a_dump_path_gloo_leaves_nothing_at_its_time_out(tmp_path):
    command = [
        sys.executable,
        "-m",
        "train_ledger",
        "drill",
        "hang",
        "--run",
        str(tmp_path / "run"),
        "--json",
    ]
    command += ["--ranks", "2", "--culprit", "1", "--mode", "sleep", "--no-dump-path", "--hang-at", "5"]
    command += ["--timeout-s", "20"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    place = json.loads(done.stdout)["default_place"]
    assert place["prefix"].endswith("/torch/comm_lib_trace_rank_")
    assert place["written"] == []
    assert "the job's time-out ended it; torch wrote no dump at all" in place["said"][0]
    assert "2 dumps outlived it" in place["said"][-1]
