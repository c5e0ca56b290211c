"""How does text become HTML that does nothing but be read?

Whatever is not `Safe` is escaped, and made harmless as for a terminal, on its way into an element. So a value
from a log cannot come onto the page as markup, whoever forgets what.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape

from train_ledger.render import harmless
from train_ledger.render.drawing import lanes_html, table_html
from train_ledger.render.picture import Graph, Lanes, Table
from train_ledger.render.wait_drawing import graph_svg

__all__ = [
    "Child",
    "Safe",
    "drawn",
    "element",
    "join",
    "lines",
    "moment",
    "pairs",
    "scrolling",
    "table",
    "whole",
]

_LONGEST = 100_000
_LAYERS = 3
"""Of a drawing that is still readable where it is drawn smaller, to fit a wide screen."""
_VOID = frozenset({"meta", "link", "meter", "rect", "br"})


class Safe(str):
    """HTML made here; nothing else makes one."""

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


def moment(t: float | None, *, age: bool = True, day: bool = False) -> Safe:
    """A moment; the script turns it into how long ago that was, where `age` is set. `day`: with its day."""
    if t is None:
        return join(["–"])
    try:
        at = datetime.fromtimestamp(t, UTC)
    except (OverflowError, OSError, ValueError):
        return join([f"{t:g}"])
    return element(
        "time",
        f"{at:%m-%d %H:%MZ}" if day else f"{at:%H:%M:%SZ}",
        datetime=at.isoformat(timespec="seconds"),
        data_t=t if age else None,
        title=f"{at:%Y-%m-%d %H:%M:%S} UTC",
    )


def lines(texts: Iterable[str], *, longest: int) -> Safe:
    """Lines of code under each other, each cut after `longest` characters."""
    return Safe("\n".join(escape(harmless(text, longest=longest)) for text in texts))


def pairs(facts: Iterable[tuple[str, Child]]) -> Safe:
    """Names and what holds for them."""
    return element("dl", *(join((element("dt", name), element("dd", value))) for name, value in facts))


def drawn(picture: Table | Graph | Lanes, name: str) -> Safe:
    """As the reports draw it; render escapes every word of it."""
    kind = "scroll drawn"
    if isinstance(picture, Graph):
        html = graph_svg(picture)
        kind += " fits" * all(node.layer < _LAYERS for node in picture.nodes)
    else:
        html = table_html(picture) if isinstance(picture, Table) else lanes_html(picture)
    return element("div", Safe(html), **{**scrolling(name), "class_": kind})


def scrolling(name: str) -> dict[str, object]:
    """The attributes of a box that scrolls."""
    return {"class_": "scroll", "tabindex": 0, "role": "region", "aria_label": name}


def _heading(heading: str) -> Safe:
    """Over a column whose words speak for themselves stands nothing, which is no heading either."""
    return element("th", heading, scope="col") if heading else element("td")


def table(
    headings: Iterable[str], rows: Iterable[Safe], name: str = "table", *, stacked: bool = False
) -> Safe:
    """A table in a box that scrolls, by keyboard too; `name` is what a screen reader calls the box.

    On a phone the rows of a `stacked` one are paragraphs: a cell of the class `whole` has a line of its own,
    and before others stands what they are `data_of`.
    """
    head = element("thead", element("tr", *map(_heading, headings)))
    shown = element("table", head, element("tbody", *rows), class_="stacked" if stacked else None)
    return element("div", shown, **scrolling(name))
