"""What is close to a threshold is at the edge."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.dash.backtest.signs.stretches import Grade, stretches

LOOKS = {"-": Grade.NO, "?": Grade.EDGE, "!": Grade.CLEAR}


def told(text: str, clear_s: float = 0.0) -> list[tuple[float, float, float | None]]:
    looks = ((float(t), LOOKS[how]) for t, how in enumerate(text))
    return [(it.t, it.until_t, it.clear_t) for it in stretches(looks, clear_s=clear_s)]


def test_a_stretch_is_clear_only_where_it_clearly_held_for_long_enough() -> None:
    assert told("-??-!!!?-") == [(1.0, 2.0, None), (4.0, 7.0, 4.0)]
    assert told("!!?!!", clear_s=2.0) == [(0.0, 4.0, None)]
    assert told("?!!!?", clear_s=2.0) == [(0.0, 4.0, 1.0)]


@given(st.text("-?!"))
def test_every_look_at_which_it_held_lies_in_one_stretch(text: str) -> None:
    held = {float(t) for t, how in enumerate(text) if how != "-"}
    covered = [t for begin, end, _ in told(text) for t in range(int(begin), int(end) + 1)]
    assert sorted(held) == [*map(float, covered)]
