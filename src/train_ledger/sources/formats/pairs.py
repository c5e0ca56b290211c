"""Which numbers, under which names, stand in `name: value | name: value |`?

Names hold blanks, slashes and units in parentheses, so a piece is split at its last colon (at its last `=`
where it has none). A value may carry a unit, and may be several numbers with slashes between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from train_ledger.sources.lines.log_number import log_number

__all__ = ["MOST_PIECES", "bare_name", "numbers_of", "pairs_in", "with_unit"]

_AMOUNT = re.compile(
    r"([-+]?(?:[\d.][\d.,_]{0,40}(?:[eE][-+]?\d{1,4})?|nan|inf(?:inity)?))\s?([A-Za-z%]{0,8})\Z", re.I
)
_PLAIN = re.compile(r"[-+]?[0-9]{1,20}(?:\.[0-9]{0,20})?(?:[eE][-+]?[0-9]{1,3})?")
_NOT_NAME = re.compile(r"[^a-z0-9]+")
_PARENTHESES = re.compile(r"\([^()]{0,80}\)")
_FACTORS = {
    "kb": 2.0**10,
    "mb": 2.0**20,
    "mib": 2.0**20,
    "gb": 2.0**30,
    "gib": 2.0**30,
    "tb": 2.0**40,
    "tib": 2.0**40,
    "pflops": 1e3,
}
_COUNTS = {"K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}
_DIVISORS = {"ms": 1e3, "us": 1e6, "gflops": 1e3}
"""Times become seconds, sizes bytes (the G of trainers is 2**30), rates TFLOP/s."""
_AS_THEY_ARE = frozenset({"", "%", "s", "tflops", "tf", "w", "c", "mhz"})
MOST_PIECES = 256


def bare_name(name: str) -> str:
    """The letters and digits alone, for spellings differ in blanks and hyphens, and lines are broken in them.

    >>> bare_name("lm-loss") == bare_name("lm_loss") == bare_name(" lm loss")
    True
    """
    return _NOT_NAME.sub("", name.lower())


def with_unit(text: str) -> float | None:
    """The number of `text` in the unit that we keep; None for what is no number or of an unknown unit.

    >>> with_unit("153.5GB"), with_unit("45.5TFLOPS"), with_unit("1.5K"), with_unit("N/A")
    (164819369984.0, 45.5, 1500.0, None)
    """
    text = text.strip()
    if _PLAIN.fullmatch(text):
        return float(text)
    match = _AMOUNT.match(text)
    if match is None:
        return None
    number, unit = log_number(match[1]), match[2].lower()
    if number is None or unit in _AS_THEY_ARE:
        return number
    if unit in _DIVISORS:
        return number / _DIVISORS[unit]
    if match[2] in _COUNTS:
        return number * _COUNTS[match[2]]
    return number * _FACTORS[unit] if unit in _FACTORS else None


def pairs_in(pieces: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Name and value of each piece that has both, in order; a piece without is passed over."""
    for count, piece in enumerate(pieces):
        if count >= MOST_PIECES:
            return
        name, sign, value = piece.rpartition(":")
        if not sign:
            name, sign, value = piece.rpartition("=")
        if sign and value.strip() and (name := name.strip()):
            yield name, value.strip()


def numbers_of(name: str, value: str) -> Iterator[tuple[str, float]]:
    """The numbers of one pair: one; as many as the name has parts; or the last and the average.

    >>> list(numbers_of("elapsed (ms)", "13300.5/13310.0"))
    [('elapsed (ms)', 13300.5), ('elapsed (ms) avg', 13310.0)]
    >>> list(numbers_of("mem usage/ratio", "2GB/50%"))
    [('mem usage', 2147483648.0), ('mem ratio', 50.0)]
    """
    texts = value.split("/")
    names = _PARENTHESES.sub("", name).split("/")
    if len(texts) == 1:
        names = [name]
    elif len(names) != len(texts):
        names = [name, f"{name} avg"]
    else:
        stem = names[0].strip().rpartition(" ")[0]
        names = [names[0], *(f"{stem} {it}" for it in names[1:])]
    numbers = [with_unit(it) for it in texts]
    if len(names) == len(texts):
        yield from ((key.strip(), it) for key, it in zip(names, numbers, strict=True) if it is not None)
