import os

import pytest

from train_ledger.config import Config, ConfigError, load
from train_ledger.run_dir import RunDir


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    (tmp_path / "run").mkdir()
    return RunDir(tmp_path / "run")


def test_without_a_file_the_defaults_of_the_design_hold(run):
    config = load(run)
    assert config == Config()
    assert (config.alerts.stall_floor_s, config.alerts.process_gone_s) == (90, 120)


def test_the_run_s_own_file_goes_before_the_user_s(run, tmp_path):
    user = tmp_path / "home" / "train-ledger" / "train-ledger.toml"
    user.parent.mkdir(parents=True)
    user.write_text("[alerts]\nstall_floor_s = 60\n")
    assert load(run).alerts.stall_floor_s == 60
    run.config_file.write_text("[alerts]\nstall_floor_s = 5\n")
    assert load(run).alerts.stall_floor_s == 5
    assert load(run).file == run.config_file


def test_lists_become_tuples_and_whole_numbers_do_for_seconds(run):
    run.config_file.write_text('[notify]\nurls = ["json://127.0.0.1:1/"]\n[cost]\ngpu_price_per_hour = 2\n')
    config = load(run)
    assert config.notify.urls == ("json://127.0.0.1:1/",)
    assert config.cost.gpu_price_per_hour == 2.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[alert]\n", r"unknown table \[alert\]; known are alerts, "),
        ("[alerts]\nstall_flor_s = 5\n", "unknown key stall_flor_s .* stall_floor_s"),
        ('[alerts]\nstall_floor_s = "5"\n', "alerts.stall_floor_s must be like 90.0, is '5'"),
        ("[alerts]\nstall_floor_s = -1\n", "stall_floor_s must be"),
        ("[alerts]\nrestart_loop_count = true\n", "restart_loop_count must be"),
        ('[notify]\nurls = "slack://x"\n', "notify.urls must be"),
        ("alerts = 3\n", r"\[alerts\] must be a table"),
        ("[alerts\n", "train-ledger.toml: "),
        (f"[alerts]\nstall_floor_s = {'9' * 400}\n", r"stall_floor_s must be from 0 to 1e\+09, is 9+…"),
        ("[alerts]\nstall_floor_s = 0x" + "f" * 9000, "must be from 0 to .*, is too large int"),
        ("[alerts]\nstall_floor_s = inf\n", r"stall_floor_s must be from 0 to 1e\+09, is inf"),
        ("[alerts]\nevaluation_interval_s = 0\n", r"evaluation_interval_s must be from 0\.1 to"),
        ("[alerts]\nrepeat_interval_s = 0.0\n", "repeat_interval_s must be from 1 to"),
        ("[notify]\ndigest_s = 0\n", "digest_s must be from 1 to"),
        ("[alerts]\nstall_floor_s = nan\n", "stall_floor_s must be from 0"),
        ("[limits]\ndump_bytes = 9999999999999999\n", "dump_bytes must be from 0 to"),
        ("[alerts]\n__doc__ = 1\n", "unknown key __doc__ "),
        ("x = " + "[" * 100_000, "is nested too deeply"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_what_would_do(run, text, said):
    run.config_file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        load(run)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: path.mkdir(), "is a folder, but a file is wanted"),
        (os.mkfifo, "is a FIFO, but a file is wanted"),
        (lambda path: path.symlink_to("nowhere"), "is a link to a file that is not there"),
        (lambda path: path.write_bytes(b"\xff"), "can't decode"),
    ],
)
def test_a_configuration_that_is_there_and_no_file_is_not_taken_for_none(run, make, why):
    make(run.config_file)
    with pytest.raises(ConfigError, match=rf"train-ledger\.toml: .*{why}"):
        load(run)


def test_a_home_that_may_not_be_looked_into_has_no_configuration(monkeypatch):
    """As after `sudo -u`, which keeps HOME. Root may look everywhere, so that the system is stood in for."""

    def refused(path, **_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("os.lstat", refused)
    monkeypatch.setattr("train_ledger.config.reading.read_small", refused)
    assert load() == Config()
