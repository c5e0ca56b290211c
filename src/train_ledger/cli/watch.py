"""`train-ledger watch`: follow a run, page when it stops, and take the evidence while it lives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from train_ledger.config import Config
    from train_ledger.ops.prometheus import FollowedRun
    from train_ledger.run_dir import RunDir

__all__ = ["watch"]


def watch(
    run: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories.", show_default=False)],
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address that the page is served at.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="Its port; 0 takes a free one.")
    ] = 9467,
    web: Annotated[bool, typer.Option("--web/--no-web", help="Serve the web page and the metrics.")] = True,
    until_verdict: Annotated[
        bool, typer.Option("--until-verdict", help="End after the first verdict, with its exit status.")
    ] = False,
    respond: Annotated[
        bool,
        typer.Option(
            "--respond",
            help="On a page take dumps and stacks and name the cause, whatever [respond] on_page says.",
        ),
    ] = False,
    prometheus: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Follow the run through this Prometheus; RUN then holds the journal alone.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="NAME",
            help="What the run is called in Prometheus; its only run if none.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Tell what happens as one JSON object a line.")
    ] = False,
) -> int:
    """Follow runs, page, and give the verdict.

    Judges the step clock and pages once; with --respond, or [respond] on_page in train-ledger.toml, it
    takes dumps and stacks while the job lives, and the page says who is to blame. Ends by Ctrl-C, or with
    --until-verdict after the first verdict; the end of the run alone does not end it.
    One keeper watches one run; a second one says who holds it. Where no rank writes signals, the logs
    in logs/ and structured_logs/ are followed until one does. Several runs stand on one page. Without a
    shared file system --prometheus tells of one run, and RUN is a folder here for its journal.

    \b
    Example:
      train-ledger watch runs/r42 --respond
      train-ledger watch runs/r41 runs/r42
      train-ledger watch runs/r42 --no-web --until-verdict --json
      train-ledger watch kept/r42 --prometheus http://prometheus:9090 --run r42
    """
    from train_ledger.cli.output import show
    from train_ledger.cli.run_wanted import run_to_write

    run_dirs = [run_to_write(path, "watch") for path in _each_once(run)]
    settings = [(run_dir, _loaded(run_dir, respond=respond)) for run_dir in run_dirs]
    from train_ledger import watch as room

    return room.watch(
        *settings,
        host=host,
        port=port if web else None,
        until_verdict=until_verdict,
        as_json=json,
        out=show,
        followed=_followed(prometheus, name, settings),
    )


def _followed(url: str | None, name: str | None, settings: list[tuple[RunDir, Config]]) -> FollowedRun | None:
    """The run as a Prometheus tells it; None where none is named."""
    from train_ledger.cli.leave import BadInputError

    if url is None:
        if name is not None:
            raise BadInputError("--run names a run of a Prometheus; give --prometheus URL with it")
        return None
    if len(settings) > 1:
        raise BadInputError("--prometheus tells of one run; give one RUN, a folder for its journal")
    from train_ledger.ops.prometheus import FollowedRun

    return FollowedRun(url, settings[0][1], name)


def _each_once(paths: list[Path]) -> list[Path]:
    """A run that is named twice is kept once: its second keeper would wait for the first."""
    return list({path.resolve(): path for path in paths}.values())


def _loaded(run_dir: RunDir, *, respond: bool) -> Config:
    from train_ledger import config

    settings = config.load(run_dir)
    if not respond:
        return settings
    return replace(settings, respond=replace(settings.respond, on_page=config.FIRST_ANSWERS))
