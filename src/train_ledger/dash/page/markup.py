"""How does text become HTML that does nothing but be read?

Whatever is not `Safe` is escaped, and made harmless as for a terminal, on its way into an element. So a value
from a log cannot come onto the page as markup, whoever forgets what.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape

from train_ledger.render import harmless

__all__ = ["Child", "Safe", "element", "join", "moment", "scrolling", "table", "whole"]

_LONGEST = 100_000
_VOID = frozenset({"meta", "link", "meter", "rect", "br"})


class Safe(str):
    """HTML made by `element` or `join`; nothing else makes one."""

    __slots__ = ()


Child = Safe | str | int | float | None


def element(name: str, /, *children: Child, **attributes: object) -> Safe:
    """One element; an attribute `class_` is `class`, `data_t` is `data-t`; None or False leaves it out.

    >>> element("td", "<script>", class_="host", title=None)
    '<td class="host">&lt;script&gt;</td>'
    """
    shown = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID and not children:
        return Safe(f"<{name}{shown}>")
    return Safe(f"<{name}{shown}>{join(children)}</{name}>")


def whole(text: str) -> Safe:
    """The text however long it is: half a command would be another command."""
    return Safe(escape(harmless(text, longest=_LONGEST)))


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(harmless(value, longest=_LONGEST))}"'


def join(children: Iterable[Child]) -> Safe:
    """The children one after the other."""
    return Safe(
        "".join(
            child if isinstance(child, Safe) else escape(harmless(child))
            for child in children
            if child is not None
        )
    )


def moment(t: float | None, *, age: bool = True) -> Safe:
    """A moment; the script turns it into how long ago that was, where `age` is set."""
    if t is None:
        return join(["–"])
    try:
        at = datetime.fromtimestamp(t, UTC)
    except (OverflowError, OSError, ValueError):
        return join([f"{t:g}"])
    return element(
        "time",
        f"{at:%H:%M:%SZ}",
        datetime=at.isoformat(timespec="seconds"),
        data_t=t if age else None,
        title=f"{at:%Y-%m-%d %H:%M:%S} UTC",
    )


def scrolling(name: str) -> dict[str, object]:
    """The attributes of a box that scrolls."""
    return {"class_": "scroll", "tabindex": 0, "role": "region", "aria_label": name}


def table(headings: Iterable[str], rows: Iterable[Safe], name: str = "table") -> Safe:
    """A table in a box that scrolls, by keyboard too; `name` is what a screen reader calls the box."""
    head = element("thead", element("tr", *(element("th", heading, scope="col") for heading in headings)))
    return element("div", element("table", head, element("tbody", *rows)), **scrolling(name))
