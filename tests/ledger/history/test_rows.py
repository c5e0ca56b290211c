"""Rows keep the mean of each rank in each column, however many there are."""

from __future__ import annotations

import numpy as np
import pytest

from train_ledger.ledger.history.rows import Rows


def test_a_cell_is_the_mean_of_what_a_rank_told_there() -> None:
    rows = Rows(1)
    steps = np.arange(10, 14)
    rows.add("0", steps, np.array([[1.0, 2.0, np.nan, 4.0]]))
    rows.add("1", steps, np.array([[5.0, 5.0, 5.0, 5.0]]))
    assert np.nan_to_num(rows.means()[0], nan=-1).tolist() == [[1.0, 2.0, -1.0, 4.0], [5.0] * 4]
    assert (rows.base, rows.width, rows.names) == (10, 1, ["0", "1"])


def test_a_long_run_has_wide_columns() -> None:
    rows = Rows(1)
    for begin in range(0, 10_000, 100):
        steps = np.arange(begin, begin + 100)
        rows.add("0", steps, steps[None, :] * 1.0)
    assert rows.columns <= 512
    assert rows.width == 32
    means = rows.means()[0, 0]
    assert means[0] == pytest.approx(15.5)
    assert np.all(np.diff(means) > 0)


def test_many_ranks_have_fewer_columns() -> None:
    rows = Rows(1)
    for rank in range(4096):
        rows.add(str(rank), np.arange(300), np.full((1, 300), rank * 1.0))
    means = rows.means()[0]
    assert means.shape[0] == 4096
    assert means.shape[1] <= 128
    assert np.allclose(means, np.arange(4096)[:, None])


def test_a_rank_that_began_before_the_others_stands_in_the_first_column() -> None:
    rows = Rows(1)
    rows.add("0", np.array([5, 6]), np.array([[1.0, 1.0]]))
    rows.add("1", np.array([3, 5]), np.array([[2.0, 4.0]]))
    assert rows.means()[0, 1, 0] == 3.0


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="cells"):
        Rows(1).put(["0"], np.zeros((1, 2, 3)), np.zeros((1, 2, 3), np.int64), base=0, width=1)
    with pytest.raises(ValueError, match="same name"):
        Rows(1).put(["0", "0"], np.zeros((1, 2, 3)), np.zeros((1, 2, 3), np.int64), base=0, width=1)
