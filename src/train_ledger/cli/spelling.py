"""How is a character written that the terminal or file does not know?

Answers hold dashes, ellipses and bars. Where their encoding is not UTF-8 the nearest plain character says the
same; what has none is escaped as JSON does it, and nothing ends with an error.
"""

from __future__ import annotations

import codecs
import io
from typing import TextIO

__all__ = ["can_be_written"]

_NAME = "train-ledger-plain"
_PLAIN = str.maketrans(
    {
        "–": "-",
        "—": "-",
        "…": "...",
        "×": "x",
        "·": "-",
        "µ": "u",
        "→": "->",
        "≥": ">=",
        "≤": "<=",
        "±": "+-",
        "≈": "~",
        "−": "-",
        "÷": "/",
        "√": "sqrt ",
        "°": " deg ",
        "←": "<-",
        "▶": ">",
        "■": "#",
        "✓": "+",
        "✔": "+",
        "✖": "x",
        "✗": "x",
        "•": "*",
        "█": "#",
        "▓": "#",
        "▒": "=",
        "░": ".",
        "━": "=",
        "─": "-",
        "╸": "=",
        "╺": " ",
        "│": "|",
        "└": "`",
        "├": "|",
        "“": "'",
        "”": "'",
        "‘": "'",
        "’": "'",
        "\N{REPLACEMENT CHARACTER}": "?",
    }
)


def can_be_written(stream: TextIO) -> None:
    """From now on every text can be written to it, whatever its encoding knows."""
    codecs.register_error(_NAME, _plain)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors=_NAME)


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_PLAIN)
    return "".join(it if it.isascii() else _escaped(it) for it in text), error.end


def _escaped(character: str) -> str:
    """As JSON and Python both read it."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))
