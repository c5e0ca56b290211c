"""Circles of ranks that wait for each other, and how long very many of them take."""

from __future__ import annotations

import time

from train_ledger.hang.analysis import reason
from train_ledger.hang.dumps.dump import Dump
from train_ledger.hang.dumps.dump_files import Dumps
from train_ledger.hang.dumps.entry import Op
from train_ledger.hang.dumps.held import Held

WORLD = 4096


def pair_member(rank: int) -> Dump:
    """Of each pair of neighbours both send first."""
    first, mine = rank // 2 * 2, rank % 2
    name, listed = str(1 + rank // 2), str([first, first + 1])
    send = Op(1, "send", "nccl", False, "scheduled", 10**18, source=mine, target=1 - mine, sends=True)
    held = Held(name, "pp", "nccl", None, None, True, (), (send,), (), {f"send {mine}->{1 - mine}": 1})
    config = {"0": ("default_pg", str(list(range(WORLD)))), name: ("pp", listed)}
    return Dump(f"rank_{rank}", rank, None, "2.10", (held,), config, 1, False, False)


def test_two_thousand_circles_take_no_time_by_their_square() -> None:
    """A third of a second on a quiet machine; all waits sorted anew for each circle were twenty."""
    dumps = Dumps(tuple(map(pair_member, range(WORLD))))
    started = time.process_time()
    answer = reason(dumps, stacks={}, known={})
    assert time.process_time() - started < 10
    assert (answer.kind, len(answer.findings), len(answer.culprits)) == ("cycle", WORLD // 2, WORLD)
