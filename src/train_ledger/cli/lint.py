"""`train-ledger lint`: will these rules and panels ever say anything here?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.options import Json

if TYPE_CHECKING:
    from train_ledger.config import Config
    from train_ledger.ops.lint import Documents, Exported, LintAnswer

__all__ = ["lint"]

_SHOWN = ("severity", "where", "what", "why", "fix")


def lint(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            help="What `train-ledger deploy` wrote, with your changes; the rules of this version if none.",
            show_default=False,
        ),
    ] = None,
    url: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="A live exporter; may be given for several.", show_default=False),
    ] = None,
    file: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A scrape that was saved to a file.", show_default=False),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="What an exporter of this run would export.", show_default=False),
    ] = None,
    json: Json = False,
) -> int:
    """Say which alerts and panels can never work, and why.

    Rules, panels, inhibitions and the runbook are held against what really is exported: give the addresses of
    the sidecar, dcgm-exporter and node_exporter of one node, or what `curl` saved of them. Exit status 1:
    something can never fire, or is wrong.

    \b
    Example:
      train-ledger lint --url node1:9466 --url node1:9400 --url node1:9100
      train-ledger lint deployed/ --file sidecar.txt --file dcgm.txt
      train-ledger lint --run runs/r42 --json
    """
    from train_ledger import config
    from train_ledger.cli.leave import BadInputError
    from train_ledger.cli.output import show
    from train_ledger.ops import lint as room
    from train_ledger.render import as_json
    from train_ledger.run_dir import RunDir

    settings = config.load(RunDir.existing(run) if run else None)
    try:
        exported = _exported(url or [], file or [], run, settings)
        documents = _documents(folder, settings)
    except (room.ScrapeError, room.DocumentError) as error:
        raise BadInputError(str(error)) from error
    answer = room.lint(documents, exported)
    show(as_json(_as_values(answer)) if json else "\n".join(room.lines(answer)))
    is_bad = any(finding.severity != "partly" for finding in answer.findings)
    return ExitCode.TROUBLE if is_bad else ExitCode.NOTHING_WRONG


def _exported(urls: list[str], files: list[Path], run: Path | None, settings: Config) -> Exported:
    from train_ledger.cli.leave import BadInputError
    from train_ledger.ops.lint import exported_by, fetched, read_scrape

    scrapes = [*map(fetched, urls), *map(read_scrape, files)]
    if run is not None:
        scrapes.append((str(run), _metrics_of(run, settings)))
    if not scrapes:
        raise BadInputError("say what is exported: --url of live exporters, --file of a scrape, or --run")
    return exported_by(scrapes)


def _metrics_of(run: Path, settings: Config) -> str:
    """What an exporter told of it when it was last heard: of a run that is long over it tells little now."""
    import time

    now = time.time()
    text, heard_t = _metrics_at(run, settings, now)
    return text if heard_t is None or now <= heard_t else _metrics_at(run, settings, heard_t)[0]


def _metrics_at(run: Path, settings: Config, t: float) -> tuple[str, float | None]:
    """What an exporter tells of the run at `t`, and when a rank was last heard."""
    from train_ledger.dash.exporter import Exporter
    from train_ledger.run_dir import RunDir

    exporter = Exporter(RunDir.existing(run), settings, clock=lambda: t)
    try:
        while not exporter.poll():
            pass  # a large backlog is read in pieces
        heard = [rank.heard_t for rank in exporter.state.ranks.values() if rank.heard_t is not None]
        return exporter.metrics() or "", max(heard, default=None)
    finally:
        exporter.close()


def _documents(folder: Path | None, settings: Config) -> Documents:
    from train_ledger.ops.lint import generated, of_folder

    if folder is not None:
        return of_folder(folder)
    return generated(settings.alerts, settings.prometheus.runbook_url)


def _as_values(answer: LintAnswer) -> dict[str, object]:
    from dataclasses import asdict

    checked = {name: getattr(answer, name) for name in ("alerts", "panels", "inhibitions", "metrics")}
    return {
        "findings": [{name: asdict(it)[name] for name in _SHOWN} for it in answer.findings],
        "checked": checked,
        "looked_at": list(answer.looked_at),
    }
