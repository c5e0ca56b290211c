"""What does a column of Lightning's metrics.csv hold, by its name alone?

Names are the user's. A loss is taken for the step's only where the name says so – `train_loss`, its `_step`
form, `loss` – and only from one column; `…_epoch` is a mean over an epoch and passes under its own name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from train_ledger.sources.formats.own_name import own_name

__all__ = ["Column", "columns", "is_header"]

_LOSSES = ("train_loss_step", "train_loss", "training_loss_step", "training_loss", "loss_step", "loss")
_NORMS = re.compile(r"grad_norm(?:_step)?\Z|grad_2(?:_0)?_norm_total(?:_step)?\Z")
_LR = re.compile(r"lr-[A-Za-z]\w{0,40}\Z|lr\Z|learning_rate\Z")
_EVALUATES = re.compile(r"(?:val|valid|validation|test)(?:[_/. ]|\Z)", re.IGNORECASE)
_INDEX = ("step", "epoch")
_MOST_COLUMNS = 4096
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Column:
    """`field` is the name under which its numbers pass."""

    name: str
    field: str
    evaluates: bool

    @property
    def is_index(self) -> bool:
        return self.name in _INDEX


def is_header(cells: Sequence[str]) -> bool:
    """Whether these are names of columns, one of them `step`.

    >>> is_header(["epoch", "step", "train_loss"]), is_header(["0", "9", "0.25"]), is_header(["step"])
    (True, False, False)
    """
    if not 2 <= len(cells) <= _MOST_COLUMNS or "step" not in cells:
        return False
    return len(set(cells)) == len(cells) and all(
        0 < len(it) <= _LONGEST_NAME and it[0] not in "-+.0123456789" for it in cells
    )


def columns(cells: Sequence[str]) -> tuple[Column, ...]:
    """
    >>> [it.field for it in columns(["epoch", "lr-AdamW", "step", "train_loss_epoch", "train_loss_step"])]
    ['epoch', 'lr', 'step', 'train_loss_epoch', 'loss']
    """
    names = [own_name(it) for it in cells]
    known: dict[str, str] = {}
    loss = next((it for it in _LOSSES if names.count(it) == 1), None)
    if loss is not None:
        known[cells[names.index(loss)]] = "loss"
    for field, pattern, texts in (("grad_norm", _NORMS, names), ("lr", _LR, cells)):
        meant = [cell for cell, text in zip(cells, texts, strict=True) if pattern.match(text)]
        if len(meant) == 1:  # of several nobody says which one is meant
            known[meant[0]] = field
    taken = set(known.values())
    found: list[Column] = []
    for index, (cell, name) in enumerate(zip(cells, names, strict=True)):
        own = known.get(cell)
        if own is None:  # two columns whose names differ in signs alone stay two
            own = name if name and name not in taken else f"{name or 'column'}_{index}"
            taken.add(own)
        found.append(Column(cell, own, _EVALUATES.match(cell) is not None))
    return tuple(found)
