"""Which verb?

The verbs are thin, and each loads the rooms that it needs when it runs: `--help` answers at once.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from train_ledger.answer import ExitCode
from train_ledger.cli.account import account
from train_ledger.cli.ask import ask
from train_ledger.cli.asked import remember
from train_ledger.cli.backtest import backtest
from train_ledger.cli.before_work import INTERRUPTED
from train_ledger.cli.cost import cost
from train_ledger.cli.coverage import coverage
from train_ledger.cli.demo import demo
from train_ledger.cli.deploy import deploy
from train_ledger.cli.diagnose import diagnose
from train_ledger.cli.drill import drill_hang, drill_page
from train_ledger.cli.drill_slow import drill_slow
from train_ledger.cli.dump import dump
from train_ledger.cli.export import export
from train_ledger.cli.gantt import gantt
from train_ledger.cli.hang import hang
from train_ledger.cli.leave import complain, crash, ends_well, hold_streams, left_by_reader, told
from train_ledger.cli.lint import lint
from train_ledger.cli.note import note
from train_ledger.cli.nsys import nsys
from train_ledger.cli.postmortem import postmortem
from train_ledger.cli.preflight import preflight
from train_ledger.cli.progress import with_progress
from train_ledger.cli.rank import rank
from train_ledger.cli.read import read
from train_ledger.cli.report import report
from train_ledger.cli.respond import respond
from train_ledger.cli.runbook import runbook
from train_ledger.cli.slow import slow
from train_ledger.cli.spelling import can_be_written
from train_ledger.cli.stacks import stacks
from train_ledger.cli.top import top
from train_ledger.cli.trace import trace_breakdown, trace_diff
from train_ledger.cli.trace_take import trace_memory, trace_nsys, trace_take
from train_ledger.cli.watch import watch

__all__ = ["app", "main"]

_WRONG_USAGE: type[Exception] = typer.BadParameter.__mro__[2]
"""click's ClickException, which some releases of typer ship under a name of their own."""


class _Verbs(TyperGroup):
    """Tells wrong usage in one line, as any other bad input."""

    def main(self, *args: Any, **extra: Any) -> Any:
        given = extra.get("args", args[0] if args else None)
        remember(sys.argv[1:] if given is None else given)
        try:
            status = super().main(*args, **{**extra, "standalone_mode": False})
        except typer.Abort:
            sys.exit(INTERRUPTED)
        except _WRONG_USAGE as error:
            complain(_usage(error))
            sys.exit(ExitCode.BAD_INPUT)
        except BrokenPipeError:
            sys.exit(left_by_reader())
        except OSError as error:
            sys.exit(told(error, "standard output"))
        sys.exit(status if isinstance(status, int) else ExitCode.NOTHING_WRONG)


def _usage(error: Any) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "train-ledger"
    return f"{error.format_message()} ({path} --help shows how)"


_SHAPE = {"rich_markup_mode": None, "add_completion": False, "pretty_exceptions_enable": False}
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

app = typer.Typer(cls=_Verbs, context_settings=_SETTINGS, **_SHAPE)  # type: ignore[arg-type]
_drill = typer.Typer(help="Break a job on purpose.", **_SHAPE)  # type: ignore[arg-type]
_trace = typer.Typer(help="Where the time of a step goes.", **_SHAPE)  # type: ignore[arg-type]


@app.callback(invoke_without_command=True)
def train_ledger(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Say which rank hung a training job, where in its code it stands, and what to run next.

    Exit status: 0 nothing wrong, 1 trouble found, 2 wrong usage or unreadable input, 3 cannot tell.
    """
    if version:
        from train_ledger import __version__

        typer.echo(f"train-ledger {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(ExitCode.BAD_INPUT)


_VERBS = (
    hang,
    stacks,
    dump,
    ask,
    diagnose,
    rank,
    coverage,
    slow,
    read,
    watch,
    respond,
    top,
    export,
    deploy,
    lint,
    nsys,
    backtest,
    gantt,
    runbook,
    postmortem,
    preflight,
    note,
    report,
    account,
    cost,
    demo,
)

_LIVING = (watch, top, export, demo)
"""They go on until they are ended, and show by themselves what they do."""

for _verb in _VERBS:
    app.command(_verb.__name__)(ends_well(_verb if _verb in _LIVING else with_progress(_verb)))
_drill.command("hang")(ends_well(drill_hang))
_drill.command("page")(ends_well(drill_page))
_drill.command("slow")(ends_well(drill_slow))
app.add_typer(_drill, name="drill")
_trace.command("breakdown")(ends_well(with_progress(trace_breakdown)))
_trace.command("diff")(ends_well(with_progress(trace_diff)))
_trace.command("take")(ends_well(trace_take))
_trace.command("memory")(ends_well(trace_memory))
_trace.command("nsys")(ends_well(with_progress(trace_nsys)))
app.add_typer(_trace, name="trace")


def main() -> None:
    """The command `train-ledger`."""
    sys.excepthook = crash
    hold_streams()
    for stream in (sys.stdout, sys.stderr):
        can_be_written(stream)
    typer.main.get_command(app)(prog_name="train-ledger")
