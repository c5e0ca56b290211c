"""`train-ledger runbook`: what does a person do about an alert?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.options import Json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from train_ledger.ops.runbook import Book, CardLine, Places, Section
    from train_ledger.run_dir import RunDir

__all__ = ["runbook"]


def runbook(
    alert: Annotated[
        str | None, typer.Argument(metavar="[ALERT]", help="Which alert; a list of all if none.")
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN", help="Fill in this run's paths, hosts, ranks and contacts.", show_default=False
        ),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST",
            help="The host in question; may be repeated. Else the journal's.",
            show_default=False,
        ),
    ] = None,
    rank: Annotated[
        list[int] | None,
        typer.Option(
            metavar="RANK", min=0, help="The rank in question; may be repeated.", show_default=False
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            metavar="en|zh-CN", help="Language; else that of the terminal's locale.", show_default=False
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Say what to do about an alert, in commands to paste.

    What it means, five minutes of checks, what usually ends it, when it is no longer yours alone, and where
    the dashboard shows it. With --run the commands name this run's own directory, and the hosts and ranks of
    the newest verdict in its journal; and a card says where its dumps and logs lie, how it is restarted, and
    who is called.

    \b
    Example:
      train-ledger runbook
      train-ledger runbook GpuXidError --run runs/r42
      train-ledger runbook TrainingStepStalled --run runs/r42 --host node037 --language zh-CN
    """
    from train_ledger.cli.output import show
    from train_ledger.ops.runbook import card
    from train_ledger.render import as_json
    from train_ledger.run_dir import RunDir

    book = _book(language)
    section = _section(book, alert) if alert is not None else None
    run_dir = None if run is None else RunDir.existing(run)
    places = _places(run_dir, section, tuple(host or ()), tuple(rank or ()))
    lines = () if run_dir is None else card(run_dir)
    if json:
        show(as_json(_answer(book, section, places, lines)))
    else:
        show("\n".join(_told(book, section, places, lines)))
    return ExitCode.NOTHING_WRONG


def _book(language: str | None) -> Book:
    import os

    from train_ledger.cli.leave import BadInputError
    from train_ledger.ops.runbook import LANGUAGES, language_of, runbook

    chosen = language or language_of(os.environ)
    known = {name.lower(): name for name in LANGUAGES}
    if chosen.lower() not in known:
        raise BadInputError(f"there is no runbook in {chosen!r}; there are {', '.join(LANGUAGES)}")
    return runbook(known[chosen.lower()])


def _section(book: Book, alert: str) -> Section:
    from train_ledger.cli.leave import BadInputError

    section = book.section(alert)
    if section is None:
        meant = book.alike(alert)
        hint = f"; did you mean {' or '.join(meant)}?" if meant else "; `train-ledger runbook` lists them"
        raise BadInputError(f"no alert is called {alert!r}{hint}")
    return section


def _places(
    run_dir: RunDir | None, section: Section | None, hosts: tuple[str, ...], ranks: tuple[int, ...]
) -> Places:
    from train_ledger.cli.leave import BadInputError
    from train_ledger.ops.hosts import is_host
    from train_ledger.ops.runbook import Places, places_of

    for host in hosts:
        if not is_host(host):
            raise BadInputError(f"{host!r} is no name of a host")
    told = Places() if run_dir is None else places_of(run_dir, section.alert if section else None)
    return Places(told.run, hosts or told.hosts, ranks or told.ranks, told.not_read)


def _told(book: Book, section: Section | None, places: Places, card: tuple[CardLine, ...]) -> Iterator[str]:
    from train_ledger.render import harmless

    if section is None:
        yield from _all(book)
    else:
        yield from _one(section, places)
    if places.not_read:
        yield ""
        yield f"not observed: hosts and ranks in question: {harmless(places.not_read)}"
    if card:
        yield ""
        yield from _card(card)


def _all(book: Book) -> Iterator[str]:
    width = max(map(len, book.sections))
    for level in ("page", "record"):
        yield level
        for section in book.sections.values():
            if section.level == level:
                yield f"  {section.alert:<{width}}  {_short(section.means)}"


_LONGEST_MEANING = 90


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_MEANING else text[: _LONGEST_MEANING - 1].rstrip() + "…"


def _one(section: Section, places: Places) -> Iterator[str]:
    from train_ledger.ops.runbook import filled, unfilled

    text = filled(section.text, places)
    yield f"{section.alert}"
    yield ""
    for line in text.splitlines():
        if line.strip() not in ("```sh", "```"):
            yield line.replace("**", "")
    if unknown := unfilled(text):
        yield ""
        yield f"{', '.join(unknown)}: put in by hand what the message names, or give --run, --host, --rank."


def _card(card: tuple[CardLine, ...]) -> Iterator[str]:
    from train_ledger.render import harmless

    width = max(len(line.what) for line in card)
    for line in card:
        said = f"not given: {line.wanted}" if line.value is None else harmless(line.value)
        yield f"{harmless(line.what):<{width}}  {said}"


def _answer(
    book: Book, section: Section | None, places: Places, card: tuple[CardLine, ...]
) -> dict[str, Any]:
    from dataclasses import asdict

    from train_ledger.ops.runbook import filled

    chosen = book.sections.values() if section is None else (section,)
    return {
        "language": book.language,
        "alerts": [{**asdict(it), "text": filled(it.text, places)} for it in chosen],
        "card": [asdict(line) for line in card],
        "not_observed": [places.not_read] if places.not_read else [],
    }
