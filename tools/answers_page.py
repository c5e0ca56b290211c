"""Writes docs/answers.md from the records that the verbs answer with.

python tools/answers_page.py            writes it
python tools/answers_page.py --check    says by its exit status whether it is current

What is no record of its own is asked of the verb itself, on a small run made for it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import re
import sys
import tempfile
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path

from page import DOCS, WORDS, table, write_or_check
from typer.testing import CliRunner

from train_ledger.answer import HANG_KINDS, Diagnosis, HangAnswer
from train_ledger.chaos import fleet
from train_ledger.cli import app
from train_ledger.ledger.accounts import Accounts
from train_ledger.ledger.costs import Costs
from train_ledger.ledger.journal import Journal
from train_ledger.ops.coverage.records import Coverage
from train_ledger.ops.preflight.records import Preflight
from train_ledger.ops.rank.records import RankAnswer
from train_ledger.ops.weekly.weekly import Weekly

PAGE = DOCS / "answers.md"

_ANSWERS = {
    "hang": (HangAnswer, f"Kinds: {', '.join(f'`{kind}`' for kind in HANG_KINDS)}."),
    "diagnose": (
        Diagnosis,
        "Causes, and [what decides each](coverage.md#what-decides-each-cause); [states](states.md#states).",
    ),
    "slow": (Diagnosis, "What [diagnose](#diagnose) answers, with a [SlowAnswer](#slowanswer) as `details`."),
    "rank": (RankAnswer, ""),
    "coverage": (Coverage, ""),
    "account": (
        Accounts,
        "Besides: `wall_s`, the sum of `seconds`; `share`, the part of each category of it; `causes` of the\n"
        "interruptions, with how many and which share ([what the categories are](accounts.md)).",
    ),
    "cost": (Costs, ""),
    "report": (Weekly, ""),
    "preflight": (Preflight, "Besides: `verdict` of the whole and of each item."),
}
_OTHERS = {
    "top": ("--once", "RUN"),
    "respond": ("--dry-run", "RUN"),
    "postmortem": ("RUN",),
    "backtest": ("RUN",),
    "lint": ("--run", "RUN"),
    "runbook": ("TrainingStepStalled", "--run", "RUN"),
    "stacks": ("--from", "RUN/stacks"),
    "export": ("--once", "RUN"),
    "note": ("RUN", "seen"),
}
_ELSEWHERE = ("slow",)
_STACK = 'Current thread 0x00007f0000000001 (most recent call first):\n  File "train.py", line 3 in step\n'
_VERB_OF = {record.__name__: verb for verb, (record, _) in _ANSWERS.items() if verb not in _ELSEWHERE}
_SAYS: Mapping[typing.Any, tuple[str, str]] = {
    int: ("whole number", "whole numbers"),
    float: ("number", "numbers"),
    str: ("text", "texts"),
    bool: ("true or false", "truths"),
    type(None): ("null", "nulls"),
    typing.Any: ("anything", "anything"),
}
"""Each in the singular and in the plural."""


def page() -> str:
    """The whole page."""
    met: dict[str, type] = {}
    verbs = [_verb(verb, record, besides, met) for verb, (record, besides) in _ANSWERS.items()]
    schema, others = _others()
    return (
        (WORDS / "answers.md")
        .read_text(encoding="utf-8")
        .format(
            schema=schema, verbs="\n".join(verbs), others=others, records="\n".join(_records(met)).rstrip()
        )
    )


def _verb(verb: str, record: type, besides: str, met: dict[str, type]) -> str:
    keys = "" if verb in _ELSEWHERE else f"{_doc(record)}\n\n{_keys(record, met)}"
    said = f"{besides}\n" if besides else ""
    return f"## {verb}\n\n" + "\n".join(filter(None, (keys, said)))


def _doc(record: type) -> str:
    return re.sub(r"\bNone\b", "null", inspect.cleandoc(record.__doc__ or ""))


def _keys(record: type, met: dict[str, type]) -> str:
    hints = typing.get_type_hints(record)
    fields = dataclasses.fields(record)  # type: ignore[arg-type]
    return table(("key", "is"), ((f"`{it.name}`", _is(hints[it.name], met)) for it in fields))


def _records(met: dict[str, type]) -> Iterator[str]:
    """A section for each record that stands within another one; those are met as they are told."""
    told: dict[str, str] = {}
    while left := set(met) - set(told) - set(_VERB_OF):
        for name in left:
            told[name] = f"### {name}\n\n{_doc(met[name])}\n\n{_keys(met[name], met)}"
    return (told[name] for name in sorted(told))


def _is(hint: typing.Any, met: dict[str, type], *, many: bool = False) -> str:
    """A type in the words of JSON; records that are met on the way are put into `met`.

    >>> _is(tuple[int, ...] | None, {}), _is(Mapping[int, float], {})
    ('list of whole numbers or null', 'object of numbers')
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_is(it, met, many=many) for it in arguments)
    if origin is typing.Literal:
        return ", ".join(json.dumps(it) for it in arguments)
    if origin is tuple:
        return _of_tuple(arguments, met, "lists" if many else "list")
    if inspect.isclass(origin) and issubclass(origin, Mapping):
        return f"{'objects' if many else 'object'} of {_is(arguments[1], met, many=True)}"
    if dataclasses.is_dataclass(hint):
        met[hint.__name__] = typing.cast("type", hint)
        return f"[{hint.__name__}](#{_VERB_OF.get(hint.__name__, hint.__name__).lower()})"
    return _SAYS[hint][many]


def _of_tuple(arguments: tuple[typing.Any, ...], met: dict[str, type], word: str) -> str:
    if arguments[-1] is Ellipsis:
        return f"{word} of {_is(arguments[0], met, many=True)}"
    return f"{word}: {', '.join(_is(it, met) for it in arguments)}"


def _others() -> tuple[int, str]:
    """The schema, and a row for each verb of which no record tells the keys."""
    rows, schema = [], 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        _write(Path("RUN"))
        for verb, arguments in sorted(_OTHERS.items()):
            told = CliRunner().invoke(app, [verb, *arguments, "--json"])
            schema, *_ = (values := json.loads(told.stdout)).values()
            keys = " ".join(f"`{key}`" for key in values if key != "schema")
            rows.append(f"| `{verb}` | {keys} |")
    return schema, "\n".join(rows)


def _write(run: Path) -> None:
    """A run of two ranks that hang, with an incident and a stack."""
    fleet.write(run, hosts=1, ranks_per_host=2, steps=60, checkpoint_every=10, fault="hang")
    (run / "stacks").mkdir(exist_ok=True)
    (run / "stacks" / "rank_0.txt").write_text(_STACK)
    book = Journal(run / "ledger" / "journal.jsonl")
    book.append({"t": 1_800_000_000.0, "kind": "incident_opened", "incident": "i-1", "alert": "GpuLost"})
    book.close()


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page(), sys.argv[1:]))
