"""`train-ledger backtest`: what would the alerts have said of these runs?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.options import Html, Json, moment
from train_ledger.headway import tell

if TYPE_CHECKING:
    from train_ledger.dash.backtest import Backtest, Engine, NotJudged, PastIncident, Span
    from train_ledger.dash.backtest.many import Judge

__all__ = ["backtest"]


def backtest(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run directories.", show_default=False)
    ],
    until: Annotated[
        float | None,
        typer.Option(
            metavar="T",
            parser=moment,
            help="Judge up to this time, by what was known then: unix seconds or ISO 8601.",
            show_default="until nothing more can be paged",
        ),
    ] = None,
    since: Annotated[
        float | None,
        typer.Option(
            metavar="T",
            parser=moment,
            help="Judge from this time on, with all that was known before.",
            show_default="from the first line on",
        ),
    ] = None,
    engine: Annotated[
        Literal["embedded", "prometheus"],
        typer.Option(
            help="Who judges: the keeper's own judge, or Prometheus (promtool) with the rules file."
        ),
    ] = "embedded",
    incidents: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='What really happened, one JSON object a line: {"run": "r42", "t": 1796007600}.',
            show_default="read off the runs",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Try another threshold of [alerts]; may be given for several.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
    html: Html = None,
) -> int:
    """Judge recorded runs again by the alert rules.

    Each run is replayed in its own time through the rules as they are, or with other thresholds beside them:
    which alerts fired when, which incidents were found how soon, and which pages were for nothing. Without
    --incidents they are read off each run itself, by a measure for each kind that asks no alert
    (docs/backtest.md). Each line of the FILE may say "until" when it lasted, too, and a "kind". Several runs
    are judged beside each other; one that cannot be read stops none of the others. The embedded judge takes
    less than a minute for a day of 16 ranks, Prometheus a quarter of an hour. Exit status 1: an incident was
    missed, or a page was for nothing; else 2: a run could not be judged.

    \b
    Example:
      train-ledger backtest runs/r42
      train-ledger backtest runs/* --set stall_floor_s=60 --incidents incidents.jsonl
      train-ledger backtest runs/r42 --engine prometheus --json
    """
    from train_ledger.cli.leave import BadInputError, complain
    from train_ledger.cli.output import show, show_report, write_page
    from train_ledger.dash import backtest as room
    from train_ledger.render import as_json

    if since is not None and until is not None and since >= until:
        raise BadInputError("--since is not before --until: nothing lies between them")
    _check(set_ or [])
    try:
        told = None if incidents is None else room.incidents_in(incidents)
        if engine == "prometheus":
            room.promtool()
    except (room.IncidentsError, room.PromtoolError) as error:
        raise BadInputError(str(error)) from error
    span = room.Span(since, until)
    judge = partial(_tested, engine=engine, span=span, incidents=told, settings=tuple(set_ or ()))
    tests, not_judged = _judged(runs, judge)
    for it in not_judged:
        complain(it.line)
    if not tests:
        return ExitCode.BAD_INPUT
    report = room.report(tests, set_ or [], not_judged)
    if html is not None:
        title = tests[0].run if len(tests) == 1 else f"{len(tests)} runs"
        write_page(html, report, "backtest", title=title, at=until)
    if json:
        show(as_json(room.answer(tests, not_judged)))
    else:
        show_report(report)
    return _status(tests, not_judged)


def _judged(runs: Sequence[Path], judge: Judge) -> tuple[list[Backtest], list[NotJudged]]:
    """What came of the runs, in their order, and those of which nothing did."""
    from train_ledger.dash.backtest import Backtest, backtest_all

    found: dict[int, Backtest | NotJudged] = {}
    for place, came in backtest_all(runs, judge):
        found[place] = came
        if len(runs) > 1:
            tell("judging runs", len(found), len(runs), "runs")
    came_of = [found[place] for place in sorted(found)]
    return (
        [it for it in came_of if isinstance(it, Backtest)],
        [it for it in came_of if not isinstance(it, Backtest)],
    )


def _status(tests: Sequence[Backtest], not_judged: Sequence[NotJudged]) -> int:
    if not all(it.is_right for it in tests):
        return ExitCode.TROUBLE
    if not_judged:
        return ExitCode.BAD_INPUT
    timeless = all(it.since_t is None for it in tests)
    return ExitCode.CANNOT_TELL if timeless else ExitCode.NOTHING_WRONG


def _check(settings: Sequence[str]) -> None:
    """Raises what is wrong with a setting, before any run is read."""
    from train_ledger import config

    config.with_alerts(config.Config(), dict(_named(it) for it in settings))


def _tested(
    run: Path,
    *,
    engine: Engine,
    span: Span,
    incidents: Mapping[str, Sequence[PastIncident]] | None,
    settings: Sequence[str],
) -> Backtest:
    from train_ledger import config
    from train_ledger.dash.backtest import backtest
    from train_ledger.run_dir import RunDir

    run_dir = RunDir.existing(run)
    now = config.load(run_dir)
    tried = config.with_alerts(now, dict(_named(it) for it in settings)) if settings else None
    return backtest(run_dir, now, tried, engine=engine, span=span, incidents=incidents)


def _named(setting: str) -> tuple[str, str]:
    name, mark, value = setting.partition("=")
    if not mark:
        raise typer.BadParameter(f"--set {setting}: wanted is NAME=VALUE, like stall_floor_s=60")
    return name.strip(), value.strip()
