"""`train-ledger diagnose`: what is wrong with this run?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from train_ledger.cli.options import At, Html, Json

if TYPE_CHECKING:
    from train_ledger.answer import Diagnosis
    from train_ledger.config import Config
    from train_ledger.run_dir import RunDir

__all__ = ["diagnose"]


def diagnose(
    run: Annotated[
        Path | None,
        typer.Argument(metavar="RUN", help="Run directory; none with --prometheus.", show_default=False),
    ] = None,
    prometheus: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Ask this Prometheus; without RUN [prometheus] url of the configuration is the default.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="NAME",
            help="What the run is called in Prometheus; RUN's own name, or its only run, if none.",
            show_default=False,
        ),
    ] = None,
    at: At = None,
    json: Json = False,
    html: Html = None,
) -> int:
    """Say what is wrong with a run, and why.

    Who is to blame, if anybody, on what evidence, what was ruled out, and what to run next. A run whose
    ranks write no signals is known by its logs, in logs/ and structured_logs/; one whose directory is not to
    be seen from here by what a Prometheus scraped of it, which tells neither stacks nor dumps.

    \b
    Example:
      train-ledger diagnose runs/r42
      train-ledger diagnose runs/r42 --at 2026-11-30T03:12:00+00:00 --json
      train-ledger diagnose --prometheus http://prometheus:9090 --run r42
    """
    from train_ledger import config, ops
    from train_ledger.cli.output import answered
    from train_ledger.ops.slow import picture_at
    from train_ledger.run_dir import RunDir

    run_dir = None if run is None else RunDir.existing(run)
    settings = config.load(run_dir)
    currency = settings.cost.currency
    if run_dir is None or prometheus is not None:
        found = _by_prometheus(prometheus, name, run_dir, settings, at)
        return answered(
            found,
            json=json,
            html=html,
            verb="diagnose",
            title=name or str(run or "run"),
            at=at,
            currency=currency,
        )
    _want_no_name(name)
    answer, picture = ops.examine(run_dir, settings, at=at)
    if html is not None:
        picture = picture_at(run_dir, settings, answer, at) or picture
    return answered(
        answer,
        json=json,
        html=html,
        verb="diagnose",
        title=str(run),
        at=at,
        currency=currency,
        picture=picture,
    )


def _by_prometheus(
    url: str | None, name: str | None, run_dir: RunDir | None, settings: Config, at: float | None
) -> Diagnosis:
    from train_ledger.cli.leave import BadInputError
    from train_ledger.ops.prometheus import diagnose_by_prometheus

    address = url if url is not None else settings.prometheus.url
    if not address:
        raise BadInputError(
            "name a run directory, or --prometheus URL; [prometheus] url in the configuration is its default"
        )
    return diagnose_by_prometheus(address, settings, name=name, at=at, run_dir=run_dir)


def _want_no_name(name: str | None) -> None:
    from train_ledger.cli.leave import BadInputError

    if name is not None:
        raise BadInputError("--run names a run of a Prometheus; give --prometheus URL with it")
