"""Every verb explains itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from train_ledger import __version__
from train_ledger.cli import app

VERBS = {
    "hang",
    "stacks",
    "dump",
    "ask",
    "diagnose",
    "rank",
    "coverage",
    "slow",
    "read",
    "watch",
    "respond",
    "top",
    "export",
    "deploy",
    "gantt",
    "lint",
    "backtest",
    "postmortem",
    "preflight",
    "note",
    "report",
    "runbook",
    "account",
    "cost",
    "demo",
    "drill hang",
    "trace breakdown",
    "trace diff",
    "trace take",
    "trace memory",
    "trace nsys",
    "nsys",
    "drill page",
    "drill slow",
}


def _verbs(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every verb of the command line, those of groups too."""
    members = getattr(command, "commands", None)
    if members is None:
        yield " ".join(path), command
        return
    for name, member in members.items():
        yield from _verbs(member, (*path, name))


ALL = dict(_verbs(typer.main.get_command(app)))


def test_these_are_the_verbs() -> None:
    assert set(ALL) == VERBS


@pytest.mark.parametrize("verb", sorted(ALL))
def test_help_has_an_example_that_names_the_verb(verb: str) -> None:
    answer = CliRunner().invoke(app, [*verb.split(), "--help"])
    assert answer.exit_code == 0
    assert "Example:\n" in answer.stdout
    example = answer.stdout.split("Example:\n")[1].splitlines()[0]
    assert example.strip().startswith(f"train-ledger {verb}")


@pytest.mark.parametrize("verb", sorted(ALL))
def test_every_option_is_explained_and_json_is_one_of_them(verb: str) -> None:
    options = [it for it in ALL[verb].params if it.name != "help"]
    assert [it.name for it in options if not it.help] == []
    assert "--json" in [name for it in options for name in it.opts]


@pytest.mark.parametrize("verb", sorted(ALL))
def test_the_list_of_verbs_cuts_no_summary_short(verb: str) -> None:
    assert not ALL[verb].get_short_help_str(limit=57).endswith("...")


def test_the_version() -> None:
    answer = CliRunner().invoke(app, ["--version"])
    assert (answer.exit_code, answer.stdout) == (0, f"train-ledger {__version__}\n")


def test_without_a_verb_the_verbs_are_listed() -> None:
    answer = CliRunner().invoke(app, [])
    assert answer.exit_code == 2
    assert "Commands:" in answer.stdout


_LOADED = """
import sys
from train_ledger.cli import main
heavy = sys.argv.pop(1).split(",")
try:
    main()
except SystemExit as end:
    assert end.code in (0, 1, 3), end.code
print(*(name for name in heavy if name in sys.modules), file=sys.stderr)
"""
_ROOMS = ("hang", "dash", "ops", "ledger", "sources", "watch", "chaos", "slow", "signals", "render")
_SERVING = ("apprise", "asyncio", "http", "plotly", "prometheus_client", "ssl", "starlette", "uvicorn")
_WORK = ("msgspec", "numpy", "psutil", "rich", "torch", "yaml")


@pytest.mark.parametrize(
    ("arguments", "unused"),
    [
        ("--help", (*_ROOMS, *_SERVING, *_WORK)),
        ("hang --help", (*_ROOMS, *_SERVING, *_WORK)),
        ("hang dumps", ("ops", "dash", "ledger", "sources.logs", "signals", *_SERVING, "numpy", "psutil")),
        ("read run.log", ("ops", "dash", "hang", "watch", "signals", *_SERVING, "numpy")),
        ("diagnose .", ("watch", "dash.page", "signals", *_SERVING, "torch", "yaml")),
        ("top . --once", ("ops.diagnose", "watch.keeper", "hang", "signals", *_SERVING, "numpy", "yaml")),
    ],
)
def test_a_verb_loads_nothing_that_it_does_not_use(
    arguments: str, unused: Sequence[str], tmp_path: Path
) -> None:
    (tmp_path / "run.log").write_text("nothing of note\n")
    (tmp_path / "dumps").mkdir()
    (tmp_path / "dumps" / "rank_0").write_text("{}")
    rooms = [it for it in unused if it.partition(".")[0] in _ROOMS]
    names = ",".join([f"train_ledger.{it}" for it in rooms] + [it for it in unused if it not in rooms])
    program = [sys.executable, "-c", _LOADED, names, *arguments.split()]
    ended = subprocess.run(program, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "\n")
