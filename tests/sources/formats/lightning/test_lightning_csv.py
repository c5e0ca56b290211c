"""What Lightning's metrics.csv tells, through its rewritten headers and its deletion on a resume."""

from __future__ import annotations

import csv
import doctest
import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.facts import Event, Step
from train_ledger.sources.formats.lightning import lightning_columns
from train_ledger.sources.formats.lightning.lightning_columns import columns
from train_ledger.sources.formats.lightning.lightning_csv import LightningCsv
from train_ledger.sources.lines.log_line import LogLine, read_line

FILE = "/out/version_0/metrics.csv"


def written(*rows: dict[str, object]) -> list[str]:
    """The lines of a file of these rows as CSVLogger writes it."""
    keys = sorted({key for row in rows for key in row})
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=keys)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().split("\n")


def facts(lines: list[str], reader: LightningCsv | None = None) -> list:
    reader = reader or LightningCsv()
    found = []
    for number, line in enumerate(lines, 1):
        found += reader.read(read_line(line.encode()), f"{FILE}:{number}")
    return [*found, *reader.end()]


def told(found: list) -> list[tuple[int, float | None]]:
    return [(it.step, it.values.get("loss")) for it in found if isinstance(it, Step)]


TRAINED = [{"epoch": 0, "step": 9 + 10 * at, "train_loss": 2.5 - at / 10} for at in range(10)]


def test_the_file_is_known_by_its_header() -> None:
    assert LightningCsv.fits("\n".join(written(*TRAINED)).encode()[:4096], FILE)
    assert LightningCsv.fits(b"loss,step\r\n0.5,1\r\n", FILE)
    assert not LightningCsv.fits(b"loss,step\r\n0.5,1\r\n", "/out/Train_Samples_train_loss.csv")
    assert not LightningCsv.fits(
        b"step,Train/Samples/train_loss\n16,2.5\n", "/ds/Train_Samples_train_loss.csv"
    )
    assert not LightningCsv.fits(b"0,1,2\n", FILE)
    wide = "epoch,step," + ",".join(f"norm_{it}" for it in range(900))
    assert all(LightningCsv.fits(f"{'x' * pad},{wide}".encode()[:4096], FILE) for pad in range(1, 9))
    assert not LightningCsv.fits(b"", FILE)


def test_sparse_cells_are_no_zeros() -> None:
    rows = [
        {"lr-AdamW": 0.001, "step": 9},
        {"epoch": 0, "step": 9, "train_loss_step": 2.5},
        {"epoch": 0, "step": 19, "train_loss_epoch": 2.25},
        {"epoch": 0, "step": 19, "val_loss": 2.125},
    ]
    rate, loss, mean, evaluated = facts(written(*rows))
    assert (rate.step, rate.values) == (9, {"lr": 0.001})
    assert loss.values == {"epoch": 0.0, "loss": 2.5}
    assert mean.values == {"epoch": 0.0, "train_loss_epoch": 2.25}
    assert (evaluated.name, evaluated.step, evaluated.details) == (
        "eval_end",
        19,
        {"epoch": 0.0, "val_loss": 2.125},
    )
    assert evaluated.source == f"{FILE}:5"


def test_a_new_key_rewrites_the_file_and_no_row_is_told_twice() -> None:
    reader = LightningCsv()
    before = facts(written(*TRAINED), reader)
    after = facts(
        written(
            *TRAINED, {"epoch": 0, "step": 99, "val_loss": 1.5}, {"epoch": 1, "step": 109, "train_loss": 1.25}
        ),
        reader,
    )
    assert len(told(before)) == 10
    assert [type(it) for it in after] == [Event, Step]
    assert told(after) == [(109, 1.25)]


def test_a_file_deleted_on_resume_keeps_the_old_rows_and_goes_on_with_its_own_header() -> None:
    reader = LightningCsv()
    old = facts(written(*TRAINED), reader)
    new = facts(
        written(*({"grad_norm": 1.0, "step": at, "train_loss": 1.0, "zeros": 0} for at in (59, 69, 79))),
        reader,
    )
    assert told(old + new)[:10] == [(9 + 10 * at, 2.5 - at / 10) for at in range(10)]
    assert told(new) == [(59, 1.0), (69, 1.0), (79, 1.0)]
    assert new[0].values == {"grad_norm": 1.0, "loss": 1.0, "zeros": 0.0}
    assert not reader.damaged


def test_the_same_header_in_mid_file_changes_nothing() -> None:
    lines = written(*TRAINED[:2])
    assert told(facts(lines + lines[:1] + written(*TRAINED[2:4])[1:])) == told(facts(written(*TRAINED[:4])))


def test_steps_that_repeat_after_a_restart_under_the_same_header_are_told_again() -> None:
    lines = written(*TRAINED)
    assert len(told(facts(lines + lines))) == 20


@pytest.mark.parametrize(
    ("header", "fields"),
    [
        ("epoch,step,train_loss", ["epoch", "step", "loss"]),
        ("epoch,step,train/loss_step,val/loss", ["epoch", "step", "loss", "val_loss"]),
        ("epoch,loss,step,train_loss", ["epoch", "loss_1", "step", "loss"]),
        ("a/b,a_b,epoch,step", ["a_b", "a_b_1", "epoch", "step"]),
        ("epoch,step,train_loss_epoch", ["epoch", "step", "train_loss_epoch"]),
        ("lr-AdamW,lr-SGD,step", ["lr_adamw", "lr_sgd", "step"]),
        ("grad_2.0_norm_total,lr-AdamW/pg1,step", ["grad_norm", "lr_adamw_pg1", "step"]),
    ],
)
def test_a_column_is_a_loss_only_where_its_name_says_so(header: str, fields: list[str]) -> None:
    assert [it.field for it in columns(header.split(","))] == fields


def test_cells_in_quotes_and_numbers_with_exponents() -> None:
    (step,) = facts(['epoch,"loss, mean",step,train_loss', '0,"1,5",7,6.05e-06'])
    assert (step.step, step.values["loss"]) == (7, 6.05e-06)
    assert "loss_mean" not in step.values


def test_what_cannot_be_read_is_counted() -> None:
    reader = LightningCsv()
    lines = ["0,9,2.5", "epoch,step,train_loss", "0,9", "0,,2.5", "0,9,high", "0,9,2.5"]
    assert told(facts(lines, reader)) == [(9, 2.5)]
    assert reader.damaged == {
        "no_header": 1,
        "other_cells_than_header": 1,
        "no_step": 1,
        "no_number": 1,
    }


def test_a_nan_is_one() -> None:
    (step,) = facts(["epoch,step,train_loss", "0,9,nan"])
    assert step.values["loss"] != step.values["loss"]


def test_mutated_rows_raise_nothing() -> None:
    rng, reader = random.Random(7), LightningCsv()
    lines = written(*TRAINED, {"step": 5, "val_loss": 1.0})
    for number in range(10_000):
        data = bytearray(rng.choice(lines).encode())
        for _ in range(rng.randint(0, 3)):
            at = rng.randrange(len(data) + 1)
            data[at : at + rng.randint(0, 3)] = rng.randbytes(rng.randint(0, 3))
        for fact in reader.read(LogLine(data.decode("utf-8", "replace")), f"{FILE}:{number}"):
            assert isinstance(fact, Step | Event)


@given(st.lists(st.text(alphabet='step,epoch"0123.-e\r\n\0', max_size=60), max_size=8))
def test_no_text_raises(lines: list[str]) -> None:
    facts(["epoch,step,train_loss", *lines])


def test_the_examples() -> None:
    assert doctest.testmod(lightning_columns).failed == 0
