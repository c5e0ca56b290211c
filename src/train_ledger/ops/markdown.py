r"""How does a word from a log stand in Markdown without doing anything there?"""

from __future__ import annotations

import re

from train_ledger.answer import NextCommand
from train_ledger.render import Report, harmless
from train_ledger.render.figures import Figures, figures_lines
from train_ledger.render.report import Frames, Pair, Point, Row

__all__ = ["inert", "markdown_of"]

_ACTS = re.compile(r"[\\`*\[\]#|~$!]|(?<![^\W_])_|_(?![^\W_])|(?<=:)/(?=/)|(?<=\bwww)\.", re.IGNORECASE)
_OPENS_A_BLOCK = re.compile(r"(?:[-+=]|\d+(?=[.)]))")


def inert(value: object) -> str:
    r"""`value` on one line, with nothing in it that Markdown, HTML or a terminal would act on.

    >>> inert("[a](javascript:x) <b> _check_batch hang.rank_missing")
    '\\[a\\](javascript:x) &lt;b&gt; \\_check_batch hang.rank_missing'
    """
    text = " ".join(harmless(value).split())
    opening = _OPENS_A_BLOCK.match(text)
    escaped = _ACTS.sub(r"\\\g<0>", text.replace("&", "&amp;"))
    if opening:
        at = 0 if opening[0] in "-+=" else opening.end()
        escaped = f"{escaped[:at]}\\{escaped[at:]}"
    return escaped.replace("<", "&lt;").replace(">", "&gt;")


def markdown_of(report: Report) -> str:
    """A report as Markdown: the verdict as the title, then its sections, as inert as each of its words.

    Pictures are left out; tables of text and commands stand in indented blocks, which no word can end.
    """
    lines = [f"# {inert(report.verdict)}"]
    for section in report.sections:
        lines += ["", *([f"## {inert(section.heading)}", ""] if section.heading else [])]
        lines += [line for row in section.rows for line in _row(row)]
    told = [line for line, before in zip(lines, ["", *lines], strict=False) if line or before]
    return "\n".join(told).rstrip("\n") + "\n"


def _row(row: Row) -> list[str]:
    if isinstance(row, Pair):
        return [f"- {inert(f'{row.label}: {row.text}')}"]
    if isinstance(row, Point):
        return [f"- {inert(row.text)}"]
    if isinstance(row, Frames):
        return ["", *(f"    {line}" for line in row.lines), ""]
    if isinstance(row, Figures):
        return ["", *(f"    {line}" for line in figures_lines(row)), ""]
    if isinstance(row, NextCommand):
        return [f"- {inert(row.why)}:", "", f"      {harmless(row.command)}", ""]
    return []
