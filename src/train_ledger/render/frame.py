"""What stands around every answer on a page: its name, its verdict, when and by which command it was made?

No font, no picture and no address is loaded, and no script runs but the one that puts a button beside each
command, where there is one: the page says so itself by its content security policy, which names stylesheet
and script by their digests. It follows the reader's light or dark setting and prints.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from html import escape

from train_ledger.render.harmless import harmless
from train_ledger.render.report import Tone
from train_ledger.render.style import STYLE
from train_ledger.render.words import moment

__all__ = ["Made", "framed"]

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

_MARKS: dict[Tone, str] = {"trouble": "✖", "fine": "✔", "unsure": "?"}
_ADDRESS = re.compile(r"(?<=://)([^/\s?#]*@)?([^\s?#'\"]*)([?#]\S*?(?='?(?:\s|\Z)))?")
"""Behind its scheme: who asks, the host and path, and the query."""
_LONGEST_COMMAND = 4000


@dataclass(frozen=True, slots=True)
class Made:
    """How an answer was made: by which verb and command of which version, when, and as known at which time.

    Times are unix s; `as_known_t` None is the time at which it was made. What an address in the command may
    hold of a secret – a user, a password, a query – is left out, for a page is sent on.
    """

    verb: str = ""
    command: str = ""
    version: str = ""
    t: float | None = None
    as_known_t: float | None = None

    def __post_init__(self) -> None:
        told = harmless(_ADDRESS.sub(_without_secret, self.command), longest=_LONGEST_COMMAND)
        object.__setattr__(self, "command", told)


def _without_secret(found: re.Match[str]) -> str:
    return f"{'…@' if found[1] else ''}{found[2]}{'?…' if found[3] else ''}"


def framed(verdict: str, tone: Tone, body: str, *, title: str = "", made: Made | None = None) -> str:
    """A whole page of `body`, which is HTML; all else is text. `title` says what it is about."""
    how = made or Made()
    script = f"<script>{_SCRIPT}</script>\n" if '<pre class="command">' in body else ""
    name = " – ".join(part for part in (title, verdict) if part)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_policy(script != ""))}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{_text(f'{_MARKS[tone]} {name}')}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f'<header>\n{_about(how, title)}<h1 class="{tone}">{_text(verdict)}</h1>\n{_when(how)}</header>\n'
        f"<main>\n{body}\n</main>\n{_footer(how)}\n{script}</body>\n</html>\n"
    )


def _policy(with_script: bool) -> str:
    script = f" script-src 'sha256-{_digest(_SCRIPT)}';" if with_script else ""
    style = f"style-src 'sha256-{_digest(STYLE)}';"
    return f"default-src 'none'; {style}{script} img-src data:; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _about(made: Made, title: str) -> str:
    told = [_text(made.verb)] if made.verb else []
    told += [f"<b>{_text(title)}</b>"] if title else []
    return f'<p class="about">{" · ".join(told)}</p>\n' if told else ""


def _when(made: Made) -> str:
    if made.as_known_t is not None:
        return f'<p class="when">as known at {_text(moment(made.as_known_t))}</p>\n'
    return "" if made.t is None else f'<p class="when">asked at {_text(moment(made.t))}</p>\n'


def _footer(made: Made) -> str:
    by = f"train-ledger {made.version}".strip()
    when = "" if made.t is None else f", {moment(made.t)}"
    command = f"<p>Made by <code>{_text(made.command, _LONGEST_COMMAND)}</code></p>\n" if made.command else ""
    return f"<footer>\n{command}<p>{_text(by)}{_text(when)}</p>\n</footer>"


def _text(text: str, longest: int = 2000) -> str:
    return escape(harmless(text, longest=longest))
