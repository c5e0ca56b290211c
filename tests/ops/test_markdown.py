"""Words from a log, in Markdown."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.answer import NextCommand
from train_ledger.ops import markdown
from train_ledger.ops.markdown import inert, markdown_of
from train_ledger.render.report import Frames, Pair, Point, Report, Section


def test_the_examples_hold() -> None:
    assert doctest.testmod(markdown).failed == 0


@pytest.mark.parametrize(
    ("written", "stands"),
    [
        ("[a](javascript:alert(1))", r"\[a\](javascript:alert(1))"),
        ("![x](http://e.org/p.png)", r"\!\[x\](http:\//e.org/p.png)"),
        ("<script>&lt;", "&lt;script&gt;&amp;lt;"),
        ("a\n# b\x1b[2J", r"a \# b"),
        ("`rm`", r"\`rm\`"),
        ("- x", r"\- x"),
        ("1. x", r"1\. x"),
        ("see www.e.org", r"see www\.e.org"),
        ("__init__ of _check_batch", r"\_\_init\_\_ of \_check_batch"),
        ("step 1 > 0.5 s – hang.host", "step 1 &gt; 0.5 s – hang.host"),
    ],
)
def test_nothing_acts(written: str, stands: str) -> None:
    assert inert(written) == stands


@given(st.text())
def test_no_text_opens_markup_or_a_line(text: str) -> None:
    stands = inert(text)
    assert not set(stands) & set("<>\n\r\x1b\x07")
    bare = stands.replace("\\\\", "")
    assert all(bare[at - 1] == "\\" for at, character in enumerate(bare) if character in "`*[]#|~$!")


def test_a_report_as_markdown() -> None:
    report = Report(
        "r42 *hung*",
        "trouble",
        (
            Section("", (Pair("step", "41"),)),
            Section("<b>", (Point("rank 3: [a](b)"), Frames(("```", "x")))),
            Section("next", (NextCommand("why", "train-ledger hang 'a b'"),)),
        ),
    )
    assert markdown_of(report) == (
        "# r42 \\*hung\\*\n\n- step: 41\n\n## &lt;b&gt;\n\n- rank 3: \\[a\\](b)\n\n    ```\n    x\n\n"
        "## next\n\n- why:\n\n      train-ledger hang 'a b'\n"
    )
