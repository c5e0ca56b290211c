"""How is Megatron's next line of an iteration read in one go, now that lines like it were read?

A run prints the same names in the same order for days. Two lines in a row that do are made a pattern of, and
what fits it whole says what the slow way would say; all else goes the slow way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from train_ledger.sources.formats.megatron.megatron_fields import (
    PLAIN_NUMBER,
    plain_pieces,
    without_placeholders,
)

__all__ = ["Layouts"]

_MOST_PIECES = 64
_MOST_LEARNED = 16
"""Patterns are made at a cost; a log that changes its names in each line is no run's."""

_Fields = tuple[tuple[int, str, float], ...]


class Layouts:
    """The layouts of one log, as far as they were learned.

    >>> layouts, pieces = Layouts(), [" lm loss: 2.5E+00 ", " grad norm: 0.5 ", ""]
    >>> layouts.learn(pieces); layouts.learn(pieces)
    >>> layouts.values(" lm loss: 3.5E+00 | grad norm: 1.5 |")
    {'loss': 3.5, 'grad_norm': 1.5}
    >>> print(layouts.values(" lm loss: nan | grad norm: 1.5 |"))
    None
    """

    def __init__(self) -> None:
        self._known: list[tuple[re.Pattern[str], _Fields]] = []
        self._before: tuple[str, ...] | None = None

    def values(self, rest: str) -> dict[str, float] | None:
        """What stands behind the number of the iteration, of a closed line; None where no layout fits."""
        for pattern, fields in self._known:
            if match := pattern.fullmatch(rest):
                texts = match.groups()
                return without_placeholders({name: float(texts[at]) / by for at, name, by in fields})
        return None

    def learn(self, pieces: Sequence[str]) -> None:
        """A line was read the slow way; its pieces, the last of them behind the last `|`."""
        found = plain_pieces(pieces[:-1]) if len(pieces) <= _MOST_PIECES and not pieces[-1].strip() else None
        names = tuple(name for name, _, _ in found) if found else None
        if names and names == self._before and len(self._known) < _MOST_LEARNED:
            self._known.insert(0, (_pattern(names), _first_of_each(found or ())))
        self._before = names


def _pattern(names: Sequence[str]) -> re.Pattern[str]:
    return re.compile(r"\|".join(f"{re.escape(name)}:{PLAIN_NUMBER}" for name in names) + r"\|\s{0,8}")


def _first_of_each(found: Sequence[tuple[str, str, float]]) -> _Fields:
    """Of two spellings of one field the first counts."""
    fields: dict[str, tuple[int, str, float]] = {}
    for at, (_, field, divisor) in enumerate(found):
        if field:
            fields.setdefault(field, (at, field, divisor))
    return tuple(fields.values())
