"""`train-ledger deploy`: what do Prometheus, Alertmanager, Grafana and the nodes need?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.options import Json

if TYPE_CHECKING:
    from train_ledger.dash.deploy import Settings

__all__ = ["deploy"]


def deploy(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write into.", show_default=False)],
    run: Annotated[
        Path | None,
        typer.Option(metavar="RUN_DIR", help="Run whose thresholds and hosts are taken.", show_default=False),
    ] = None,
    targets: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT,…",
            help="Where the sidecars answer.",
            show_default="the run's hosts, else this machine",
        ),
    ] = "",
    webhook: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Address that pages are posted to; written down, for you alone to read."
        ),
    ] = "",
    runbook_url: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Where people find the runbook.", show_default="as the configuration says"
        ),
    ] = "",
    namespace: Annotated[
        str, typer.Option(metavar="NAME", help="Namespace of the Kubernetes manifests.")
    ] = "monitoring",
    only: Annotated[
        str,
        typer.Option(
            metavar="PART,…",
            help="Only these: prometheus, alertmanager, dcgm, systemd, slurm, kubernetes, compose, grafana, "
            "runbook.",
            show_default="all",
        ),
    ] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite files that somebody changed, too.")
    ] = False,
    json: Json = False,
) -> int:
    """Write what watches a cluster: rules, routes, units.

    The configuration of Prometheus (with the rules), Alertmanager and Grafana (with the dashboard), the
    fields for dcgm-exporter, systemd units, Slurm's prolog and epilog, Kubernetes manifests, the runbook.
    Touches nothing but the folder; a file in it that somebody changed is never overwritten without --force.
    Say the same options again when you run it again: what is left out goes back to its default.

    \b
    Example:
      train-ledger deploy --out deployed --run runs/r42 --targets node001:9466,node002:9466
      train-ledger deploy --out deployed --only prometheus,alertmanager
    """
    from train_ledger.dash.deploy import PARTS, files_of, put

    wanted = tuple(part.strip() for part in only.split(",") if part.strip()) or PARTS
    files = files_of(_settings(run, targets, webhook, runbook_url, namespace), wanted)
    outcomes = put(out, files, force=force)
    rows = [{"path": str(out / file.path), "state": outcomes[file.path], "goes": file.goes} for file in files]
    _show(rows, json)
    return ExitCode.NOTHING_WRONG


def _settings(run: Path | None, targets: str, webhook: str, runbook_url: str, namespace: str) -> Settings:
    from train_ledger import config
    from train_ledger.dash.deploy import Settings, Target, hosts_of, targets_of, web_address
    from train_ledger.run_dir import RunDir

    run_dir = RunDir.existing(run) if run else None
    place = run_dir.path.resolve() if run_dir else Settings().run
    found = targets_of(targets) if targets else ()
    if not found and run_dir:
        found = tuple(Target(host) for host in hosts_of(run_dir))
    return Settings(
        config=config.load(run_dir),
        run=place,
        targets=found or Settings().targets,
        webhook=web_address(webhook) if webhook else "",
        runbook_url=web_address(runbook_url) if runbook_url else "",
        namespace=namespace,
    )


def _show(rows: list[dict[str, str]], json: bool) -> None:
    from train_ledger.cli.output import show
    from train_ledger.render import as_json, harmless

    if json:
        show(as_json({"files": rows}))
        return
    width = max(len(row["path"]) for row in rows)
    show("".join(f"{harmless(row['path']):<{width}}  {row['state']:<9}  {row['goes']}\n" for row in rows))
