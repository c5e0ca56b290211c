"""What does the runbook say, and in which language?

The texts are Markdown beside this module, so that they can be read, linked to and changed without us. Both
languages have the same sections with the same commands; a test holds them together.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["LANGUAGES", "RUNBOOK", "Book", "Section", "language_of", "runbook"]

_FOLDER = Path(__file__).parent

LANGUAGES: Mapping[str, Path] = {"en": _FOLDER / "runbook.md", "zh-CN": _FOLDER / "runbook.zh-CN.md"}
"""The languages that there are, and the file of each."""

RUNBOOK = LANGUAGES["en"]
"""The runbook that comes with this version."""

_LEVEL = re.compile(r"\s*\*(page|record)\*")
_ENVIRONMENT = frozenset({"Environment", "Contacts", "环境", "联系人"})


@dataclass(frozen=True, slots=True)
class Section:
    """What is said of one alert: its level ("page" or "record"), and the Markdown below its heading."""

    alert: str
    level: str
    text: str

    @property
    def means(self) -> str:
        """What is known when it fires, in one line."""
        said = re.sub(r"\s+", " ", self.text.strip().split("\n\n")[0])
        return re.sub(r"^\*\w+\* [–-] (?:\*\*[^*]{1,20}\*\*[:：] ?)?", "", said)


@dataclass(frozen=True, slots=True)
class Book:
    """One language's runbook: what stands before the first alert, and the section of each."""

    language: str
    opening: str
    sections: Mapping[str, Section] = field(default_factory=dict)

    def section(self, alert: str) -> Section | None:
        """The section of an alert, however its name is written; None where there is none."""
        return next((it for name, it in self.sections.items() if name.lower() == alert.lower()), None)

    def alike(self, alert: str) -> tuple[str, ...]:
        """Alerts whose names come close to this one."""
        lower = {name.lower(): name for name in self.sections}
        return tuple(lower[name] for name in difflib.get_close_matches(alert.lower(), lower, 3, 0.5))


def runbook(language: str = "en") -> Book:
    """The runbook in one of `LANGUAGES`; raises KeyError for another.

    >>> runbook().section("gpuxiderror").level
    'page'
    """
    opening, *parts = re.split(r"^## ", LANGUAGES[language].read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = {}
    for part in parts:
        name, _, text = part.partition("\n")
        level = _LEVEL.match(text)
        if level and name not in _ENVIRONMENT:
            sections[name.strip()] = Section(name.strip(), level[1], text.strip())
    return Book(language, opening.strip(), sections)


def language_of(environment: Mapping[str, str]) -> str:
    """The language that a terminal asks for, by the variables of its locale.

    >>> language_of({"LANG": "zh_CN.UTF-8"}), language_of({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"})
    ('zh-CN', 'en')
    """
    named = (environment.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return "zh-CN" if next((it for it in named if it), "").lower().startswith("zh") else "en"
