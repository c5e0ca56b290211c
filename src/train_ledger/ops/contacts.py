"""Who is to be told of a run, as its run.json names them?

`contacts` is a text, a list of texts, or a table of roles with either for each. A number is one that is rung.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Contact", "contacts_of"]


class Contact(NamedTuple):
    """Who has a role, in the order in which they stand there; nobody where it is left empty.

    `role` is None where run.json tells none. Both are as somebody wrote them, not made harmless.
    """

    role: str | None
    names: tuple[str, ...]


def contacts_of(run: Mapping[str, object]) -> tuple[Contact, ...]:
    """The contacts of a run.json; () where it names nobody and no role.

    >>> contacts_of({"contacts": {"on call": ["Ada", "555"], "second line": " "}})
    (Contact(role='on call', names=('Ada', '555')), Contact(role='second line', names=()))
    """
    told = run.get("contacts")
    if isinstance(told, Mapping):
        return tuple(Contact(str(role), _names(who)) for role, who in told.items())
    names = _names(told)
    return (Contact(None, names),) if names else ()


def _names(who: object) -> tuple[str, ...]:
    if isinstance(who, list):
        return tuple(name for it in who for name in _names(it))
    is_one = isinstance(who, str | int) and not isinstance(who, bool)
    name = str(who).strip() if is_one else ""
    return (name,) if name else ()
