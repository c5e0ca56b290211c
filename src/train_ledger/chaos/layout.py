"""Over which groups of ranks does the drill's job spread its model?

A layout is written as trainers write it, "dp=2,tp=2,pp=2"; ranks are laid out tensor-parallel fastest, then
data-parallel, then by pipeline stage.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GROUPS", "Layout", "LayoutError", "layout_for", "read_layout"]

GROUPS = ("world", "tp", "dp", "pp")
_DIMENSIONS = ("dp", "tp", "pp")
_MOST_TP = 4  # the drill's model has four heads


class LayoutError(ValueError):
    """A layout that cannot be had; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How many ranks share in each dimension.

    >>> str(Layout(dp=2, tp=2)), Layout(dp=2, tp=2).ranks
    ('dp=2,tp=2,pp=1', 4)
    """

    dp: int = 1
    tp: int = 1
    pp: int = 1

    @property
    def ranks(self) -> int:
        return self.dp * self.tp * self.pp

    def size_of(self, group: str) -> int:
        """How many ranks a group of that name has."""
        return self.ranks if group == "world" else int(getattr(self, group))

    def __str__(self) -> str:
        return f"dp={self.dp},tp={self.tp},pp={self.pp}"


def read_layout(text: str) -> Layout:
    """The layout that `text` stands for; raises LayoutError where it stands for none.

    >>> read_layout("tp=2, pp=2")
    Layout(dp=1, tp=2, pp=2)
    """
    sizes: dict[str, int] = {}
    for part in text.split(","):
        name, _, size = (it.strip() for it in part.partition("="))
        if name not in _DIMENSIONS or name in sizes or not (size.isdecimal() and 1 <= int(size) <= 64):
            raise LayoutError(f"layout {text!r}: write it as dp=2,tp=2,pp=2, each once and 1 to 64")
        sizes[name] = int(size)
    layout = Layout(**sizes)
    if layout.tp > _MOST_TP or layout.tp == 3:
        raise LayoutError(f"layout {text!r}: tp is 1, 2 or 4, for the drill's model has four heads")
    return layout


def layout_for(ranks: int, group: str) -> Layout:
    """A layout of that many ranks in which `group` has two or more; raises LayoutError where there is none.

    >>> str(layout_for(8, "tp")), str(layout_for(4, "world")), str(layout_for(4, "pp"))
    ('dp=2,tp=2,pp=2', 'dp=2,tp=2,pp=1', 'dp=2,tp=1,pp=2')
    """
    if ranks % 8 == 0:
        return Layout(dp=ranks // 4, tp=2, pp=2)
    if ranks % 2:
        raise LayoutError(
            f"{ranks} ranks cannot be halved into groups; take an even number, or give --layout"
        )
    if group == "pp":
        return Layout(dp=ranks // 2, pp=2)
    return Layout(dp=ranks // 2, tp=2) if ranks > 2 or group != "dp" else Layout(dp=2)
