"""Writes docs/configuration.md from the tables of what can be set.

python tools/configuration_page.py            writes it
python tools/configuration_page.py --check    says by its exit status whether it is current

tools/pages/configuration.md says what each key means; which keys there are, and what holds where nobody set
them, says the code.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Iterator

from page import DOCS, WORDS, table, write_or_check

from train_ledger.config import Config

PAGE = DOCS / "configuration.md"

_TABLE = re.compile(
    r"(?<=\n)## \[(\w+)\]\n(.*?)\| key \| means \|\n\| --- \| --- \|\n((?:\|[^\n]*\n)+)", re.DOTALL
)


def page() -> str:
    """The whole page.

    Raises ValueError where words and code do not have the same tables and keys.
    """
    text, words = _words()
    defaults = Config()
    known = {it.name for it in dataclasses.fields(Config)} - {"file"}
    if set(words) != known:
        raise ValueError(f"tables of words alone, or of the code alone: {sorted(set(words) ^ known)}")
    tables = {
        name: _described(name, getattr(defaults, name), means, prose)
        for name, (prose, means) in words.items()
    }
    return _TABLE.sub(lambda found: tables[found[1]], text)


def _words() -> tuple[str, dict[str, tuple[str, dict[str, str]]]]:
    """What was written by hand; and of each table the prose above it and what its keys mean."""
    text = (WORDS / "configuration.md").read_text(encoding="utf-8")
    found = {
        name: (prose, dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", rows, re.MULTILINE)))
        for name, prose, rows in _TABLE.findall(text)
    }
    return text, found


def _described(name: str, defaults: object, means: dict[str, str], prose: str) -> str:
    rows = table(("key", "default", "means"), _rows(name, defaults, means))
    return f"## [{name}]\n{prose}{rows}"


def _rows(name: str, defaults: object, means: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    keys = [it.name for it in dataclasses.fields(defaults)]  # type: ignore[arg-type]
    if set(keys) != set(means):
        raise ValueError(
            f"[{name}]: keys of words alone, or of the code alone: {sorted(set(keys) ^ set(means))}"
        )
    for key in keys:
        yield f"`{key}`", _shown(getattr(defaults, key)), means[key]


def _shown(value: object) -> str:
    """
    >>> _shown(90.0), _shown(None), _shown(()), _shown("auto"), _shown(True)
    ('90', 'none', '[]', '"auto"', 'true')
    """
    if value is None:
        return "none"
    return f"{value:.16g}" if isinstance(value, float) else json.dumps(value)


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page(), sys.argv[1:]))
