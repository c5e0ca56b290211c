"""Every command of the runbook is executed against a run in which its alert fires, so that none can rot."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops.runbook.made import run_in_which, stand_ins
from train_ledger.dash import RULES
from train_ledger.ops.runbook import Places, filled, runbook
from train_ledger.run_dir import RunDir

pytestmark = pytest.mark.slow

PAGES = [rule.name for rule in RULES if rule.level == "page"]
CAUSES = {
    "TrainingStepStalled": "hang.",
    "TrainingStepTimeRegressed": "slow.",
    "TrainingLossNotFinite": "numeric.nan",
    "TrainingRestartLoop": "restart_loop",
    "CheckpointSaveFailed": "checkpoint_failing",
    "GpuXidError": "hardware.xid",
    "GpuEccDbe": "hardware.ecc",
    "GpuLost": "hardware.gpu_lost",
}
"""What `diagnose` has to find in the run, where the alert is of one cause."""

ANSWERS = {0, 1, 3}
"""Exit statuses that are an answer: nothing wrong, trouble found, cannot tell."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return stand_ins(tmp_path_factory.mktemp("node") / "bin")


def commands_of(alert: str, run_dir: RunDir) -> Iterator[str]:
    text = filled(runbook().sections[alert].text, Places(str(run_dir.path), ("node001",), (5,)))
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        yield from (line.strip() for line in block.splitlines() if line.strip())
    yield from re.findall(r"`((?:train-ledger|ssh) [^`\n]+)`", text)


@pytest.mark.parametrize("alert", PAGES)
def test_every_command_answers(alert: str, tmp_path: Path, node: dict[str, str]) -> None:
    run_dir = run_in_which(alert, tmp_path / "run")
    commands = [*commands_of(alert, run_dir)]
    assert commands
    for command in commands:
        assert not re.search(r"\b(RUN|HOST|RANK)\b", command)
        done = subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, timeout=120, env=node, cwd=tmp_path
        )
        said = f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert done.returncode in ANSWERS, said
        assert "Traceback" not in done.stderr, said
        assert done.stdout.strip(), said
    if alert in CAUSES:
        found = subprocess.run(
            ["train-ledger", "diagnose", str(run_dir.path), "--json"],
            capture_output=True,
            text=True,
            timeout=120,
            env=node,
            check=False,
        )
        assert json.loads(found.stdout)["cause"].startswith(CAUSES[alert]), found.stdout
