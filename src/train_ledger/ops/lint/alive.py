"""Could this expression ever return anything, and if not, for want of what?

Evaluated over what is exported instead of over values: a selector is alive where its metric is there and has
the labels that it is matched by; `or` needs one side, `and` and arithmetic need both. What is not exported is
a lack; that a metric comes only with its first incident is known by `reasons`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from train_ledger.ops.lint.promql import Aggregation, Binary, Call, Node, Scalar, Selector

__all__ = ["Lack", "Life", "Series", "life_of"]

Series = Mapping[str, frozenset[str] | None]
"""The labels of each metric; None where they are not known, as of one that comes with its first incident."""

_OF_PROMETHEUS = frozenset({"job", "instance"})
_ALWAYS = frozenset({"absent", "absent_over_time", "vector", "time", "scalar", "pi", "year", "month", "hour"})


@dataclass(frozen=True, slots=True)
class Lack:
    """A metric that is not exported, or a `label` that it does not have."""

    metric: str
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Life:
    """Whether anything can come out, with which labels (None: not known), and what its parts lack."""

    is_alive: bool
    labels: frozenset[str] | None
    lacks: tuple[Lack, ...] = ()


def life_of(node: Node, series: Series) -> Life:
    """How an expression fares on these series.

    >>> from train_ledger.ops.lint.promql import parsed
    >>> life_of(parsed("a > 0 or b > 0"), {"a": frozenset({"run"})}).is_alive
    True
    >>> life_of(parsed("a * on (run) b"), {"a": frozenset({"run"})}).lacks
    (Lack(metric='b', label=None),)
    """
    judge = _OF_NODE[type(node)]
    return judge(node, series)


def _scalar(node: Scalar, series: Series) -> Life:
    return Life(True, frozenset())


def _selector(node: Selector, series: Series) -> Life:
    named = [node.name] if node.name in series else _matching(node.name, series)
    if not named:
        return Life(False, None, (Lack(node.name),))
    known: frozenset[str] = frozenset()
    for each in map(series.__getitem__, named):
        if each is None:
            return Life(True, None)
        known |= each
    labels = known | _OF_PROMETHEUS
    lacks = tuple(
        Lack(node.name, label)
        for label, (operator, value) in node.matchers.items()
        if label not in labels and _wants_a_value(operator, value)
    )
    return Life(not lacks, labels, lacks)


def _matching(pattern: str, series: Series) -> list[str]:
    """The metrics that a pattern for `__name__` names."""
    try:
        return [name for name in series if re.fullmatch(pattern, name)]
    except re.error:
        return []


def _wants_a_value(operator: str, value: str) -> bool:
    """Whether a series without the label does not match."""
    return (
        (operator, value) == ("!=", "")
        or (operator == "=" and value != "")
        or (operator == "=~" and value not in ("", ".*"))
    )


def _call(node: Call, series: Series) -> Life:
    lives = [life_of(argument, series) for argument in node.arguments]
    lacks = tuple(lack for life in lives for lack in life.lacks)
    if node.function in _ALWAYS:
        return Life(True, frozenset())
    labels = _joined(life.labels for life in lives)
    if node.function in ("label_replace", "label_join") and labels is not None:
        labels |= {node.arguments[1].text} if isinstance(node.arguments[1], Scalar) else set()
    return Life(all(life.is_alive for life in lives), labels, lacks)


def _joined(labels: object) -> frozenset[str] | None:
    found: frozenset[str] = frozenset()
    for each in labels:  # type: ignore[attr-defined]
        if each is None:
            return None
        found |= each
    return found


def _aggregation(node: Aggregation, series: Series) -> Life:
    inner = life_of(node.arguments[-1], series)
    named = frozenset(node.labels or ())
    if node.operator in ("topk", "bottomk"):
        return inner
    if node.without:
        kept = None if inner.labels is None else inner.labels - named
        return Life(inner.is_alive, kept, inner.lacks)
    missing = frozenset() if inner.labels is None or not inner.is_alive else named - inner.labels
    lacks = tuple(Lack(_first_metric(node) or "the expression", label) for label in sorted(missing))
    return Life(inner.is_alive, named - missing, (*inner.lacks, *lacks))


def _first_metric(node: Node) -> str | None:
    if isinstance(node, Selector):
        return node.name
    inner = (
        node.arguments
        if isinstance(node, Call | Aggregation)
        else (node.left, node.right)
        if isinstance(node, Binary)
        else ()
    )
    return next((name for each in inner if (name := _first_metric(each))), None)


def _binary(node: Binary, series: Series) -> Life:
    left, right = life_of(node.left, series), life_of(node.right, series)
    lacks = (*left.lacks, *right.lacks)
    if node.operator == "or":
        alive = [life for life in (left, right) if life.is_alive]
        return Life(bool(alive), _joined(life.labels for life in alive), lacks)
    if node.operator == "unless":
        return Life(left.is_alive, left.labels, (*left.lacks, *right.lacks))
    unmatched = _unmatched(node, left, right)
    is_alive = left.is_alive and right.is_alive and not unmatched
    return Life(is_alive, _labels_of(node, left, right), (*lacks, *unmatched))


def _labels_of(node: Binary, left: Life, right: Life) -> frozenset[str] | None:
    """What is left of both sides' labels: of several to one those of the several, and all beside a number."""
    if node.operator == "and" or _is_scalar(node.right):
        return left.labels
    if _is_scalar(node.left):
        return right.labels
    kept = right.labels if node.many == "right" else left.labels
    if node.many:
        return None if kept is None else kept | frozenset(node.taken)
    return kept if node.on is None else frozenset(node.on)


def _is_scalar(node: Node) -> bool:
    if isinstance(node, Binary):
        return _is_scalar(node.left) and _is_scalar(node.right)
    return isinstance(node, Scalar) or (isinstance(node, Call) and node.function in ("time", "scalar", "pi"))


def _unmatched(node: Binary, left: Life, right: Life) -> tuple[Lack, ...]:
    """Labels to match by that only one side has: nothing ever matches."""
    if node.on is None or left.labels is None or right.labels is None:
        return ()
    if not (left.is_alive and right.is_alive):
        return ()
    return tuple(
        Lack(_first_metric(node.left if label not in left.labels else node.right) or "the expression", label)
        for label in node.on
        if (label in left.labels) != (label in right.labels)
    )


_OF_NODE: Mapping[type, Callable[..., Life]] = {
    Scalar: _scalar,
    Selector: _selector,
    Call: _call,
    Aggregation: _aggregation,
    Binary: _binary,
}
