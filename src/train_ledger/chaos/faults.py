"""In which ways does one rank leave the common path, and what is the right answer to each?

The modes of the hang drill, as gloo really behaves (measured on torch 2.13): small mismatches hang, large
ones abort the receiver – an innocent – within milliseconds. Each fault is a function of its own, so that its
name stands in the stack that the verdict quotes. Only the drill's job calls them; torch is imported where it
is used.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["MODES", "Mode", "leave_common_path"]

_FOREVER_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to hang a job.

    `causes` are the codes of `answer.CAUSES` that are right for it; `in_loader` says that the rank leaves
    while it fetches its batch, before the step's first collective, and not at the step's last one;
    `worker_server` that a dump of the culprit takes torch's own server; `fewest_ranks` are what a majority
    against the culprit takes, where nothing else names it.
    """

    name: str
    what: str
    causes: frozenset[str]
    fault: Callable[[], None]
    in_loader: bool = False
    worker_server: bool = False
    fewest_ranks: int = 2


def sleep() -> None:
    """Never comes to the collective: asleep in host code."""
    time.sleep(_FOREVER_S)


def wait_for_batch() -> None:
    """Never comes: the loader waits for a worker that will not deliver."""
    never_filled = threading.Condition()
    with never_filled:
        never_filled.wait(_FOREVER_S)


def skip_and_block() -> None:
    """Leaves out the step's last collective and blocks in host code."""
    threading.Event().wait(_FOREVER_S)


def broadcast_instead() -> None:
    """Comes with another operation: a broadcast where its peers all_reduce."""
    import torch
    import torch.distributed as dist

    dist.broadcast(torch.zeros(2), src=0)


def unpadded_all_reduce() -> None:
    """Comes with another size: 4 elements where its peers bring 2; gloo waits for ever."""
    import torch
    import torch.distributed as dist

    dist.all_reduce(torch.zeros(4))


def oversized_all_reduce() -> None:
    """Comes with a size so different that gloo aborts the peer that receives it."""
    import torch
    import torch.distributed as dist

    dist.all_reduce(torch.zeros(1 << 20))


def raise_but_stay() -> None:
    """Raises, and a thread that never ends keeps the process from exiting."""
    threading.Thread(target=sleep, name="uploader that never ends", daemon=False).start()
    raise RuntimeError("bad sample: token id 70211 is outside the vocabulary")


def hold_gil() -> None:
    """Sits in C with the interpreter's lock held: no Python thread of this process runs any more."""
    ctypes.PyDLL(None).sleep(_FOREVER_S)


MODES: Mapping[str, Mode] = {
    mode.name: mode
    for mode in (
        Mode("sleep", "never comes: sleeps in host code", frozenset({"hang.host"}), sleep),
        Mode(
            "loader",
            "never comes: its data loader waits for ever",
            frozenset({"hang.host"}),
            wait_for_batch,
            in_loader=True,
        ),
        Mode(
            "skip",
            "leaves out the step's last collective and blocks",
            frozenset({"hang.host"}),
            skip_and_block,
        ),
        Mode(
            "type",
            "broadcasts where its peers all_reduce",
            frozenset({"hang.mismatch"}),
            broadcast_instead,
            fewest_ranks=3,
        ),
        Mode(
            "size",
            "brings 4 elements where its peers bring 2",
            frozenset({"hang.mismatch"}),
            unpadded_all_reduce,
            fewest_ranks=3,
        ),
        Mode(
            "abort",
            "brings a size that makes gloo abort an innocent peer; the job dies",
            frozenset({"hang.mismatch", "hang.rank_died"}),
            oversized_all_reduce,
            fewest_ranks=4,
        ),
        Mode(
            "raise",
            "raises and is kept from exiting by a thread",
            frozenset({"hang.rank_died"}),
            raise_but_stay,
        ),
        Mode(
            "lock_gil",
            "holds the interpreter's lock in C",
            frozenset({"hang.host"}),
            hold_gil,
            worker_server=True,
        ),
    )
}


def leave_common_path(mode: str) -> None:
    """Do what `mode` says, from the rank that is to be the culprit.

    Raises KeyError for a mode that is not in `MODES`.
    """
    MODES[mode].fault()
