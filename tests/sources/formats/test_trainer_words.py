"""The parts that formats of trainers share say what their examples say."""

from __future__ import annotations

import doctest
import math

import pytest

from train_ledger.sources.formats import pairs, trainer_front
from train_ledger.sources.formats.deepspeed import deepspeed_chat
from train_ledger.sources.formats.megatron import (
    megatron_iteration,
    megatron_life,
    megatron_straggler,
    megatron_timers,
)
from train_ledger.sources.formats.nanogpt import nanogpt_pieces
from train_ledger.sources.formats.pairs import numbers_of, pairs_in, with_unit
from train_ledger.sources.formats.trainer_front import after_front, is_source_code, read_front
from train_ledger.sources.lines.log_line import LogLine

MODULES = (
    *(deepspeed_chat, megatron_iteration, megatron_life, megatron_straggler, megatron_timers),
    *(nanogpt_pieces, pairs, trainer_front),
)


@pytest.mark.parametrize("module", MODULES, ids=lambda it: it.__name__.rpartition(".")[2])
def test_examples(module) -> None:
    assert doctest.testmod(module).attempted > 0
    assert doctest.testmod(module).failed == 0


def test_a_piece_is_split_at_its_last_colon_else_at_its_last_equals_sign() -> None:
    pieces = [" a (b: c): 1 ", "d=2", "e = f: 3", "nothing", ": 4", "g:"]
    assert list(pairs_in(pieces)) == [("a (b: c)", "1"), ("d", "2"), ("e = f", "3")]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.5GB", 1.5 * 2**30),
        ("1.5 GiB", 1.5 * 2**30),
        ("250ms", 0.25),
        ("1500GFLOPS", 1.5),
        ("2PFLOPS", 2000.0),
        ("97%", 97.0),
        ("6.05e-06", 6.05e-6),
        ("-inf", -math.inf),
        ("3 apples", None),
        ("1:02:03", None),
        ("", None),
        ("9" * 500, None),
    ],
)
def test_units_become_ours_and_what_is_no_amount_is_none(text, number) -> None:
    assert with_unit(text) == (pytest.approx(number) if number is not None else None)


def test_a_value_of_other_parts_than_its_name_is_none() -> None:
    assert list(numbers_of("a/b/c", "1/2/3/4/5")) == []


@pytest.mark.parametrize("text", ["x = 'a'", 'print("', "f`", "{step}", "   # as in", "// as in", "a\\n"])
def test_fronts_of_source_code(text) -> None:
    assert is_source_code(text)


@pytest.mark.parametrize(
    "text", ["", "[rank-1/8][INFO ] : ", "Training epoch 0, ", "==> ", "node-1: 12%|##| 1/2 "]
)
def test_fronts_of_logs(text) -> None:
    assert not is_source_code(text)


def test_what_the_line_knows_goes_before_what_its_front_says() -> None:
    line = LogLine("", rank=1, host="node-1", t=5.0)
    assert read_front(line, "node-2: [rank-7/8]") == trainer_front.Front(5.0, 1, "node-1")


def test_a_front_ends_where_words_begin() -> None:
    for text in ("step 5 | loss 3", "[a b] step 5", "", "2: 3: 4: 5: 6: 7: 8: x"):
        assert 0 <= after_front(text) <= len(text)
    assert after_front("step 5 | loss 3") == 0
