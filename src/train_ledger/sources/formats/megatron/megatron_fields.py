"""Which of our fields is a piece `name: value` of Megatron's line of an iteration, and how much is it?

The names drift from version to version, so they are looked up by their letters; what none of them is passes
under its own name. A name comes in every line, so what it means is found out once, and a value that is a
plain number is read as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice

from train_ledger.sources.formats.own_name import own_name
from train_ledger.sources.formats.pairs import MOST_PIECES, bare_name, numbers_of, pairs_in

__all__ = [
    "FIELDS_OF_ITERATIONS",
    "PLAIN_NUMBER",
    "fields_of",
    "is_time_remaining",
    "plain_pieces",
    "without_placeholders",
]

_NAMES: dict[str, tuple[str, float]] = {
    "elapsedtimeperiterationms": ("step_time_s", 1e3),
    "elapsedtimeperiterations": ("step_time_s", 1.0),
    "timeperiterationms": ("step_time_s", 1e3),
    "iterationtime": ("step_time_s", 1.0),
    "trainsteptimingins": ("step_time_s", 1.0),
    "learningrate": ("lr", 1.0),
    "lr": ("lr", 1.0),
    "lmloss": ("loss", 1.0),
    "loss": ("loss", 1.0),
    "reducedtrainloss": ("loss", 1.0),
    "lossscale": ("loss_scale", 1.0),
    "gradnorm": ("grad_norm", 1.0),
    "paramsnorm": ("param_norm", 1.0),
    "numzeros": ("num_zeros_in_grad", 1.0),
    "maxattentionlogit": ("max_attn_logit", 1.0),
    "maxattnlogit": ("max_attn_logit", 1.0),
    "numberofskippediterations": ("skipped", 1.0),
    "numberofnaniterations": ("nan_iterations", 1.0),
    "consumedsamples": ("consumed_samples", 1.0),
    "consumedtokens": ("consumed_tokens", 1.0),
    "tflops": ("tflops", 1.0),
    "lmtflops": ("tflops", 1.0),
    "throughputpergpu": ("tflops", 1.0),
    "throughputpergputflopsgpu": ("tflops", 1.0),
    "flopthroughputtflopsecgpu": ("tflops", 1.0),
    "approxflopspergpu": ("tflops", 1.0),
    "tflopspergpu": ("tflops", 1.0),
    "modeltflopspergpu": ("tflops", 1.0),
    "tokenspergpupersecondtgs": ("tps", 1.0),
    "tokenspergputokenssgpu": ("tps", 1.0),
    "tokenssgpuinstharmonicmean": ("tps", 1.0),
    "tokenspersecpergpu": ("tps", 1.0),
    "tokenssecgpu": ("tps", 1.0),
    "mfu": ("mfu", 1.0),
    "peakmemoryusage": ("mem_allocated_peak", 1.0),
    "samplessec": ("samples_per_second", 1.0),
}
"""By the letters of the name, the field and what its number is divided by."""

FIELDS_OF_ITERATIONS = frozenset(field for field, _ in _NAMES.values()) - {"samples_per_second"}

_NO_SIGN = re.compile(
    r"\s{0,8}([A-Za-z][A-Za-z ]{1,40}?) {1,4}([-+]?\d[\d.]{0,20}(?:[eE][-+]?\d{1,3})?)\s{0,8}\Z"
)
"""A name and its number as the first versions wrote them (2019, 2020)."""
_SECOND = re.compile(r"(?<=[\d.]) m?s (?=[A-Za-z][\w/ ]{0,40}: )")
"""Behind a time in a piece, where another name begins without a `|`."""
_REMAINING = re.compile(r"\d:\d\d\s{0,8}\Z")
"""A clock at the end of a piece: how long it will take (nanotron)."""
PLAIN_NUMBER = r"\s{0,40}([-+]?[0-9]{1,20}(?:\.[0-9]{0,20})?(?:[eE][-+]?[0-9]{1,3})?)\s{0,8}"
"""A pattern of the commonest values: a number without a unit, with the blanks around it."""
_PLAIN = re.compile(PLAIN_NUMBER)
_LONGEST_NAME = 80


def fields_of(pieces: Iterable[str]) -> dict[str, float]:
    """The values of the pieces under our names; the first of two spellings of one field counts.

    >>> fields_of([" elapsed time per iteration (ms): 1250.0 ", " lm loss: 2.5E+00 ", " mem usages: 0.5 "])
    {'step_time_s': 1.25, 'loss': 2.5, 'mem_usages': 0.5}
    """
    values: dict[str, float] = {}
    for piece in islice(_apart(pieces), MOST_PIECES):
        name, _, text = piece.rpartition(":")
        meant = _meant(name) if len(name) <= _LONGEST_NAME else None
        plain = _PLAIN.fullmatch(text) if meant is not None else None
        if meant is None or plain is None:
            _add_all(values, piece)
        elif meant[0]:
            number = float(plain[1])
            values.setdefault(meant[0], number / meant[1] if meant[1] != 1.0 else number)
    return without_placeholders(values)


def plain_pieces(pieces: Iterable[str]) -> list[tuple[str, str, float]] | None:
    """(name as it stands, field, divisor) of each piece; None where one is no plain number behind a name.

    >>> plain_pieces([" lm loss: 2.5 "]), plain_pieces([" lm loss: nan "]), plain_pieces(["lm loss: 2.5 "])
    ([(' lm loss', 'loss', 1.0)], None, None)
    """
    found = []
    for piece in pieces:
        name, _, text = piece.rpartition(":")
        meant = _meant(name) if len(name) <= _LONGEST_NAME else None
        is_one = piece[:1].isspace() and " s " not in piece and " ms " not in piece
        if meant is None or not is_one or not _PLAIN.fullmatch(text):
            return None
        found.append((name, *meant))
    return found


def _apart(pieces: Iterable[str]) -> Iterator[str]:
    for piece in pieces:
        if " s " in piece or " ms " in piece:
            yield from _SECOND.sub("|", piece).split("|")
        else:
            yield piece


@lru_cache(4096)
def _meant(name: str) -> tuple[str, float] | None:
    """The field of a name as it stands before its last colon, and what its number is divided by.

    None for a name that does not tell it alone: none at all, and one that ends as a clock does.
    """
    bare = name.strip()
    if not bare or name[-1].isdecimal():
        return None
    return _NAMES.get(bare_name(bare), (own_name(bare), 1.0))


def _add_all(values: dict[str, float], piece: str) -> None:
    """What the piece tells, whatever stands in it."""
    for name, text in pairs_in([_with_sign(piece)]):
        for part, number in numbers_of(name, text):
            average = part.endswith(" avg") and part != name
            field, divisor = _NAMES.get(bare_name(part[:-4] if average else part), (own_name(part), 1.0))
            if average and field in FIELDS_OF_ITERATIONS:
                field += "_avg"
            if field:
                values.setdefault(field, number / divisor if divisor != 1.0 else number)


def is_time_remaining(piece: str) -> bool:
    """Whether a piece ends with a clock: how long it will take (nanotron)."""
    return _REMAINING.search(piece) is not None


def _with_sign(piece: str) -> str:
    """The piece with the sign between name and number that the first versions left out; no time remaining."""
    if ":" not in piece:
        match = _NO_SIGN.match(piece)
        return f"{match[1]}: {match[2]}" if match else piece
    return "" if is_time_remaining(piece) else piece


def without_placeholders(values: dict[str, float]) -> dict[str, float]:
    """DeepSpeed's dialect prints -1 and 0 where it does not know; a norm rounded to 0 tells nothing, too."""
    if values.get("loss_scale") == -1.0:
        del values["loss_scale"]
    if values.get("grad_norm") == 0.0:
        del values["grad_norm"]
        if values.get("num_zeros_in_grad") == 0.0:
            del values["num_zeros_in_grad"]
    return values
