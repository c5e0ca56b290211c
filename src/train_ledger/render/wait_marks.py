"""How do one who waits, and what is waited in, look in the drawings of waits?"""

from __future__ import annotations

from html import escape

from train_ledger.render.harmless import harmless
from train_ledger.render.picture import Node
from train_ledger.render.ranks import ranks_in_brief

__all__ = ["HEIGHT", "label_svg", "node_svg"]

HEIGHT = 44
"""Of a node, in pixels."""

_WHOLE = 400


def node_svg(node: Node, x: int, y: int, *, width: int, name: int, text: int) -> str:
    """A box with the node's ranks and words, cut to `name` and `text` letters; all ranks when pointed at."""
    kind = ' class="culprit"' if node.is_culprit else ""
    whole, short = ranks_in_brief(node.ranks, longest=_WHOLE), ranks_in_brief(node.ranks, longest=name)
    words = harmless("culprit" if node.is_culprit else node.text)
    return (
        f"<g{kind}><title>{escape(whole)}</title>"
        f'<rect x="{x}" y="{y}" width="{width}" height="{HEIGHT}" rx="5"/>'
        f'<text x="{x + 9}" y="{y + 18}">{escape(short)}</text>'
        f'<text class="dim" x="{x + 9}" y="{y + 35}">{escape(words[:text])}</text></g>\n'
    )


def label_svg(label: str, x: int, y: int, *, longest: int, kind: str = "dim label") -> str:
    """What is waited in, cut to `longest` letters; all of it when pointed at. `kind` is its classes."""
    whole = harmless(label)
    short = whole if len(whole) <= longest else f"{whole[: longest - 1]}…"
    title = f"<title>{escape(whole[:_WHOLE])}</title>"
    return f'<text class="{kind}" x="{x}" y="{y}">{title}{escape(short)}</text>\n'
