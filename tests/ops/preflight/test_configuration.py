"""What the run starts with is kept, and nothing that is secret with it."""

import json
import stat
import subprocess

import pytest

from ops.preflight.made import told
from train_ledger.ops.preflight.configuration import configuration_checks, masked
from train_ledger.run_dir import RunDir

SECRETS = {
    "WANDB_API_KEY": "s3cr3t",
    "HF_TOKEN": "s3cr3t",
    "DB_PASSWORD": "s3cr3t",
    "AWS_SECRET_ACCESS_KEY": "s3cr3t",
    "HTTPS_PROXY": "http://me:s3cr3t@proxy:3128",
    "GIT_ASKPASS_AUTH": "s3cr3t",
    "SENTRY_DSN": "https://s3cr3t@host/1",
}


@pytest.fixture
def code(tmp_path):
    """A repository with one committed script."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text("print(1)\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def git(folder, *words):
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


@pytest.fixture
def run_dir(tmp_path):
    (tmp_path / "run").mkdir()
    return RunDir(tmp_path / "run")


RUN = {"restart_command": "sbatch train.sh"}
ENVIRONMENT = {"OMP_NUM_THREADS": "8", "CONTAINER_IMAGE": "registry/train:26.10", **SECRETS}


def test_everything_is_kept_and_no_secret(run_dir, code):
    found = told(configuration_checks(run_dir, RUN, ENVIRONMENT, code))
    assert {found[it] for it in ("kept", "arguments", "commit", "image")} == {"pass"}
    path = run_dir.path / "preflight" / "configuration.json"
    text = path.read_text()
    assert "s3cr3t" not in text
    kept = json.loads(text)
    assert kept["environment"]["OMP_NUM_THREADS"] == "8"
    assert kept["environment"]["HTTPS_PROXY"] == "http://(masked)@proxy:3128"
    assert kept["packages"]["msgspec"]
    assert len(kept["git"]["commit"]) == 40
    assert kept["image"] == "registry/train:26.10"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_change_that_is_not_committed_is_kept_as_a_diff(run_dir, code):
    (code / "train.py").write_text("print(2)\n")
    assert told(configuration_checks(run_dir, RUN, ENVIRONMENT, code))["commit"] == "pass"
    assert "+print(2)" in (run_dir.path / "preflight" / "uncommitted.diff").read_text()


def test_a_file_that_git_does_not_know_fails(run_dir, code):
    (code / "new.py").write_text("print(3)\n")
    found = told(configuration_checks(run_dir, RUN, ENVIRONMENT, code))
    assert found["commit"] == "fail"
    assert "new.py" in found.said("commit")


def test_what_is_not_known_is_said(run_dir, tmp_path):
    found = told(configuration_checks(run_dir, {}, {}, tmp_path))
    assert (found["arguments"], found["commit"], found["image"]) == ("fail", "not_possible", "not_possible")


def test_without_a_run_there_is_no_place(code):
    (check,) = configuration_checks(None, {}, {}, code)
    assert check.verdict == "not_possible"


def test_names_that_merely_look_alike_keep_their_values():
    harmless = {"KEYBOARD": "us", "NCCL_DEBUG": "INFO", "TOKENIZERS_PARALLELISM": "false", "MONKEY": "1"}
    kept = masked(harmless)
    assert (kept["KEYBOARD"], kept["NCCL_DEBUG"], kept["MONKEY"]) == ("us", "INFO", "1")
