"""`train-ledger drill`: would a hang in your own environment be noticed, and its page come in time?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from train_ledger.cli.demo import Culprit, HangAt, Mode, NewRun, Ranks
from train_ledger.cli.options import Json, seconds

__all__ = ["drill_hang", "drill_page"]


def drill_hang(
    ranks: Ranks = 8,
    mode: Mode = "size",
    culprit: Culprit = 5,
    run: NewRun = None,
    hang_at: HangAt = 20,
    group: Annotated[
        str,
        typer.Option(metavar="GROUP", help="Where it leaves: at a collective of world, tp, dp or pp."),
    ] = "world",
    layout: Annotated[
        str | None,
        typer.Option(
            metavar="LAYOUT",
            help="Sizes of the groups, as dp=2,tp=2,pp=2; data-parallel alone if none is needed.",
            show_default=False,
        ),
    ] = None,
    timeout_s: Annotated[
        float | None,
        typer.Option(
            min=1,
            max=86_400,
            metavar="SECONDS",
            help="Time-out of the process groups; 600 if none.",
            show_default=False,
        ),
    ] = None,
    no_dump_path: Annotated[
        bool,
        typer.Option(
            "--no-dump-path",
            help="Tell torch no place for its dumps, wait for the time-out (30 s if none is given), and see "
            "where they fall and whether they outlive the job.",
        ),
    ] = False,
    json: Json = False,
) -> int:
    """Plant a hang, and see whether it is named.

    Runs a torchrun job in this environment – over NCCL where each rank has a GPU, else over gloo – and says
    whether its hang was paged, whether the right rank was named, whether every rank's dump was there and how
    long gathering them took. Exit status 0: the planted rank was found and rightly named.

    \b
    Example:
      train-ledger drill hang --ranks 8 --mode sleep --culprit 5 --json
      train-ledger drill hang --layout dp=2,tp=2,pp=2 --group tp --mode order_swap
      train-ledger drill hang --no-dump-path --timeout-s 30
    """
    from train_ledger import chaos
    from train_ledger.cli.output import show

    plan = chaos.plan_of(
        mode,
        culprit,
        ranks,
        hang_at=hang_at,
        group=group,
        layout=layout,
        timeout_s=timeout_s,
        no_dump_path=no_dump_path,
    )
    return chaos.demo(run, plan, as_json=json, out=show)


def drill_page(
    run: Annotated[
        Path | None,
        typer.Option(
            "--run",
            metavar="RUN_DIR",
            help="Run whose thresholds and [notify] are taken; your own configuration if none.",
            show_default=False,
        ),
    ] = None,
    prometheus: Annotated[
        bool | None,
        typer.Option(
            "--prometheus/--no-prometheus",
            help="Through Prometheus and Alertmanager, too; if both are installed, where neither is said.",
            show_default=False,
        ),
    ] = None,
    configured: Annotated[
        bool,
        typer.Option(
            "--configured",
            help="Tell those, too, whom [notify] in the configuration names, so that their pager rings.",
        ),
    ] = False,
    url: Annotated[
        list[str] | None,
        typer.Option(
            "--url",
            metavar="URL",
            help="An address of apprise's to tell, too; repeatable.",
            show_default=False,
        ),
    ] = None,
    threshold_s: Annotated[
        float,
        typer.Option(
            parser=seconds, metavar="SECONDS", help="After so many seconds a step counts as stalled."
        ),
    ] = 10.0,
    json: Json = False,
) -> int:
    """Stop a run's steps, and see the page come in time.

    Runs a small job of its own in a folder that is thrown away, stops its steps on purpose, and measures the
    seconds until the message is at a receiver on this machine: sent by train-ledger watch, and by Prometheus
    and Alertmanager with the configuration that is generated for them. Takes about a minute. Exit status 0:
    each sent exactly one message, at most 20 s after the threshold.

    \b
    Example:
      train-ledger drill page
      train-ledger drill page --run runs/r42 --configured
      train-ledger drill page --no-prometheus --url slack://TOKEN --json
    """
    import dataclasses

    from train_ledger import config
    from train_ledger.chaos.page_drill import page_drill
    from train_ledger.cli.leave import BadInputError
    from train_ledger.cli.output import show
    from train_ledger.run_dir import RunDir

    settings = config.load(RunDir.existing(run) if run else None)
    if configured and not (settings.notify.urls or settings.notify.command):
        where = settings.file or "your configuration"
        raise BadInputError(f"{where}: [notify] names no urls and no command, so nobody can be told")
    notify = settings.notify if configured else config.Notify(timeout_s=settings.notify.timeout_s)
    notify = dataclasses.replace(notify, urls=(*notify.urls, *(url or ())))
    return page_drill(
        settings, prometheus=prometheus, notify=notify, threshold_s=threshold_s, as_json=json, out=show
    )
