"""How is the name of a host shown, so that it pushes nothing off the screen?"""

from __future__ import annotations

from train_ledger.dash.page.markup import Safe, element

__all__ = ["host_cell"]

_WIDEST, _LEAST = 30, 8


def host_cell(name: str | None, **attributes: object) -> Safe:
    """A cell: whole where it fits; of a long name its end before the domain, by which such names differ."""
    if name is None or len(name) <= _WIDEST:
        return element("td", name or "–", **attributes)
    first = name.partition(".")[0]
    return element("td", "…", (first if len(first) > _LEAST else name)[-_WIDEST:], title=name, **attributes)
