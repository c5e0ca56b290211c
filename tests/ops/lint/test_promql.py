"""As much of PromQL is understood as the rules are written in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.config import Alerts
from train_ledger.dash.promql import expression
from train_ledger.dash.rules import RECORDINGS, RULES
from train_ledger.ops.lint.promql import Aggregation, Binary, Call, PromqlError, Scalar, Selector, parsed


@pytest.mark.parametrize(
    "promql",
    [*(rule.promql for rule in RULES), *(it.promql for it in RECORDINGS)],
    ids=lambda text: text[:40],
)
def test_our_own_expressions_are_read(promql: str) -> None:
    parsed(expression(promql, Alerts()))


def test_what_binds_stronger_stands_deeper() -> None:
    node = parsed("a + b * c > 2 and on (run) d or e")
    assert isinstance(node, Binary)
    assert (node.operator, node.right) == ("or", Selector("e"))
    both = node.left
    assert isinstance(both, Binary)
    assert (both.operator, both.on) == ("and", ("run",))
    compared = both.left
    assert isinstance(compared, Binary)
    assert compared.operator == ">"
    assert compared.left == Binary("+", Selector("a"), Binary("*", Selector("b"), Selector("c")))


def test_what_is_equal_binds_from_the_left_and_powers_from_the_right() -> None:
    assert parsed("a - b - c") == Binary("-", Binary("-", Selector("a"), Selector("b")), Selector("c"))
    assert parsed("a ^ b ^ c") == Binary("^", Selector("a"), Binary("^", Selector("b"), Selector("c")))


@pytest.mark.parametrize(
    ("promql", "node"),
    [
        ('x{run="r42",gpu!~"0|1"}', Selector("x", {"run": ("=", "r42"), "gpu": ("!~", "0|1")})),
        ('{__name__="x",run="a"}', Selector("x", {"run": ("=", "a")})),
        ("rate(x[5m] offset -1h)", Call("rate", (Selector("x"),))),
        (
            "max_over_time(rate(x[5m])[1h:15s] @ end())",
            Call("max_over_time", (Call("rate", (Selector("x"),)),)),
        ),
        ("sum(x) by (run, rank)", Aggregation("sum", (Selector("x"),), ("run", "rank"))),
        (
            "quantile without (rank) (0.5, x)",
            Aggregation("quantile", (Scalar("0.5"), Selector("x")), ("rank",), True),
        ),
        (
            "a * on (uuid) group_left (run, rank) b",
            Binary("*", Selector("a"), Selector("b"), ("uuid",), "left", ("run", "rank")),
        ),
        ("a / ignoring (x) group_right b", Binary("/", Selector("a"), Selector("b"), None, "right")),
        ("a == bool 1", Binary("==", Selector("a"), Scalar("1"))),
        ("-x # why not", Selector("x")),
        ("by", Selector("by")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_form(promql: str, node: object) -> None:
    assert parsed(promql) == node


@pytest.mark.parametrize(
    ("promql", "why"),
    [
        ("1.2 * on (job) group_left p50 +", "wants name"),
        ("sum(x", "wants \\)"),
        ("x[5m", "not closed"),
        ("x $ y", "cannot be read from '\\$ y' on"),
        ("(" * 500 + "x" + ")" * 500, "nests too deeply"),
        ("x" * 200_000, "longer than"),
    ],
)
def test_what_is_none_is_refused_in_words(promql: str, why: str) -> None:
    with pytest.raises(PromqlError, match=why):
        parsed(promql)


@given(st.text(alphabet="abor unless()[]{}<>=!~\"',.+-*/^%1me5:@$", max_size=60))
def test_any_text_is_read_or_refused(promql: str) -> None:
    try:
        parsed(promql)
    except PromqlError:
        return
