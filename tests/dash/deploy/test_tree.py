"""What is written is what Prometheus, Alertmanager, systemd, shells and Kubernetes take."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from train_ledger.cli import app
from train_ledger.config import Alerts, Config
from train_ledger.dash.alertmanager import ALERTMANAGER_ARGUMENTS
from train_ledger.dash.deploy import PARTS, DeployError, Settings, Target, files_of, put
from train_ledger.dash.rules import RULES

yaml = pytest.importorskip("yaml")
pytest.importorskip("grafana_foundation_sdk")

ROOT = Path(__file__).parents[3]
SETTINGS = Settings(
    run=Path("/shared/my runs/r42"),
    targets=(Target("node001"), Target("node002", 9500)),
    webhook="https://pager.example.org/key/'\"#x",
    runbook_url="https://wiki.example.org/runbook",
    namespace="training",
)
FILES = {file.path: file for file in files_of(SETTINGS)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("deployed")
    put(path, tuple(FILES.values()))
    return path


def _needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


def _run(*command: str) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def test_the_committed_deployment_is_current() -> None:
    """Where not: `train-ledger deploy --out deploy`."""
    committed = {
        str(path.relative_to(ROOT / "deploy")): path.read_text()
        for path in sorted((ROOT / "deploy").rglob("*"))
        if path.is_file() and path.name != ".written.json"
    }
    assert committed == {file.path: file.text for file in files_of(Settings())}


def test_nothing_of_this_machine_is_in_it() -> None:
    text = "".join(file.text for file in files_of(Settings()))
    assert str(ROOT) not in text
    assert str(Path.home()) + "/" not in text


def test_a_part_that_there_is_not_is_told() -> None:
    with pytest.raises(DeployError, match="no part nagios; there are prometheus, "):
        files_of(SETTINGS, ["prometheus", "nagios"])


@pytest.mark.parametrize("part", PARTS)
def test_a_part_alone(part: str) -> None:
    assert {file.path.split("/")[0].partition(".")[0] for file in files_of(SETTINGS, [part])} == {part}


def test_the_runbook_that_the_links_lead_to_lies_beside_the_rules() -> None:
    anchors = set(re.findall(r"runbook_url: .*#(\w+)", FILES["prometheus/alerts.yml"].text))
    headings = {it.lower() for it in re.findall(r"^## (\w+)$", FILES["runbook.md"].text, re.MULTILINE)}
    assert anchors
    assert anchors <= headings


@pytest.mark.parametrize("path", [path for path in FILES if path.endswith((".yml", ".yaml"))])
def test_every_yaml_is_one(path: str) -> None:
    assert all(isinstance(document, dict) for document in yaml.safe_load_all(FILES[path].text))


@pytest.mark.parametrize("path", [path for path in FILES if path.endswith(".json")])
def test_every_json_is_one(path: str) -> None:
    assert json.loads(FILES[path].text)


# -- Prometheus and Alertmanager


@_needs("promtool")
def test_promtool_takes_configuration_and_rules(folder: Path) -> None:
    said = _run("promtool", "check", "config", str(folder / "prometheus/prometheus.yml"))
    assert "1 rule files found" in said


@_needs("amtool")
def test_amtool_takes_the_routes(folder: Path) -> None:
    _run("amtool", "check-config", str(folder / "alertmanager/alertmanager.yml"))


def test_a_stall_is_scraped_and_judged_every_five_seconds() -> None:
    config = yaml.safe_load(FILES["prometheus/prometheus.yml"].text)
    assert config["global"] == {"scrape_interval": "5s", "scrape_timeout": "5s", "evaluation_interval": "5s"}
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    assert jobs["train-ledger"]["honor_labels"] is True
    assert jobs["keeper"]["honor_labels"] is True
    assert "honor_labels" not in jobs["dcgm-exporter"]


def test_targets_are_those_that_were_named() -> None:
    told = {
        kind: json.loads(FILES[f"prometheus/targets/{kind}.json"].text)[0]["targets"]
        for kind in ("train-ledger", "keeper", "dcgm-exporter", "node-exporter")
    }
    assert told == {
        "train-ledger": ["node001:9466", "node002:9500"],
        "keeper": ["127.0.0.1:9467"],
        "dcgm-exporter": ["node001:9400", "node002:9400"],
        "node-exporter": ["node001:9100", "node002:9100"],
    }


def test_the_web_hook_is_for_its_owner_to_read_and_nowhere_else() -> None:
    holds = [path for path, file in FILES.items() if "pager.example.org" in file.text]
    assert holds == ["alertmanager/alertmanager.yml"]
    assert FILES[holds[0]].mode == 0o600
    config = yaml.safe_load(FILES[holds[0]].text)
    assert config["receivers"][0]["webhook_configs"][0]["url"] == SETTINGS.webhook


def test_thresholds_are_those_of_the_run() -> None:
    settings = Settings(config=Config(alerts=Alerts(evaluation_interval_s=15.0, loss_window_s=7200.0)))
    made = {file.path: file.text for file in files_of(settings, ["prometheus", "kubernetes"])}
    assert "evaluation_interval: 15s" in made["prometheus/prometheus.yml"]
    assert "[2h]" in made["prometheus/alerts.yml"]
    assert "[2h]" in made["kubernetes/prometheusrule.yaml"]


@pytest.mark.parametrize("name", ["123", "1e3", "null", "on"])
def test_a_namespace_that_yaml_would_take_for_something_else_stays_a_name(name: str) -> None:
    for file in files_of(Settings(namespace=name), ["kubernetes"]):
        for document in yaml.safe_load_all(file.text) if file.path.endswith(".yaml") else ():
            assert document.get("metadata", {}).get("namespace") in (name, "gpu-operator", None)


# -- systemd


UNITS = [path for path in FILES if path.startswith("systemd/") and path.endswith(".service")]


@_needs("systemd-analyze")
@pytest.mark.parametrize("path", UNITS)
def test_systemd_takes_the_unit(folder: Path, tmp_path: Path, path: str) -> None:
    instance = tmp_path / Path(path).name.replace("@", "@runs-r42")
    shutil.copy(folder / path, instance)
    assert _run("systemd-analyze", "verify", str(instance)) == ""


@pytest.mark.parametrize("path", [path for path in FILES if path.startswith("systemd/")])
def test_a_unit_has_sections_of_keys(path: str) -> None:
    for line in FILES[path].text.splitlines():
        assert re.fullmatch(r"#.*|\[(Unit|Service|Install)\]|[A-Z][A-Za-z]+=.*|", line), line


@pytest.mark.parametrize("path", UNITS)
def test_a_unit_is_hardened(path: str) -> None:
    said = FILES[path].text.splitlines()
    for wanted in ("NoNewPrivileges=true", "ProtectSystem=strict", "ReadWritePaths=%f", "User=train-ledger"):
        assert wanted in said
    assert not any("CAP_SYS_ADMIN" in line for line in said)


def test_capabilities_are_those_that_something_needs() -> None:
    bounds = {
        path: re.findall(r"^CapabilityBoundingSet=(.*)$", FILES[path].text, re.MULTILINE) for path in UNITS
    }
    assert bounds == {
        "systemd/train-ledger-export@.service": ["CAP_SYSLOG"],
        "systemd/train-ledger-watch@.service": ["CAP_SYS_PTRACE CAP_SYSLOG"],
    }


def test_alertmanager_opens_no_port_for_a_cluster() -> None:
    unit = FILES["systemd/prometheus-alertmanager.service.d/train-ledger.conf"].text
    compose = yaml.safe_load(FILES["compose/compose.yaml"].text)["services"]["alertmanager"]["command"]
    assert "--cluster.listen-address=" in ALERTMANAGER_ARGUMENTS
    for argument in ALERTMANAGER_ARGUMENTS:
        assert argument in unit.split()
        assert argument in compose


# -- every command is one that train-ledger has


def _commands() -> Iterator[tuple[str, list[str]]]:
    for path, file in FILES.items():
        if path.startswith(("systemd/", "slurm/")):
            for line in file.text.replace("\\\n", " ").splitlines():
                if match := re.search(r"train-ledger (export|watch) (.*?)(?: >/dev/null.*)?$", line):
                    yield f"{path}: {match[1]}", match[2].split()
        if path.startswith("kubernetes/") and path.endswith(".yaml"):
            for document in yaml.safe_load_all(file.text):
                spec = document.get("spec", {})
                for container in spec.get("template", {}).get("spec", spec).get("containers", ()):
                    yield f"{path}: {container['args'][0]}", container["args"][1:]


COMMANDS = dict(_commands())


def test_commands_are_found_in_units_scripts_and_manifests() -> None:
    assert len(COMMANDS) == 6


@pytest.mark.parametrize("where", sorted(COMMANDS))
def test_a_command_has_options_that_there_are(where: str) -> None:
    verb = where.rpartition(" ")[2]
    known = {
        name
        for it in typer.main.get_command(app).commands[verb].params  # type: ignore[attr-defined]
        for name in it.opts
    }
    used = {word.partition("=")[0] for word in COMMANDS[where] if word.startswith("--")}
    assert used <= known


# -- Slurm


SCRIPTS = [path for path in FILES if path.endswith(".sh")]


@pytest.mark.parametrize("path", SCRIPTS)
def test_a_script_is_one_that_may_be_run(folder: Path, path: str) -> None:
    _run("sh", "-n", str(folder / path))
    assert (folder / path).stat().st_mode & 0o111


@_needs("shellcheck")
@pytest.mark.parametrize("path", SCRIPTS)
def test_shellcheck_finds_nothing(folder: Path, path: str) -> None:
    _run("shellcheck", str(folder / path))


@pytest.fixture
def node(tmp_path: Path, folder: Path) -> Any:
    """Runs a script of Slurm's on a node on which every program writes down how it was called."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("systemd-run", "systemctl", "setpriv", "logger", "timeout", "train-ledger", "sleep"):
        act = 'shift; exec "$@"' if name == "timeout" else "exit ${FAILS:-0}"
        said = 'printf "%s|" "$(basename "$0")" "$@" >> "$CALLS"; echo >> "$CALLS"'
        (programs / name).write_text(f"#!/bin/sh\n{'' if name == 'timeout' else said}\n{act}\n")
        (programs / name).chmod(0o755)

    def run(which: str, **variables: str) -> list[str]:
        calls = tmp_path / "calls"
        calls.unlink(missing_ok=True)
        text = (folder / f"slurm/train-ledger-{which}.sh").read_text()
        script = tmp_path / which
        script.write_text(re.sub(r"^PATH=", f"PATH={programs}:", text, count=1, flags=re.MULTILINE))
        told = {"CALLS": str(calls), "PATH": "/usr/bin:/bin", **variables}
        ended = subprocess.run(
            ["sh", str(script)], env=told, capture_output=True, text=True, timeout=180, check=False
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
        return calls.read_text().splitlines() if calls.exists() else []

    return run


JOB = {"SLURM_JOB_ID": "17", "SLURM_JOB_UID": "1001", "SLURM_JOB_GID": "100"}


def test_a_job_that_names_its_run_gets_a_sidecar_as_its_user(node: Any) -> None:
    calls = node("prolog", **JOB, SLURM_JOB_COMMENT="mine train-ledger=/runs/r42 too")
    assert [call.partition("|")[0] for call in calls] == ["setpriv", "systemd-run"]
    assert "|--reuid|1001|--regid|100|" in calls[0]
    assert calls[0].endswith("|mkdir|-p|--|/runs/r42|")
    assert "|--unit=train-ledger-job-17|--uid=1001|--gid=100|" in calls[1]
    assert "|train-ledger|export|/runs/r42|--host|0.0.0.0|--port|9466|--record-hardware|" in calls[1]


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {**JOB},
        {**JOB, "SLURM_JOB_COMMENT": "train-ledger=runs/r42"},
        {**JOB, "SLURM_JOB_UID": "0", "SLURM_JOB_COMMENT": "train-ledger=/runs/r42"},
        {**JOB, "SLURM_JOB_ID": "17;id", "SLURM_JOB_COMMENT": "train-ledger=/runs/r42"},
    ],
)
def test_other_jobs_are_left_alone(node: Any, variables: dict[str, str]) -> None:
    assert node("prolog", **variables) == []


@pytest.mark.parametrize("name", ["/runs/$(id)", "/runs/*", "/runs/a;id", "/runs/`id`", '/runs/"x'])
def test_a_run_with_an_odd_name_is_told_and_left(node: Any, name: str) -> None:
    calls = node("prolog", **JOB, SLURM_JOB_COMMENT=f"train-ledger={name}")
    assert [call.partition("|")[0] for call in calls] == ["logger"]


def test_a_job_never_fails_because_of_its_sidecar(node: Any) -> None:
    calls = node("prolog", **JOB, SLURM_JOB_COMMENT="train-ledger=/runs/r42", FAILS="1")
    assert [call.partition("|")[0] for call in calls] == ["setpriv", "logger"]
    node("epilog", **JOB, FAILS="1")


def test_the_epilog_ends_what_the_prolog_began_after_one_more_scrape(node: Any) -> None:
    calls = node("epilog", **JOB)
    assert calls == [
        "systemctl|is-active|--quiet|train-ledger-job-17.service|",
        "sleep|6|",
        "systemctl|stop|train-ledger-job-17.service|",
    ]


# -- Kubernetes


DOCUMENTS = [
    (path, document)
    for path in FILES
    if path.startswith("kubernetes/") and path.endswith(".yaml") and "pod-sidecar" not in path
    for document in yaml.safe_load_all(FILES[path].text)
]


@pytest.mark.parametrize(
    "document",
    [it for _, it in DOCUMENTS],
    ids=[f"{it['kind']}/{it['metadata']['name']}" for _, it in DOCUMENTS],
)
def test_a_manifest_has_what_kubernetes_asks_of_its_kind(document: dict[str, Any]) -> None:
    versions = {
        "DaemonSet": "apps/v1",
        "Deployment": "apps/v1",
        "Service": "v1",
        "ConfigMap": "v1",
        "ServiceMonitor": "monitoring.coreos.com/v1",
        "PodMonitor": "monitoring.coreos.com/v1",
        "PrometheusRule": "monitoring.coreos.com/v1",
    }
    assert document["apiVersion"] == versions[document["kind"]]
    assert document["metadata"]["namespace"] in ("training", "gpu-operator")
    if document["kind"] in ("DaemonSet", "Deployment"):
        template = document["spec"]["template"]
        assert document["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]
        _looks_like_a_pod(template["spec"])


def _looks_like_a_pod(spec: dict[str, Any]) -> None:
    volumes = {volume["name"] for volume in spec["volumes"]}
    for container in spec["containers"]:
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        assert all(len(name) <= 15 for name in ports)
        assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
        assert container["livenessProbe"]["httpGet"]["port"] in ports
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
        assert {"requests", "limits"} <= container["resources"].keys()


def _document(kind: str, name: str) -> dict[str, Any]:
    return next(it for _, it in DOCUMENTS if (it["kind"], it["metadata"]["name"]) == (kind, name))


def test_the_daemon_set_has_what_py_spy_and_the_kernel_log_need() -> None:
    spec = _document("DaemonSet", "train-ledger-export")["spec"]["template"]["spec"]
    container = spec["containers"][0]
    assert {"SYS_PTRACE", "SYSLOG"} <= set(container["securityContext"]["capabilities"]["add"])
    assert {"name": "kmsg", "mountPath": "/dev/kmsg", "readOnly": True} in container["volumeMounts"]
    journal = {"log": "/var/log", "machine-id": "/etc/machine-id"}
    mounts = {it["name"]: it["mountPath"] for it in container["volumeMounts"] if it.get("readOnly")}
    assert journal.items() <= mounts.items()
    assert {"name": "runs", "mountPath": "/shared/my runs"} in container["volumeMounts"]
    assert container["args"][:2] == ["export", "/shared/my runs/r42"]


def test_a_run_at_the_root_does_not_mount_the_whole_file_system() -> None:
    files = {file.path: file.text for file in files_of(Settings(run=Path("/r42")), ["kubernetes"])}
    daemon_set = next(yaml.safe_load_all(files["kubernetes/daemonset.yaml"]))
    runs = daemon_set["spec"]["template"]["spec"]["volumes"][0]
    assert runs == {"name": "runs", "hostPath": {"path": "/r42", "type": "Directory"}}


def test_process_numbers_of_other_pods_are_not_taken_for_the_host_s() -> None:
    assert _document("DaemonSet", "train-ledger-export")["spec"]["template"]["spec"]["hostPID"] is False
    sidecar = yaml.safe_load(FILES["kubernetes/pod-sidecar.yaml"].text)
    assert sidecar["spec"]["shareProcessNamespace"] is True
    _looks_like_a_pod(sidecar["spec"])


def test_monitors_find_ports_and_labels_that_there_are() -> None:
    services = {it["metadata"]["name"]: it for _, it in DOCUMENTS if it["kind"] == "Service"}
    for _, monitor in DOCUMENTS:
        if monitor["kind"] == "ServiceMonitor" and monitor["metadata"]["name"] in services:
            service = services[monitor["metadata"]["name"]]
            assert monitor["spec"]["selector"]["matchLabels"] == service["metadata"]["labels"]
            assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
            assert monitor["spec"]["endpoints"][0]["honorLabels"] is True


def test_the_rule_of_the_operator_is_the_rules_file() -> None:
    rule = _document("PrometheusRule", "train-ledger")
    assert rule["spec"] == yaml.safe_load(FILES["prometheus/alerts.yml"].text)
    rules = [it for group in rule["spec"]["groups"] for it in group["rules"]]
    assert {it["alert"] for it in rules if "alert" in it} == {it.name for it in RULES}


def test_the_operator_s_counters_are_the_file() -> None:
    data = _document("ConfigMap", "train-ledger-dcgm")["data"]
    assert data == {"dcgm-metrics.csv": FILES["dcgm/dcgm-counters.csv"].text}


# -- one machine


def test_everything_of_the_compose_file_listens_on_loopback() -> None:
    services = yaml.safe_load(FILES["compose/compose.yaml"].text)["services"]
    for name in ("prometheus", "alertmanager"):
        listens = [it for it in services[name]["command"] if it.startswith("--web.listen-address=")]
        assert [it.partition("=")[2].rpartition(":")[0] for it in listens] == ["127.0.0.1"]
    assert services["grafana"]["environment"]["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"


def test_what_the_compose_file_mounts_is_written(folder: Path) -> None:
    services = yaml.safe_load(FILES["compose/compose.yaml"].text)["services"]
    for service in services.values():
        for volume in service["volumes"]:
            if volume.startswith(".."):
                assert (folder / "compose" / volume.split(":")[0]).is_dir()


def test_no_password_is_in_it() -> None:
    said = yaml.safe_load(FILES["compose/compose.yaml"].text)["services"]["grafana"]["environment"]
    assert [name for name in said if "PASSWORD" in name] == ["GF_SECURITY_ADMIN_PASSWORD__FILE"]
