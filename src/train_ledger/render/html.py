"""How does an answer look as one file that can be sent to a colleague?

No font, no picture and no address is loaded, and no script runs but the one that puts a button beside each
command: the page says so itself by its content security policy. It follows the reader's light or dark setting
and prints.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape

from train_ledger.answer import Diagnosis, HangAnswer
from train_ledger.render.drawing import STYLE, graph_svg, lanes_html, table_html
from train_ledger.render.harmless import harmless
from train_ledger.render.layout import report_of
from train_ledger.render.picture import Graph, Lanes, Picture, Table
from train_ledger.render.report import Frames, Pair, Point, Report, Row, Section
from train_ledger.render.strip import STYLE as STRIP_STYLE
from train_ledger.render.strip import Strip, strip_html

__all__ = ["as_html"]

_SCRIPT = """
for (const command of document.querySelectorAll("pre.command")) {
  const button = document.createElement("button");
  button.textContent = "copy";
  button.onclick = async () => {
    try { await navigator.clipboard.writeText(command.textContent); button.textContent = "copied"; }
    catch { getSelection().selectAllChildren(command); button.textContent = "selected"; }
  };
  command.before(button);
}
"""
"""Without it the page is whole, too: a click selects a command."""
_DIGEST = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
_POLICY = (
    f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_DIGEST}'; "
    "base-uri 'none'; form-action 'none'"
)

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --dim: #59636e; --rule: #d1d9e0;
  --well: #f3f5f7; --trouble: #b3261e; --fine: #1a6e2e; --unsure: #805600; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171a; --ink: #e3e6e9; --dim: #9aa4ae;
  --rule: #343b42; --well: #1e2328; --trouble: #ff8a80; --fine: #7bd88f; --unsure: #f2c14e; } }
body { margin: 2rem auto; max-width: 66rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; border-left: .3rem solid; padding-left: .7rem; }
h1.trouble { color: var(--trouble); } h1.fine { color: var(--fine); } h1.unsure { color: var(--unsure); }
h2 { font-size: 1rem; margin: 1.5rem 0 .3rem; border-bottom: 1px solid var(--rule); }
dl { display: grid; grid-template-columns: 6rem 1fr; gap: .2rem 1.2rem; margin: .6rem 0; }
dt { color: var(--dim); } dd { margin: 0; }
ul { margin: .3rem 0; padding-left: 1.2rem; }
.why { margin: .6rem 0 .2rem; color: var(--dim); }
pre { margin: 0 0 .6rem; padding: .5rem .7rem; background: var(--well); border: 1px solid var(--rule);
  border-radius: 4px; overflow-x: auto; white-space: pre; font: 14px/1.4 ui-monospace, monospace; }
pre.command { user-select: all; } button { float: right; font: inherit; font-size: .8rem; margin: .35rem; }
footer { margin-top: 2rem; color: var(--dim); font-size: .85rem; }
@media print { button { display: none; }
  :root { --paper: #fff; --ink: #000; --dim: #444; --well: #fff; } body { margin: 0; }
  pre { white-space: pre-wrap; } section { break-inside: avoid; } }
"""


def as_html(
    answer: HangAnswer | Diagnosis | Report,
    *,
    title: str = "",
    currency: str = "",
    picture: Picture | None = None,
) -> str:
    """The answer as a whole page; `title` says what it is about, the run or the dumps."""
    report = report_of(answer, currency=currency, picture=picture, drawn=True)
    name = escape(harmless(" – ".join(part for part in (title, report.verdict) if part)))
    about = f"<p>{escape(harmless(title))}</p>\n" if title else ""
    body = "\n".join(_section(section) for section in report.sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{name}</title>\n<style>{_STYLE}{STYLE}{STRIP_STYLE}</style>\n</head>\n<body>\n<main>\n{about}"
        f'<h1 class="{report.tone}">{escape(report.verdict)}</h1>\n{body}\n</main>\n'
        f"<footer>train-ledger</footer>\n<script>{_SCRIPT}</script>\n</body>\n</html>\n"
    )


def _section(section: Section) -> str:
    heading = f"<h2>{escape(section.heading)}</h2>\n" if section.heading else ""
    return f"<section>\n{heading}{_rows(section.rows)}\n</section>"


def _rows(rows: Sequence[Row]) -> str:
    body = "\n".join(_row(row) for row in rows)
    if all(isinstance(row, Pair) for row in rows):
        return f"<dl>\n{body}\n</dl>"
    return f"<ul>\n{body}\n</ul>" if all(isinstance(row, Point) for row in rows) else body


def _row(row: Row) -> str:
    if isinstance(row, Pair):
        return f"<dt>{escape(row.label)}</dt><dd>{escape(row.text)}</dd>"
    if isinstance(row, Point):
        return f"<li>{escape(row.text)}</li>"
    if isinstance(row, Frames):
        title = f'<p class="why">{escape(row.title)}</p>\n' if row.title else ""
        return f"{title}<pre>{escape(chr(10).join(row.lines))}</pre>"
    if isinstance(row, Table):
        return table_html(row)
    if isinstance(row, Lanes):
        return lanes_html(row)
    if isinstance(row, Graph):
        return graph_svg(row)
    if isinstance(row, Strip):
        return strip_html(row)
    return f'<p class="why">{escape(row.why)}</p>\n<pre class="command">{escape(row.command)}</pre>'
