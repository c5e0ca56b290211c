"""Which records and which progress bars of the Hugging Face Trainer stand in one line, in their order?

tqdm draws a bar with a carriage return and no newline, so a line may hold hundreds of them, and a record
between two. A record is a dictionary as Python prints it: in single quotes, with bare nan, since
transformers 5 with its numbers as strings. It is read by its shape and never evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from train_ledger.sources.lines.log_time import TIME

__all__ = ["Bar", "Printed", "parts", "resolution"]

_PART = re.compile(
    r"\d{1,3}%\|[^|\r\n]{0,300}\| {0,8}(?P<done>\d{1,12})/(?P<total>\d{1,12}) "
    r"\[(?P<elapsed>\d[\d:]{0,11})<[^\],\r\n]{1,20},[^\]\r\n]{0,200}\]"
    r"|\{(?P<items>'[^{}\r\n]{4,8000})\}"
)
_ITEM = re.compile(r"'([^'\r\n]{1,80})': ?(?:'([^'\r\n]{0,200})'|([^,'\[\]]{1,64}))")
_BEFORE = ("", ">>")
_TASK = re.compile(r"\s{0,8}\d{1,6}: ")
"""What srun -l puts in front."""
_STAMP = re.compile(rf"\[?{TIME}\]?")
"""What `ts` and loggers put in front."""
_AFTER = " \t\r\n{[0123456789\x1b"


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar without a description: `done` of `total`, `elapsed_s` since it was made, in whole seconds."""

    done: int
    total: int
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class Printed:
    """A dictionary as it was printed, quotes taken off; those in `quoted` were rounded to be strings."""

    words: Mapping[str, str]
    quoted: frozenset[str]


def parts(text: str) -> Iterator[Bar | Printed | str]:
    """All of one line; what stands behind the last of them, where it is not blank, comes as text.

    >>> line = " 50%|##5  | 6/12 [01:02<01:02, 10.3s/it]{'loss': '1.5', 'epoch': 0.5}"
    >>> for part in parts(line): print(part)
    Bar(done=6, total=12, elapsed_s=62.0)
    Printed(words={'loss': '1.5', 'epoch': '0.5'}, quoted=frozenset({'loss'}))
    """
    task = _TASK.match(text)
    place = task.end() if task else 0
    for match in _PART.finditer(text):
        front, place = text[place : match.start()].strip(), match.end()
        if match["items"] is not None:
            if (front[-2:] in _BEFORE or _STAMP.fullmatch(front)) and text[place : place + 1] in _AFTER:
                yield _printed(match["items"])
        elif not front:
            yield Bar(int(match["done"]), int(match["total"]), _seconds(match["elapsed"]))
    if rest := text[place:].rstrip():
        yield rest


def _printed(items: str) -> Printed:
    words = {it[1]: (it[2], it[3]) for it in _ITEM.finditer(items)}
    quoted = frozenset(key for key, (word, _) in words.items() if word is not None)
    return Printed(
        {key: bare.strip() if word is None else word for key, (word, bare) in words.items()}, quoted
    )


def _seconds(clock: str) -> float:
    """
    >>> _seconds("00:58"), _seconds("1:02:03")
    (58.0, 3723.0)
    """
    seconds = 0
    for part in clock.split(":")[:4]:
        seconds = 60 * seconds + int(part or 0)
    return float(seconds)


def resolution(word: str) -> float:
    """By how much the last digit of a printed number counts: what was rounded away is at most this.

    >>> resolution("915.3"), resolution("1.234e+04")
    (0.1, 10.0)
    """
    mantissa, _, exponent = word.lower().partition("e")
    power = int(exponent) if re.fullmatch(r"[-+]?\d{1,3}", exponent) else 0
    return float(10.0 ** (power - len(mantissa.partition(".")[2])))
