"""Every verb explains itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
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


def test_help_loads_none_of_the_rooms_that_do_the_work() -> None:
    program = (
        "import sys\n"
        "from train_ledger.cli import main\n"
        "sys.argv = ['train-ledger', 'hang', '--help']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "heavy = ('train_ledger.hang', 'train_ledger.dash', 'train_ledger.ops', 'train_ledger.ledger',\n"
        "  'train_ledger.sources', 'train_ledger.watch', 'train_ledger.chaos', 'msgspec', 'starlette',\n"
        "  'uvicorn', 'apprise', 'prometheus_client', 'psutil', 'torch')\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stderr == "[]\n"
