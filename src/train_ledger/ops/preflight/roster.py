"""Is there somebody to be woken, and does that person find what to do? (item 13)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from train_ledger.config import Config
from train_ledger.ops.contacts import contacts_of
from train_ledger.ops.preflight.records import Check, failed, not_possible, passed
from train_ledger.render import harmless

__all__ = ["roster_checks"]

_NOBODY = "run.json names nobody to be called"
_CARD = ("restart_command", "exclude_file")


def roster_checks(
    run: Mapping[str, Any] | None, config: Config, page_came: bool | None, was_rung: bool
) -> Iterator[Check]:
    """`page_came`: whether the drill passed, None where it was not run; `was_rung`: with real receivers."""
    if run is None:
        yield not_possible(
            "contacts", "without RUN nobody's contacts are known", "train-ledger preflight RUN"
        )
    else:
        yield _contacts(run)
        yield _card(run)
        yield _receivers(config)
    yield _tested(page_came, was_rung)


def _contacts(run: Mapping[str, Any]) -> Check:
    contacts = contacts_of(run)
    empty = [it.role for it in contacts if not it.names]
    if not contacts or empty:
        said = f"run.json names nobody as {', '.join(map(harmless, empty))}" if empty else _NOBODY
        return failed("contacts", said, 'contacts in run.json, as {"on call": "…", "second line": "…"}')
    return passed("contacts", f"{sum(len(it.names) for it in contacts)} in run.json")


def _card(run: Mapping[str, Any]) -> Check:
    """What the runbook's commands are filled in with."""
    missing = [name for name in _CARD if not run.get(name)]
    if missing:
        said = f"the runbook's commands lack {' and '.join(missing)}: run.json does not say"
        return failed("runbook", said, "give them to start(), or put them into run.json")
    return passed("runbook", f"run.json says {' and '.join(_CARD)}; train-ledger runbook fills them in")


def _receivers(config: Config) -> Check:
    told = len(config.notify.urls) + bool(config.notify.command)
    if not told:
        where = config.file or "train-ledger.toml"
        return failed(
            "receivers",
            f"{where}: [notify] names no urls and no command: nobody would be told",
            "name whom to tell: docs/configuration.md",
        )
    return passed("receivers", f"[notify] names {told}")


def _tested(page_came: bool | None, was_rung: bool) -> Check:
    if page_came is None:
        return not_possible("page path", "the item page was left out", "train-ledger drill page --configured")
    if not page_came:
        return failed("page path", "the page did not come as it should: see the item page", "see there")
    if not was_rung:
        why = "the page came, to the drill's own receiver: whether a pager rings was not tried"
        return not_possible(
            "page path", why, "train-ledger preflight RUN --ring tells those whom [notify] names"
        )
    return passed("page path", "the page came to those whom [notify] names, too, and they took it")
