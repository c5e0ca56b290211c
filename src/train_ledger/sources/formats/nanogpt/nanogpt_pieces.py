"""What does a line `step 5/100 | loss 3.1 | 338.1 ms | 12.5% bf16 MFU | …` say of its step?

llm.c puts some names behind their numbers, build-nanogpt and nanochat put a colon between.
"""

from __future__ import annotations

import re

from train_ledger.sources.formats.own_name import own_name
from train_ledger.sources.lines.log_number import log_number

__all__ = ["values_of_pieces"]

_N = r"[-+]?(?:\d[\d.,]{0,30}(?:[eE][-+]?\d{1,4})?|nan|inf)"
_NAMED = re.compile(
    rf"\(?([A-Za-z][\w/ ]{{0,40}}?):? {{0,8}}({_N}) ?(ms|s|m|%|GB|MB|[kKM])?"
    r"( {0,2}\([^()]{0,20}z\))?\)?\Z"
)
_BEHIND = re.compile(rf"\(?({_N})(k|K|M)? ?(ms|%? bf16 MFU|%? MFU|tok/s)\)?\Z")
_NAMES = {
    "loss": "loss",
    "train_loss": "loss",
    "training_loss": "loss",
    "norm": "grad_norm",
    "grad_norm": "grad_norm",
    "lr": "lr",
    "val_loss": "val_loss",
    "validation_loss": "val_loss",
    "validation_bpb": "val_bpb",
    "mfu": "mfu",
    "bf16_mfu": "mfu",
    "tokens_per_second_per_gpu": "tps",
    "tok_sec": "tokens_per_s",
    "tok_s": "tokens_per_s",
    "tokens_s": "tokens_per_s",
    "tokens_sec": "tokens_per_s",
}
_OF_TIME = frozenset({"dt", "time", "iter_time", "step_time"})
_SCALES = {"ms": 1e-3, "s": 1.0, "m": 60.0, "GB": 2.0**30, "MB": 2.0**20, "k": 1e3, "K": 1e3, "M": 1e6}
_TIMES = frozenset({"ms", "s", "m"})
_TELLING = frozenset({"loss", "val_loss", "val_bpb"})
_MOST = 64


def values_of_pieces(pieces: list[str]) -> dict[str, float]:
    """The values by our names; none where no loss is among them: then the line is another program's.

    >>> values_of_pieces([" loss 3.125 (+nanz)", " 250.0 ms ", " 12.5% bf16 MFU ", " 171518 tok/s"])
    {'loss': 3.125, 'step_time_s': 0.25, 'mfu': 12.5, 'tokens_per_s': 171518.0}
    """
    values: dict[str, float] = {}
    for piece in pieces[:_MOST]:
        told = _named(piece.strip()) or _behind(piece.strip())
        if told is not None and not (told[0] == "mfu" and told[1] < 0):
            values.setdefault(*told)
    return values if _TELLING & values.keys() else {}


def _named(piece: str) -> tuple[str, float] | None:
    match = _NAMED.match(piece)
    number = log_number(match[2].rstrip(",.")) if match else None
    if match is None or number is None:
        return None
    own, unit = own_name(match[1]), match[3] or ""
    if own == "t":  # of a line it is the time
        return None
    number = number / 1e3 if unit == "ms" else number * _SCALES.get(unit, 1.0)
    if unit in _TIMES:
        return ("step_time_s" if own in _OF_TIME else f"{own}_s"), number
    return _NAMES.get(own, own), number


def _behind(piece: str) -> tuple[str, float] | None:
    match = _BEHIND.match(piece)
    number = log_number(match[1]) if match else None
    if match is None or number is None:
        return None
    if match[3] == "ms":
        return "step_time_s", number / 1e3
    return ("tokens_per_s", number * _SCALES.get(match[2], 1.0)) if match[3] == "tok/s" else ("mfu", number)
