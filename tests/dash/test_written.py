"""What the journal holds is of the kind that it must be, or is refused where it is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from train_ledger.dash.written import labels, moment, number, text, whole


def test_what_is_of_its_kind_is_taken() -> None:
    assert (text("r42"), number(3), moment(1e9), whole(7)) == ("r42", 3.0, 1e9, 7)
    assert math.isnan(number("NaN"))
    assert labels({"run": "r42"}) == {"run": "r42"}


@pytest.mark.parametrize(
    ("taken", "value"),
    [
        (text, 7),
        (number, "3"),
        (number, True),
        (moment, None),
        (moment, "NaN"),
        (moment, 10**400),
        (moment, -1e12),
        (whole, -1),
        (whole, 2.0),
        (whole, True),
        (labels, ["run"]),
        (labels, {"run": 7}),
    ],
)
def test_what_is_of_another_kind_is_refused(taken: Callable[[object], Any], value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        taken(value)
