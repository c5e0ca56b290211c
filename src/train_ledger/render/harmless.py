"""How does a word from somebody's log reach a terminal or a page without doing anything there?

Operation names, hosts, paths and exception texts come from files that a hostile or a merely broken process
wrote. What could move the cursor, change the clipboard, reorder the line or smuggle in a second line is taken
out here, once, for every way of showing an answer.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["harmless"]

_TERMINAL_SEQUENCE = re.compile(
    r"""
      (?:\x1b\[|\x9b) [0-?]* [ -/]* [@-~]                # CSI: colours, the cursor
    | (?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])               # OSC, DCS, …: titles, the clipboard
      [^\x07\x1b\x80-\x9f]* (?:\x07|\x1b\\|\x9c)
    | \x1b [ -/]* [0-~]                                  # escapes of two characters
    """,
    re.VERBOSE,
)
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_LONGEST = 2000


def harmless(value: object, *, longest: int = _LONGEST) -> str:
    r"""`value` on one line of visible characters, cut after `longest` of them.

    Terminal sequences are dropped, white space of any kind becomes a blank, any other invisible character the
    replacement character, so that it is seen that there was something.

    >>> harmless("all\x1b[2J_reduce\n\x07")
    'all_reduce \ufffd'
    """
    text = str(value)
    cut = len(text) > longest
    text = text[:longest]
    if not (text.isascii() and text.isprintable()):
        text = "".join(map(_visible, _TERMINAL_SEQUENCE.sub("", text)))
    return f"{text}…" if cut else text


def _visible(character: str) -> str:
    if " " <= character <= "~":
        return character
    if character.isspace():
        return " "
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character) in _INVISIBLE else character
