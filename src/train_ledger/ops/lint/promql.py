"""Which series does a PromQL expression read, and how are they put together?

Only as much of the language as it takes to say whether an expression could ever return anything: selectors,
functions, aggregations, binary operations with their matching, subqueries, offsets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from train_ledger.ops.lint.tokens import PromqlError, Token, tokens

__all__ = ["Aggregation", "Binary", "Call", "Node", "PromqlError", "Scalar", "Selector", "parsed"]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number or a string."""

    text: str


@dataclass(frozen=True, slots=True)
class Selector:
    """The series of one metric; `matchers` maps a label to (operator, value)."""

    name: str
    matchers: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """`labels` are kept, or with `without` dropped; None where none are named."""

    operator: str
    arguments: tuple[Node, ...]
    labels: tuple[str, ...] | None = None
    without: bool = False


@dataclass(frozen=True, slots=True)
class Binary:
    """`on` are the labels that both sides are matched by, None where all are.

    `many` is the side of which several series may match one of the other's: its labels are kept, and `taken`
    come from the other side.
    """

    operator: str
    left: Node
    right: Node
    on: tuple[str, ...] | None = None
    many: Literal["", "left", "right"] = ""
    taken: tuple[str, ...] = ()


Node: TypeAlias = Scalar | Selector | Call | Aggregation | Binary

_AGGREGATIONS = frozenset(
    [
        "sum",
        "min",
        "max",
        "avg",
        "group",
        "stddev",
        "stdvar",
        "count",
        "count_values",
        "bottomk",
        "topk",
        "quantile",
    ]
)
_STRENGTH = {
    **dict.fromkeys(("or",), 1),
    **dict.fromkeys(("and", "unless"), 2),
    **dict.fromkeys(("==", "!=", "<=", "<", ">=", ">"), 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/", "%", "atan2"), 5),
    "^": 6,
}
_MANY: tuple[tuple[str, Literal["left", "right"]], ...] = (("group_left", "left"), ("group_right", "right"))
_DEEPEST = 100


def parsed(expression: str) -> Node:
    """What an expression is made of. Raises PromqlError.

    >>> parsed('max by (run) (train_step{rank="0"})')
    Aggregation(operator='max', arguments=(Selector(name='train_step', matchers={'rank': ('=', '0')}),), \
labels=('run',), without=False)
    """
    reader = _Reader(list(tokens(expression)))
    node = reader.binary(0)
    reader.want("end")
    return node


class _Reader:
    def __init__(self, words: list[Token]) -> None:
        self._words = words
        self._place = 0
        self._depth = 0

    @property
    def _now(self) -> Token:
        return self._words[self._place]

    def _next(self) -> Token:
        token = self._now
        self._place += token.kind != "end"
        return token

    def _took(self, *texts: str) -> bool:
        """Whether the next word is one of these, which then is read."""
        if self._now.kind in ("symbol", "name") and self._now.text in texts:
            self._place += 1
            return True
        return False

    def want(self, wanted: str) -> Token:
        token = self._next()
        if wanted not in (token.text, token.kind):
            raise PromqlError(f"wants {wanted} at {token.place}, has {token.text or 'its end'!r}")
        return token

    def binary(self, least: int) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise PromqlError("nests too deeply")
        left = self._unary()
        while (strength := _STRENGTH.get(self._now.text, -1)) > least - 1 and self._now.kind != "string":
            operator = self._next().text
            self._took("bool")
            on, many, taken = self._matching()
            right = self.binary(strength if operator == "^" else strength + 1)
            left = Binary(operator, left, right, on, many, taken)
        self._depth -= 1
        return left

    def _matching(self) -> tuple[tuple[str, ...] | None, Literal["", "left", "right"], tuple[str, ...]]:
        on: tuple[str, ...] | None = None
        if self._took("on"):
            on = self._labels()
        elif self._took("ignoring"):
            self._labels()
        for word, many in _MANY:
            if self._took(word):
                return on, many, self._labels() if self._now.text == "(" else ()
        return on, "", ()

    def _labels(self) -> tuple[str, ...]:
        self.want("(")
        names: list[str] = []
        while not self._took(")"):
            names.append(self.want("name").text)
            if not self._took(","):
                self.want(")")
                break
        return tuple(names)

    def _unary(self) -> Node:
        while self._took("-", "+"):
            pass
        return self._with_modifiers(self._atom())

    def _atom(self) -> Node:
        token = self._now
        if token.kind in ("number", "string", "duration"):
            return Scalar(self._next().text)
        if self._took("("):
            node = self.binary(0)
            self.want(")")
            return node
        if token.text == "{":
            return self._selector("")
        name = self.want("name").text
        if name in _AGGREGATIONS and self._now.text in ("(", "by", "without"):
            return self._aggregation(name)
        if self._now.text == "(":
            return Call(name, self._arguments())
        return self._selector(name)

    def _arguments(self) -> tuple[Node, ...]:
        self.want("(")
        found: list[Node] = []
        while not self._took(")"):
            found.append(self.binary(0))
            if not self._took(","):
                self.want(")")
                break
        return tuple(found)

    def _aggregation(self, operator: str) -> Aggregation:
        labels, without = self._grouping(None, False)
        arguments = self._arguments()
        labels, without = self._grouping(labels, without)
        return Aggregation(operator, arguments, labels, without)

    def _grouping(self, labels: tuple[str, ...] | None, without: bool) -> tuple[tuple[str, ...] | None, bool]:
        if self._took("by"):
            return self._labels(), False
        if self._took("without"):
            return self._labels(), True
        return labels, without

    def _selector(self, name: str) -> Selector:
        matchers: dict[str, tuple[str, str]] = {}
        if self._took("{"):
            while not self._took("}"):
                label = self.want("name").text
                operator = self.want("symbol").text
                matchers[label] = (operator, self.want("string").text)
                if not self._took(","):
                    self.want("}")
                    break
        if name == "__name__" or "__name__" in matchers:
            name = name or matchers.pop("__name__")[1]
        return Selector(name, matchers)

    def _with_modifiers(self, node: Node) -> Node:
        while True:
            if self._took("["):
                while not self._took("]"):
                    if self._next().kind == "end":
                        raise PromqlError("has a [ that is not closed")
            elif self._took("offset"):
                self._took("-")
                self.want("duration")
            elif self._took("@"):
                if self._next().kind == "name":
                    self._arguments()
            else:
                return node
