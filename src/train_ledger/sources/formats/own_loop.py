"""What does a training loop of somebody's own print: `step 10 loss 2.31`, `Epoch 1, step 10/200, loss=2.31`?

A line is taken where it is a step's number and then nothing but names with numbers, a loss among them. In
prose, in source code and in other trainers' lines something else stands between, and they are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from train_ledger.facts import Fact, Step
from train_ledger.sources.formats.nanogpt.nanogpt import NanoGpt
from train_ledger.sources.formats.nanogpt.nanogpt_pieces import values_of_pieces
from train_ledger.sources.formats.trainer_front import after_front, read_front
from train_ledger.sources.lines.log_line import LogLine

__all__ = ["OwnLoop"]

_COUNT = r"[ :=#]{1,3}(\d{1,12})(?: ?/ ?\d{1,12})?[\])]?"
_BETWEEN = r"(?:\s{0,3}[,|:;-])?\s{1,3}[\[(]?|[,|:;]"
_BEGIN = re.compile(
    rf"[\[(]?(?:epoch{_COUNT}(?:{_BETWEEN}))?(?:global[ _])?(?:step|iter|iteration){_COUNT}(?:{_BETWEEN})",
    re.IGNORECASE,
)
_PAIR = re.compile(
    r"([A-Za-z][\w/]{0,40}(?: [A-Za-z]\w{0,20})?)(?: ?[:=]\s{0,3}| )"
    r"([-+]?(?:\d[\d.,]{0,30}(?:[eE][-+]?\d{1,4})?|nan|inf))(?: ?(ms|s|%|GB|MB|[kKM])(?![\w/]))?"
)
_NEXT = re.compile(r"(?:\s{0,3}[|;]|,)?\s{0,3}")
_MOST = 24


class OwnLoop:
    """A `LineFormat`."""

    name: ClassVar[str] = "a loop of one's own"
    marks: ClassVar[tuple[bytes, ...]] = tuple(
        word + sign for word in (b"loss", b"Loss") for sign in (b" ", b":", b"=")
    )
    knows: ClassVar[frozenset[str]] = frozenset({"loss"})

    def read(self, line: LogLine, source: str) -> Iterator[Fact]:
        start = after_front(line.text)
        text = line.text[start:].rstrip()
        begin = _BEGIN.match(text)
        if begin is None or NanoGpt.takes(text):
            return
        values = values_of_pieces(list(_pieces(text, begin.end())))
        if values:
            front = read_front(line, line.text[:start])
            yield Step(front.t, int(begin[2]), front.rank, 0, front.host, source, values)

    def end(self) -> Iterator[Fact]:
        return iter(())


def _pieces(text: str, at: int) -> Iterator[str]:
    """`name number` of each pair from `at` on; none at all where something else stands there."""
    pieces: list[str] = []
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None or len(pieces) == _MOST:
            return
        pieces.append(f"{pair[1]} {pair[2].rstrip('.,')}{pair[3] or ''}")
        at = _NEXT.match(text, pair.end()).end()  # type: ignore[union-attr]  # it matches nothing, too
    yield from pieces
