"""Where did the time go between the last step of an attempt and the next attempt's start?

As long as there is a sign of life and no step, the run stands; from the last sign of life on it is down. Of a
silence of which nobody says what it was nothing is known, once it is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from train_ledger.ledger.accounts.pauses import Pauses
from train_ledger.ledger.accounts.pieces import Row
from train_ledger.ledger.accounts.signs import Sign
from train_ledger.ledger.accounts.stepping import OF_PHASE, Limits

__all__ = ["Tail", "write_tail"]


class Tail(NamedTuple):
    """What is known of an attempt behind its last step.

    `heard_us` is its last line of any kind; `usual_us` what a step takes, `is_last` whether no attempt
    follows. `signs` are those behind the last step but one, up to the end of the time.
    """

    heard_us: int
    usual_us: int
    signs: Sequence[Sign]
    is_last: bool
    in_start_up: bool = False

    @property
    def ended_us(self) -> int | None:
        return max((it.t_us for it in self.signs if it.what == "ended"), default=None)

    @property
    def gone(self) -> Sign | None:
        """The first sign of death, if there is one."""
        return next((it for it in self.signs if it.what in ("dead", "gone", "launched")), None)

    @property
    def alive_until_us(self) -> int:
        lived = [it.t_us for it in self.signs if it.what in ("alive", "dead", "launched", "dumped")]
        return max([self.heard_us, *lived])


def write_tail(row: Row, until_us: int, tail: Tail, pauses: Mapping[str, Pauses], limits: Limits) -> None:
    """Write from the last step, where the row ends, to `until_us`."""
    since_us = row.at_us
    if until_us <= since_us:
        return
    ended_us = tail.ended_us
    if ended_us is not None:
        _pauses(row, since_us, min(until_us, max(ended_us, since_us)), pauses, limits)
        is_first = "start_up" if tail.in_start_up else "down"
        row.write(is_first, min(until_us, max(ended_us, since_us)), "the run came to its end")
        row.world_size = 0
        row.write("down", until_us, "the run had come to its end, and was taken up again")
        return
    alive_us = min(until_us, max(since_us, tail.alive_until_us))
    limit_us = limits.start_up_us if tail.in_start_up else limits.step_us(tail.usual_us)
    if tail.gone is not None:
        _alive(row, since_us, alive_us, tail, pauses, limits)
        row.write("down", until_us, f"no process was left: {tail.gone.cause or 'it was started again'}")
    elif tail.is_last:
        _last(row, since_us, until_us, tail, pauses, limits)
    else:
        _alive(row, since_us, alive_us, tail, pauses, limits)
        silent_us = until_us - row.at_us
        row.write(
            "down" if silent_us <= limit_us else "unknown",
            until_us,
            "nothing was written until it was started again",
        )


def _alive(
    row: Row, since_us: int, until_us: int, tail: Tail, pauses: Mapping[str, Pauses], limits: Limits
) -> None:
    """Processes were there, and no step came of it."""
    _pauses(row, since_us, until_us, pauses, limits)
    left_us = until_us - row.at_us
    if tail.in_start_up:
        row.write("start_up", min(until_us, since_us + limits.start_up_us), "it never came to a step")
        row.write("stalled", until_us, "it never came to a step")
    elif left_us > limits.step_us(tail.usual_us):
        row.write("stalled", until_us, "no step was completed while processes were there")
    else:
        row.write("down", until_us, "it ended in the middle of a step")


def _last(
    row: Row, since_us: int, until_us: int, tail: Tail, pauses: Mapping[str, Pauses], limits: Limits
) -> None:
    """Nothing follows yet."""
    _pauses(row, since_us, until_us, pauses, limits)
    if tail.in_start_up:
        row.write("start_up", min(until_us, since_us + limits.start_up_us), "no step was completed yet")
        row.write("stalled", until_us, "no step was completed yet")
    elif until_us - row.at_us > limits.step_us(tail.usual_us):
        row.write("stalled", until_us, "no step was completed since")
    else:
        row.write("unknown", until_us, "a step is under way")


def _pauses(row: Row, since_us: int, until_us: int, pauses: Mapping[str, Pauses], limits: Limits) -> None:
    """What saves and evaluations took behind the last step; what outlasts its limit is left."""
    for phase, it in pauses.items():
        if OF_PHASE[phase] == "start_up":
            continue
        us = it.within_us(since_us, until_us)
        us -= min(us, limits.excess_us(phase, us, it.usual_us))
        row.write(OF_PHASE[phase], min(until_us, row.at_us + us))
