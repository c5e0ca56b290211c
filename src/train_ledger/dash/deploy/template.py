"""How is a file made that has a fixed shape and a few values of its own?

The shapes lie in templates/ as what they are – units, scripts, manifests – with `@name@` where a value goes.
One of several lines is indented as its place is.
"""

from __future__ import annotations

import re
from importlib.resources import files
from textwrap import indent

__all__ = ["filled"]

_PLACE = re.compile(r"^( *)@(\w+)@$|@(\w+)@", re.MULTILINE)


def filled(name: str, **values: str) -> str:
    """The template `name` with its values put in; raises KeyError where one is missing."""
    text = files(__package__).joinpath("templates", name).read_text(encoding="utf-8")
    unused = values.keys() - {match[2] or match[3] for match in _PLACE.finditer(text)}
    if unused:
        raise KeyError(f"{name} has no place for {', '.join(sorted(unused))}")

    def put(match: re.Match[str]) -> str:
        value = values[match[2] or match[3]]
        return value if match[2] is None else indent(value.rstrip("\n"), match[1])

    return _PLACE.sub(put, text)
