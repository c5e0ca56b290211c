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
    ],
)
def test_a_mistake_is_named_with_its_file_and_what_would_do(run, text, said):
    run.config_file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        load(run)
