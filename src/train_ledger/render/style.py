"""How does every page look, on a wide screen and a narrow one, in the light, in the dark and on paper?

One stylesheet, written into each file. Kinds of time have a colour that is told apart in grey by its
lightness, and a letter where there is room for one.
"""

from __future__ import annotations

__all__ = ["DARK_KINDS", "KINDS", "STYLE"]

KINDS = (
    "#2e7d4f", "#e6b34d", "#2f6ea8", "#b9a3d8", "#96316a",
    "#c9403a", "#5a646e", "#c3cad1", "#57b8c2", "#75521f",
)  # fmt: skip
"""The colour of each kind of a bar or strip, in the order of kinds: dark and light by turns."""
DARK_KINDS = frozenset((0, 2, 4, 5, 6, 9))
"""Those on which a letter is white."""

_SCREEN = """
:root { color-scheme: light dark; --paper: #fbfbfa; --ink: #1b1f24; --dim: #59636e; --rule: #d7dce0;
  --well: #f1f3f4; --trouble: #b3261e; --fine: #1a6e2e; --unsure: #805600; --accent: #2b5c8a;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, monospace; }
@media (prefers-color-scheme: dark) { :root { --paper: #111417; --ink: #e4e7ea; --dim: #9aa4ae;
  --rule: #333b43; --well: #1e242a; --trouble: #ff8a80; --fine: #7bd88f; --unsure: #f2c14e;
  --accent: #8ec1f0; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 68rem; padding: 1.2rem 1.25rem 2rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  overflow-wrap: anywhere; }
header p { margin: 0; color: var(--dim); font-size: .9rem; } header .about b { color: var(--ink); }
h1 { font-size: clamp(1.3rem, 1rem + 1.4vw, 1.75rem); line-height: 1.25; margin: .4rem 0 .6rem;
  border-left: .35rem solid; padding-left: .8rem; }
h1.trouble::before { content: "✖ " / ""; } h1.fine::before { content: "✔ " / ""; }
h1.unsure::before { content: "? " / ""; }
h1.trouble { color: var(--trouble); } h1.fine { color: var(--fine); } h1.unsure { color: var(--unsure); }
h2 { font-size: 1rem; margin: 1.6rem 0 .4rem; border-bottom: 1px solid var(--rule); }
dl { display: grid; grid-template-columns: minmax(6rem, max-content) minmax(0, 1fr); gap: .2rem 1.2rem;
  margin: .6rem 0; }
dt { color: var(--dim); max-width: 16rem; } dd { margin: 0; }
ul { margin: .3rem 0; padding-left: 1.2rem; }
.why { margin: .6rem 0 .2rem; color: var(--dim); }
pre { margin: 0 0 .6rem; padding: .5rem .7rem; background: var(--well); border: 1px solid var(--rule);
  border-radius: 4px; overflow-x: auto; white-space: pre; font: 14px/1.4 var(--mono); }
pre.command { user-select: all; } button { float: right; font: inherit; font-size: .8rem; margin: .35rem; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
footer { margin-top: 2.4rem; padding-top: .6rem; border-top: 1px solid var(--rule); color: var(--dim);
  font-size: .85rem; }
footer p { margin: .2rem 0; } code { font-family: var(--mono); font-size: .95em; }
"""

_TABLES = """
.scroll { overflow-x: auto; margin: .6rem 0; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--dim); padding-bottom: .3rem; overflow-wrap: normal; }
caption span { display: inline-block; position: sticky; left: 0; max-width: min(64rem, 100vw - 2.5rem); }
th, td { border: 1px solid var(--rule); padding: .3rem .5rem; text-align: left; vertical-align: top;
  overflow-wrap: normal; }
th { font-weight: 600; background: var(--well); } th.culprit { color: var(--trouble); }
td.figure, th.figure { text-align: right; white-space: nowrap; }
table.numbers th, table.numbers td, table.lanes th, table.lanes td { min-width: 5rem; }
table.figures td, table.figures th { border-width: 0 0 1px; }
tr.here th, tr.here td { border-top: 2px solid var(--ink); border-bottom: 2px solid var(--ink); }
td.done { color: var(--dim); } td.odd, td.absent { color: var(--trouble); font-weight: 600; }
td.unknown { color: var(--unsure); } td.pending { border-left: 3px solid var(--unsure); }
td.none { background: var(--well); border-style: none; }
table.numbers th[scope=row], table.lanes th[scope=row] { position: sticky; left: 0; }
table.lanes { font-size: .75rem; } table.lanes td { min-width: 8.5rem; max-width: 11rem;
  overflow-wrap: anywhere; }
"""

_PICTURES = """
svg { display: block; font: 13px system-ui, sans-serif; }
svg.graph rect { fill: var(--well); stroke: var(--rule); }
svg .culprit rect { stroke: var(--trouble); stroke-width: 2; }
svg text { fill: var(--ink); } svg .culprit text { fill: var(--trouble); } svg text.dim { fill: var(--dim); }
svg.graph path { fill: none; stroke: var(--dim); stroke-width: 1.5; }
svg.graph path.circle { stroke: var(--trouble); }
svg text.label { font-size: 11px; text-anchor: end; paint-order: stroke; stroke: var(--paper);
  stroke-width: 6px; stroke-linejoin: round; }
svg.graph marker path { fill: var(--dim); stroke: none; }
svg.graph.column { display: none; } svg text.label.above { text-anchor: start; }
figure { margin: .8rem 0; } figcaption { color: var(--dim); font-size: .9rem; margin-bottom: .3rem; }
.bar { display: grid; grid-template-columns: minmax(4rem, 9rem) minmax(0, 1fr) 6.5rem;
  gap: .1rem .7rem; align-items: center; margin: .15rem 0; font-size: .85rem; }
.bar .told { font-variant-numeric: tabular-nums; text-align: right; }
.bar.culprit .name { color: var(--trouble); font-weight: 600; }
svg.strip, svg.parts { width: 100%; height: 30px; } svg.parts { height: 22px; }
svg.parts rect { stroke: var(--paper); stroke-width: 1; }
svg.strip text, svg.parts text { font-size: 12px; text-anchor: middle; fill: #1b1f24; }
svg.strip text.on, svg.parts text.on { fill: #fff; }
p.key { font-size: .85rem; margin: .3rem 0; } p.key span span, p.key i { margin-right: .2rem; }
p.key > span { margin-right: 1rem; white-space: nowrap; display: inline-block; }
p.key svg { display: inline-block; vertical-align: -1px; margin-right: .35rem; }
svg.curve { width: 100%; height: 220px; overflow: visible; }
svg.curve path { fill: none; stroke-width: 2; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
p.key path { fill: none; stroke-width: 2; }
.c-plain { stroke: var(--ink); } .c-culprit { stroke: var(--trouble); }
.c-second { stroke: var(--unsure); stroke-dasharray: 6 3; }
.c-third { stroke: var(--fine); stroke-dasharray: 2 3; }
.c-peers { stroke: var(--accent); stroke-dasharray: 7 3; }
svg.curve path.c-band, svg .c-band { fill: var(--accent); stroke: none; opacity: .22; }
svg.curve line { stroke: var(--rule); } svg.curve line.mark { stroke: var(--ink); stroke-dasharray: 4 3; }
svg.curve text { font-size: 12px; fill: var(--dim); paint-order: stroke;
  stroke: var(--paper); stroke-width: 4px; }
svg.curve text.mark { fill: var(--ink); }
"""

_NARROW = """
@media (max-width: 40rem) { .beside { display: none; }
  svg.graph.column { display: block; max-width: 100%; height: auto; margin: .6rem 0; }
  dl { display: block; } dd { margin-bottom: .35rem; }
  dt { float: left; clear: left; max-width: none; margin-right: .7rem; }
  .bar { grid-template-columns: minmax(0, 1fr) max-content; margin: .4rem 0; }
  .bar svg { grid-row: 2; grid-column: 1 / -1; }
  button { min-height: 2.25rem; min-width: 3.75rem; margin: .1rem 0 0 .5rem; }
  .scroll.wide { overflow-x: visible; } .scroll.wide table, .scroll.wide tbody, .scroll.wide tr,
  .scroll.wide caption { display: block; }
  .scroll.wide thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .scroll.wide tr { border-bottom: 1px solid var(--rule); padding: .4rem 0; }
  .scroll.wide th, .scroll.wide td { display: inline-block; border: 0; padding: .1rem 0; text-align: left;
    white-space: normal; background: none; margin-right: .9rem; }
  .scroll.wide th { display: block; }
  .scroll.wide td:empty { display: none; }
  .scroll.wide td[data-of]::before { content: attr(data-of) ": "; color: var(--dim); font-weight: 400; } }
"""

_PAPER = """
@page { margin: 14mm; }
@media print { :root { color-scheme: light; --paper: #fff; --ink: #000; --dim: #444; --rule: #999;
  --well: #fff; --trouble: #7a0d08; --fine: #0d4a1c; --unsure: #5a3c00; --accent: #1d4a75; }
  body { margin: 0; padding: 0; max-width: none; font-size: 10pt; } button { display: none; }
  pre { white-space: pre-wrap; overflow: visible; font-size: 8.5pt; }
  .scroll { overflow: visible; } table { max-width: 100%; font-size: 8pt; } caption span { position: static; }
  thead { display: table-header-group; } tr, li, dd, pre, .bar, svg { break-inside: avoid; }
  h1, h2, .why, caption, figcaption { break-after: avoid; }
  th, td, table.numbers th, table.numbers td, table.lanes th, table.lanes td { min-width: 0; max-width: none;
    overflow-wrap: anywhere; padding: .2rem .3rem; }
  table.lanes { font-size: 6.5pt; } td.figure, th.figure { white-space: normal; }
  table th[scope=row] { position: static; }
  svg.graph { width: auto; height: auto; max-width: 100%; max-height: 22cm; }
  p.key svg, svg { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
  footer { break-inside: avoid; } }
"""

_OF_KINDS = "\n".join(f".k{at} {{ fill: {colour}; color: {colour}; }}" for at, colour in enumerate(KINDS))

STYLE = f"{_SCREEN}{_TABLES}{_PICTURES}{_OF_KINDS}{_NARROW}{_PAPER}"
