"""In which ways does one rank leave the common path, and what is the right answer to each?

The modes of the hang drill and what a backend does with each. gloo's behaviour was measured on torch 2.13:
what another algorithm sends is never received, and a few elements more or less wait for ever; a message that
is much larger or of a wider type aborts whoever receives it – mostly an innocent – within milliseconds; a
type of the same width (int32 for float32) goes through unnoticed and sums nonsense. NCCL's behaviour is what
its sources and reports say and was not measured: it compares nothing, so that the job stands until its
watchdog ends every rank. Each fault is a function of its own, so that its name stands in the stack that the
verdict quotes. Only the drill's job calls them; torch is imported where it is used.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import torch

__all__ = ["MODES", "Does", "Meeting", "Mode", "leave_common_path"]

_FOREVER_S = 24 * 3600

Does = Literal["hangs", "aborts"]
"""What a backend does with a fault: the job stands with every rank alive, or ranks of it die of it."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """The all_reduce at which a rank leaves: at any other step it does `issue(tensor)`.

    `group` is torch's process group (None: the world), `peer` the global rank of another member. `other`
    issues a collective of another group, whose turn is later; None where there is no other group.
    """

    issue: Callable[[torch.Tensor], Any]
    tensor: torch.Tensor
    peer: int
    group: Any = None
    other: Callable[[], Any] | None = None


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to hang a job.

    `causes` are the codes of `answer.CAUSES` that are right for it. `gloo` and `nccl` say what the backend
    does with it. `in_loader` says that the rank leaves while it fetches its batch, before the step's first
    collective, and not at one of the group; `worker_server` that a dump of the culprit takes torch's own
    server; `fewest_ranks` are what it takes to tell the culprit from the others; `takes_groups` that it needs
    a job with several groups. `by_majority` says that nothing but what most others brought names the
    culprit: in a group of two that is a tie, which only the other groups of its kind settle.
    """

    name: str
    what: str
    causes: frozenset[str]
    fault: Callable[[Meeting], None]
    gloo: Does = "hangs"
    nccl: Does = "hangs"
    in_loader: bool = False
    worker_server: bool = False
    fewest_ranks: int = 2
    takes_groups: bool = False
    by_majority: bool = False

    def on(self, backend: str) -> Does:
        """What that backend does with it."""
        return self.nccl if backend == "nccl" else self.gloo


def sleep(_: Meeting) -> None:
    """Never comes to the collective: asleep in host code."""
    time.sleep(_FOREVER_S)


def wait_for_batch(_: Meeting) -> None:
    """Never comes: the loader waits for a worker that will not deliver."""
    never_filled = threading.Condition()
    with never_filled:
        never_filled.wait(_FOREVER_S)


def run_out_of_batches(_: Meeting) -> None:
    """The loader ends here, one batch before its peers', and the rank goes on to what follows the loop."""


def skip_and_go_on(_: Meeting) -> None:
    """Leaves the collective out: the rank's next one meets what its peers bring to this one."""


def another_operation(meeting: Meeting) -> None:
    """Comes with another operation: waits for a broadcast where its peers all_reduce."""
    import torch
    import torch.distributed as dist

    dist.broadcast(torch.zeros_like(meeting.tensor), src=meeting.peer, group=meeting.group)


def unpadded_tensor(meeting: Meeting) -> None:
    """Comes with twice the elements that its peers bring; of so few, gloo waits for ever."""
    import torch

    meeting.issue(torch.cat([meeting.tensor, meeting.tensor]))


def wider_type(meeting: Meeting) -> None:
    """Comes with float64 where its peers bring float32."""
    meeting.issue(meeting.tensor.double())


def oversized_tensor(meeting: Meeting) -> None:
    """Comes with so many elements that gloo aborts the peer that receives them."""
    meeting.issue(meeting.tensor.new_zeros(1 << 20))


def groups_in_another_order(meeting: Meeting) -> None:
    """Takes a collective of another group first, whose turn with its peers is later."""
    if meeting.other is not None:
        meeting.other()
    meeting.issue(meeting.tensor)


def raise_but_stay(_: Meeting) -> None:
    """Raises, and a thread that never ends keeps the process from exiting."""
    uploader = threading.Thread(
        target=time.sleep, args=(_FOREVER_S,), name="uploader that never ends", daemon=False
    )
    uploader.start()
    raise RuntimeError("bad sample: token id 70211 is outside the vocabulary")


def hold_gil(_: Meeting) -> None:
    """Sits in C with the interpreter's lock held: no Python thread of this process runs any more."""
    ctypes.PyDLL(None).sleep(_FOREVER_S)


_HOST = frozenset({"hang.host"})
_MISMATCH = frozenset({"hang.mismatch"})
_DIED_OR_MISMATCH = frozenset({"hang.mismatch", "hang.rank_died"})

MODES: Mapping[str, Mode] = {
    mode.name: mode
    for mode in (
        Mode("sleep", "never comes: sleeps in host code", _HOST, sleep),
        Mode("loader", "never comes: its data loader waits for ever", _HOST, wait_for_batch, in_loader=True),
        Mode(
            "exhausted",
            "runs out of batches before its peers and goes on to the evaluation",
            _MISMATCH,
            run_out_of_batches,
            in_loader=True,
            fewest_ranks=3,
        ),
        Mode(
            "skip",
            "leaves a collective out and goes on to the next",
            _MISMATCH,
            skip_and_go_on,
            fewest_ranks=3,
        ),
        Mode(
            "type",
            "broadcasts where its peers all_reduce",
            _MISMATCH,
            another_operation,
            fewest_ranks=3,
            by_majority=True,
        ),
        Mode(
            "size",
            "brings twice the elements that its peers bring",
            _MISMATCH,
            unpadded_tensor,
            fewest_ranks=3,
            by_majority=True,
        ),
        Mode(
            "dtype",
            "brings float64 where its peers bring a narrower type; on gloo ranks die of it",
            _DIED_OR_MISMATCH,
            wider_type,
            by_majority=True,
            gloo="aborts",
            fewest_ranks=4,
        ),
        Mode(
            "abort",
            "brings a size that makes gloo abort an innocent peer; the job dies",
            _DIED_OR_MISMATCH,
            oversized_tensor,
            by_majority=True,
            gloo="aborts",
            fewest_ranks=4,
        ),
        Mode(
            "order_swap",
            "takes the collectives of two groups in the opposite order",
            _MISMATCH,
            groups_in_another_order,
            fewest_ranks=4,
            takes_groups=True,
        ),
        Mode(
            "exception",
            "raises and is kept from exiting by a thread",
            frozenset({"hang.rank_died"}),
            raise_but_stay,
        ),
        Mode("lock_gil", "holds the interpreter's lock in C", _HOST, hold_gil, worker_server=True),
    )
}


def leave_common_path(mode: str, meeting: Meeting) -> None:
    """Do what `mode` says, from the rank that is to be the culprit.

    Raises KeyError for a mode that is not in `MODES`.
    """
    MODES[mode].fault(meeting)
