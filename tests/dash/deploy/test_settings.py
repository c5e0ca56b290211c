"""What is deployed is said by hosts, addresses and a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from train_ledger.dash.deploy import DeployError, Settings, Target, hosts_of, targets_of, web_address
from train_ledger.run_dir import RunDir


def test_a_target_without_a_port_is_a_sidecar_s_own() -> None:
    assert targets_of("node001, node002:9500,[fd00::1]:9466,[fd00::2]") == (
        Target("node001", 9466),
        Target("node002", 9500),
        Target("[fd00::1]", 9466),
        Target("[fd00::2]", 9466),
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "node001:",
        "node001:0",
        "node001:70000",
        "http://node001:9466",
        "a b",
        "-x:1",
        "n:9²",
        "[::::]:1",
    ],
)
def test_what_is_no_target_is_told_in_one_line(text: str) -> None:
    with pytest.raises(DeployError, match="wanted is HOST:PORT") as told:
        targets_of(text)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "text",
    [
        "hooks.example.org",
        "ftp://a/b",
        "https://",
        "https://a/\nb",
        "http://a b/",
        "http://[::1/",
        "http://a:port/",
        "http://a/100%",
        'http://a/"{{.}}',
    ],
)
def test_what_is_no_address_of_the_web_is_refused(text: str) -> None:
    with pytest.raises(DeployError, match="no address of the web"):
        web_address(text)


@pytest.mark.parametrize("path", ["runs/r42", "/runs/r\n42", "/"])
def test_a_run_that_no_unit_could_name_is_refused(path: str) -> None:
    with pytest.raises(DeployError, match="absolute"):
        Settings(run=Path(path))


def test_a_namespace_is_one_of_kubernetes() -> None:
    with pytest.raises(DeployError, match="namespace"):
        Settings(namespace="Mine; rm")


def test_hosts_are_those_of_the_ranks_in_their_order(tmp_path: Path) -> None:
    lines = [{"rank": rank, "host": f"node00{rank // 2}"} for rank in range(4)]
    (tmp_path / "ranks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert hosts_of(RunDir(tmp_path)) == ("node000", "node001")


def test_a_run_without_ranks_has_no_hosts_yet(tmp_path: Path) -> None:
    assert hosts_of(RunDir(tmp_path)) == ()


@pytest.mark.parametrize("line", ["{", "[1]", '{"rank": 0}', '{"host": "a\\u001b[31m"}', '{"host": 7}'])
def test_a_line_without_a_host_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "ranks.jsonl").write_text(f'{{"rank": 0, "host": "node000"}}\n{line}\n')
    with pytest.raises(DeployError, match=r"ranks\.jsonl:2: .*--targets"):
        hosts_of(RunDir(tmp_path))
