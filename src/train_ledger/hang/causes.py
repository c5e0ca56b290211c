"""What usually lies behind a finding of this kind, and what mends it?

The table of common causes, in words for the person on call. The kind alone narrows it; where the rank's
stack, frame or operation says more, the more particular row is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Suspicion", "suspect"]


@dataclass(frozen=True, slots=True)
class Suspicion:
    cause: str
    fix: str


"""Kinds that eight ranks and TORCH_DISTRIBUTED_DEBUG=DETAIL reproduce."""

_BRANCH = Suspicion(
    "a branch that depends on the rank or on its data issues a collective that the others do not, or leaves "
    "one out; or the ranks run different numbers of micro-batches",
    "issue collectives outside of such branches: compute the flag locally and all_reduce it on every rank; "
    "take the number of micro-batches from the global batch, not from local data. On a few ranks "
    "TORCH_DISTRIBUTED_DEBUG=DETAIL raises at the call",
)
_BY_KIND = {
    "collective_type_mismatch": _BRANCH,
    "size_or_syntax_mismatch": Suspicion(
        "input of variable length that was not padded to one size on all ranks, or unequal micro-batches",
        "pad to one size, or exchange the sizes first (all_gather of the lengths)",
    ),
    "collective_dtype_mismatch": Suspicion(
        "the ranks take different mixed-precision paths",
        "cast to one type before the collective; check autocast and per-rank configuration",
    ),
    "cycle": Suspicion(
        "the ranks take their process groups, or their sends and receives, in different orders",
        "issue the collectives of different groups in one order on all ranks; post sends and receives "
        "together with batch_isend_irecv",
    ),
    "p2p_unpaired": Suspicion(
        "the pipeline schedule pairs sends and receives differently on the two sides, or the partner stopped "
        "before it posted its side",
        "check the schedule table of both stages; post pairs with batch_isend_irecv",
    ),
    "missing_ranks": Suspicion(
        "the rank stopped in host code before it issued the operation: its loader ran out or raised, a "
        "branch that depends on the rank, a lock, or I/O",
        "look at its stack; give every rank the same number of batches (drop_last) and keep collectives out "
        "of rank-dependent branches",
    ),
    "completion_laggard": Suspicion(
        "its GPU does not run what it was given: a hung kernel, a fallen GPU, or a dead link",
        "look for an XID in the kernel log of its host; take the host out, restart from the last checkpoint",
    ),
    "no_mismatch": Suspicion(
        "all members issued the same operation and none finishes: network, a GPU, or the communication "
        "library; the recorder cannot name a rank",
        "check XIDs, link counters and the fabric of this group's hosts; restart without the suspect host",
    ),
}
_EXHAUSTED = Suspicion(
    "its loader ran out one batch before the others', so it went on to what comes after the loop",
    "give every rank the same number of batches (drop_last, or a fixed number of steps per epoch), or "
    "all_reduce an end flag each step",
)
_IN_LOADER = Suspicion(
    "its data loader does not deliver: a worker is dead-locked or died, or the storage does not answer",
    "look at the loader's worker processes and the storage; set a timeout on the DataLoader",
)
_IN_LOCK = Suspicion(
    "its threads wait for each other or for a lock",
    "look at all threads of its stack for who holds it; give the wait a timeout",
)
_IN_LOG = Suspicion(
    "it writes a log line that does not get through: a full disk or pipe, or a lock of the log handler",
    "make the log handler asynchronous; check the disk and what reads its output",
)
_IN_CHECKPOINT = Suspicion(
    "it reads or writes a checkpoint that the storage does not finish",
    "check the checkpoint storage; save on all ranks or on none, or raise the timeout around it",
)
_IN_SYNC = Suspicion(
    "its host waits for its GPU at a synchronisation (.item(), print of a tensor, .cpu())",
    "take such calls out of the training loop; if the GPU does not answer, look for an XID on its host",
)
_IN_SET_UP = Suspicion(
    "it stands in the set-up of communication: store, network interface or firewall",
    "check that the store is reachable, NCCL_SOCKET_IFNAME, and the network adapter of its host",
)
_DIED = Suspicion(
    "its process ended or raised; the others wait for it",
    "mend what its last exception or signal says, then restart from the last checkpoint",
)
_HOLDS_GIL = Suspicion(
    "its thread keeps the interpreter's lock, in native code or a loop, so that no other thread of it runs",
    "look at its native stack (py-spy dump --native); release the lock around that call",
)
_WHERE = (
    ("data loader", _IN_LOADER),
    ("log line", _IN_LOG),
    ("checkpoint", _IN_CHECKPOINT),
    ("lock or a thread", _IN_LOCK),
    (".item()", _IN_SYNC),
    ("waits for its GPU", _IN_SYNC),
    ("sets up", _IN_SET_UP),
    ("rendezvous", _IN_SET_UP),
    ("interpreter's lock", _HOLDS_GIL),
)


def suspect(kind: str, op: str, others_op: str | None, *, where: str = "", fell: bool = False) -> Suspicion:
    """The row of the table that fits; `where` are the words for the culprit's stack, `fell` that it died."""
    if kind == "missing_ranks":
        if fell:
            return _DIED
        return next((row for words, row in _WHERE if words in where), _BY_KIND[kind])
    if kind == "collective_type_mismatch" and op == "barrier" and others_op not in (None, "barrier"):
        return _EXHAUSTED
    return _BY_KIND[kind]
