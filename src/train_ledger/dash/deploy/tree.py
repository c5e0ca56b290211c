"""Which files make a deployment, and where does each one go?"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from importlib.resources import files

from train_ledger import __version__
from train_ledger.dash.alertmanager import ALERTMANAGER_ARGUMENTS, alertmanager_yml
from train_ledger.dash.deploy.counters import counters_csv
from train_ledger.dash.deploy.scraping import SCRAPE_S, prometheus_yml, targets_json
from train_ledger.dash.deploy.settings import EXPORT_PORT, WATCH_PORT, DeployError, Settings
from train_ledger.dash.deploy.template import filled
from train_ledger.dash.grafana import dashboard_json
from train_ledger.dash.promql import alerts_yml, duration

__all__ = ["PARTS", "DeployedFile", "files_of"]

PARTS = (
    "prometheus",
    "alertmanager",
    "dcgm",
    "systemd",
    "slurm",
    "kubernetes",
    "compose",
    "grafana",
    "runbook",
)

_ETC = "/etc/train-ledger"
_UNITS = "/etc/systemd/system"


@dataclass(frozen=True, slots=True)
class DeployedFile:
    """One file: its path below the folder that is written, and where it goes on the machine that uses it."""

    path: str
    text: str
    goes: str
    mode: int = 0o644


def files_of(settings: Settings, only: Collection[str] = PARTS) -> tuple[DeployedFile, ...]:
    """The files of these parts.

    Raises DeployError for a part that there is not, and DashboardError where the dashboard cannot be made.
    """
    if unknown := sorted(set(only) - set(PARTS)):
        raise DeployError(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    makers = {
        "prometheus": _prometheus,
        "alertmanager": _alertmanager,
        "dcgm": _dcgm,
        "systemd": _systemd,
        "slurm": _slurm,
        "kubernetes": _kubernetes,
        "compose": _compose,
        "grafana": _grafana,
        "runbook": _runbook,
    }
    return tuple(file for part in PARTS if part in only for file in makers[part](settings))


def _alerts(settings: Settings) -> str:
    return alerts_yml(settings.config.alerts, runbook=settings.runbook, xids=settings.config.xid)


def _prometheus(settings: Settings) -> Iterator[DeployedFile]:
    yield DeployedFile(
        "prometheus/prometheus.yml", prometheus_yml(settings), f"{_ETC}/prometheus.yml beside alerts.yml"
    )
    yield DeployedFile("prometheus/alerts.yml", _alerts(settings), f"{_ETC}/alerts.yml")
    for kind in ("train-ledger", "keeper", "dcgm-exporter", "node-exporter"):
        text = targets_json(kind, settings)
        yield DeployedFile(f"prometheus/targets/{kind}.json", text, f"{_ETC}/targets/{kind}.json")


def _alertmanager(settings: Settings) -> Iterator[DeployedFile]:
    text = alertmanager_yml(settings.config, page_receiver=settings.webhook)
    # An address may hold the key to a channel.
    mode = 0o600 if settings.webhook else 0o644
    yield DeployedFile("alertmanager/alertmanager.yml", text, f"{_ETC}/alertmanager.yml", mode)


def _dcgm(settings: Settings) -> Iterator[DeployedFile]:
    yield DeployedFile("dcgm/dcgm-counters.csv", counters_csv(), f"{_ETC}/dcgm-counters.csv on each node")


def _systemd(settings: Settings) -> Iterator[DeployedFile]:
    hardened, run = filled("hardened.conf"), shlex.quote(str(settings.run))
    ports = {"train-ledger-export@.service": EXPORT_PORT, "train-ledger-watch@.service": WATCH_PORT}
    for name, port in ports.items():
        more = {"address": _address(settings)} if port == EXPORT_PORT else {}
        text = filled(name, hardened=hardened, run=run, port=str(port), **more)
        yield DeployedFile(f"systemd/{name}", text, f"{_UNITS}/{name}")
    arguments = " ".join(ALERTMANAGER_ARGUMENTS)
    drop_ins = {
        "nvidia-dcgm-exporter": filled("dcgm-exporter.conf", interval=str(round(SCRAPE_S * 1000))),
        "prometheus": filled("prometheus.conf"),
        "prometheus-alertmanager": filled("prometheus-alertmanager.conf", arguments=arguments),
    }
    for unit, text in drop_ins.items():
        name = f"{unit}.service.d/train-ledger.conf"
        yield DeployedFile(f"systemd/{name}", text, f"{_UNITS}/{name}")


def _slurm(settings: Settings) -> Iterator[DeployedFile]:
    prolog = filled("prolog.sh", address=_address(settings), port=str(EXPORT_PORT))
    epilog = filled("epilog.sh", linger=f"{SCRAPE_S + 1:g}")
    for name, text in (("prolog", prolog), ("epilog", epilog)):
        yield DeployedFile(
            f"slurm/train-ledger-{name}.sh", text, f"/etc/slurm/train-ledger-{name}.sh on each node", 0o755
        )


def _kubernetes(settings: Settings) -> Iterator[DeployedFile]:
    run, image = settings.run, f"train-ledger:{__version__}"
    runs = run if run.parent == run.parent.parent else run.parent  # never the whole file system
    place = {"run": json.dumps(str(run)), "runs": json.dumps(str(runs)), "image": image}
    space, export, watch = {"namespace": _in_yaml(settings.namespace)}, str(EXPORT_PORT), str(WATCH_PORT)
    groups = _alerts(settings).partition("groups:")
    texts = {
        "daemonset.yaml": filled("daemonset.yaml", **place, **space, port=export),
        "pod-sidecar.yaml": filled("pod-sidecar.yaml", **place, port=export),
        "keeper.yaml": filled("keeper.yaml", **place, **space, port=watch),
        "monitors.yaml": filled("monitors.yaml", **space, scrape=duration(SCRAPE_S)),
        "prometheusrule.yaml": filled("prometheusrule.yaml", **space, groups="".join(groups[1:])),
        "dcgm-counters.yaml": filled("counters.yaml", csv=counters_csv()),
    }
    for name, text in texts.items():
        goes = "a training pod, by kubectl patch" if name == "pod-sidecar.yaml" else "kubectl apply -f"
        yield DeployedFile(f"kubernetes/{name}", text, goes)
    yield DeployedFile("kubernetes/Dockerfile", filled("Dockerfile", image=image), "docker build -f")


def _compose(settings: Settings) -> Iterator[DeployedFile]:
    arguments = "\n".join(f"- {argument}" for argument in ALERTMANAGER_ARGUMENTS)
    text = filled("compose.yaml", arguments=arguments)
    yield DeployedFile("compose/compose.yaml", text, "docker compose up -d, in its folder")


def _grafana(settings: Settings) -> Iterator[DeployedFile]:
    board = dashboard_json(settings.config.alerts, runbook=settings.runbook)
    provisioning = "/etc/grafana/provisioning"
    yield DeployedFile(
        "grafana/dashboards/train-ledger.json", board, "/var/lib/grafana/dashboards, or Grafana's import"
    )
    yield DeployedFile(
        "grafana/provisioning/datasources/train-ledger.yaml",
        filled("datasource.yaml", scrape=duration(SCRAPE_S)),
        f"{provisioning}/datasources",
    )
    yield DeployedFile(
        "grafana/provisioning/dashboards/train-ledger.yaml",
        filled("dashboards.yaml"),
        f"{provisioning}/dashboards",
    )


def _in_yaml(name: str) -> str:
    """Quoted where YAML would take it for something else than a name: a number, true, null."""
    is_plain = name[0].isalpha() and name not in ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
    return name if is_plain else json.dumps(name)


def _address(settings: Settings) -> str:
    """Loopback, unless Prometheus asks other hosts, and so from elsewhere."""
    here = all(target.host in ("127.0.0.1", "localhost", "[::1]") for target in settings.targets)
    return "127.0.0.1" if here else "0.0.0.0"  # noqa: S104  (the unit says to keep the port closed to others)


def _runbook(settings: Settings) -> Iterator[DeployedFile]:
    """What the links in the alerts lead to: it comes with the package, where nobody looks for it."""
    folder = files("train_ledger").joinpath("ops", "runbook")
    for name, goes in (
        ("runbook.md", f"where the alerts' links lead: {settings.runbook}"),
        ("runbook.zh-CN.md", "beside it, for those who read Chinese"),
    ):
        yield DeployedFile(name, folder.joinpath(name).read_text(encoding="utf-8"), goes)
