"""What usually lies behind a finding of this kind, and what mends it?

The table of common causes, in words for the person on call. The kind alone narrows it; where the rank's
stack, its exception, its GPU or what it brought says more, the more particular row is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from train_ledger.hang.knowledge import RankKnowledge
from train_ledger.hang.stands import Kind, Stand

__all__ = ["Shape", "Shift", "Signs", "Suspicion", "is_in_code", "suspect", "suspect_place"]

Shape = tuple[tuple[int, ...], ...]
Shift = Literal["skipped", "extra", "swapped"]


@dataclass(frozen=True, slots=True)
class Suspicion:
    """One row: the cause and its fix."""

    cause: str
    fix: str


@dataclass(frozen=True, slots=True)
class Signs:
    """What is known of the first culprit when a cause is looked for.

    `stand` is where it stands by its stack, `rank` what signals and logs say of it, `fell` that it died
    first. `sizes` are the input sizes it brought and the usual ones. `shift` tells of a mismatch whether the
    culprit left a call out (what it brought is what the others bring next), issued one too many, or
    issued two in the other order.
    """

    kind: str
    op: str = ""
    others_op: str | None = None
    stand: Stand | None = None
    rank: RankKnowledge | None = None
    fell: bool = False
    sizes: tuple[Shape, Shape] | None = None
    shift: Shift | None = None


def suspect(signs: Signs) -> Suspicion:
    """The row of the table that fits; hardware first, then how it ended, where it stands, what it brought."""
    for look in (_by_gpu, _by_end, _by_stand, _by_what_it_brought):
        if found := look(signs):
            return found
    return _BY_KIND[signs.kind]


def suspect_place(kind: Kind) -> Suspicion | None:
    """The row for where a rank stands, where nothing else is known; None for a place that says nothing."""
    return _BY_STAND.get(kind)


def is_in_code(cause: str | None) -> bool:
    """Whether a cause, in the words of the table, is one of the code that a few ranks reproduce."""
    return cause in _IN_CODE


_BRANCH = Suspicion(
    "a branch that depends on the rank or on its data issues a collective that the others do not, or leaves "
    "one out; or the ranks run different numbers of micro-batches",
    "issue collectives outside of such branches: compute the flag locally and all_reduce it on every rank; "
    "take the number of micro-batches from the global batch, not from local data",
)
_SKIPPED = Suspicion(
    "the rank left out one call that the others make, and stands in the next: a branch that depends on the "
    "rank or its data (an early continue, a skipped step), or fewer micro-batches than the others",
    "make the call on every rank: compute the flag locally and all_reduce it first; take the number of "
    "micro-batches from the global batch",
)
_EXTRA = Suspicion(
    "the rank makes one call more than the others: a branch that depends on the rank (logging, evaluation or "
    "a metric on one rank only), or more micro-batches than the others",
    "take the collective out of the branch, or into it on every rank; take the number of micro-batches from "
    "the global batch",
)
_SWAPPED = Suspicion(
    "the rank issues two calls in the other order than its peers: an order that comes from something local, "
    "as of a set, of hooks as gradients become ready, or of threads",
    "issue the calls in one order on all ranks: sort what is gone through, and communicate from one thread",
)
_EXHAUSTED = Suspicion(
    "its loader ran out one batch before the others', so it went on to what comes after the loop",
    "give every rank the same number of batches (drop_last, or a fixed number of steps per epoch), or "
    "all_reduce an end flag each step",
)
_VARIABLE = Suspicion(
    "input of variable length that was not padded to one size on all ranks",
    "pad to one size, or exchange the sizes first (all_gather of the lengths)",
)
_LAST_BATCH = Suspicion(
    "a batch of another size than on the other ranks: the last one of its loader, or unequal micro-batches",
    "drop or pad the last batch (drop_last), and split the global batch evenly over the ranks",
)
_OTHER_TENSOR = Suspicion(
    "another tensor altogether under the same call: a parameter that only some ranks use, gradient buckets "
    "in another order, or a call before it that was left out",
    "see which call brought each size; same model and same unused parameters on all ranks "
    "(find_unused_parameters), and no collectives in rank-dependent branches",
)
_DTYPE = Suspicion(
    "the ranks take different mixed-precision paths",
    "cast to one type before the collective; check autocast and per-rank configuration",
)
_ORDER = Suspicion(
    "the ranks take their process groups, or their sends and receives, in different orders",
    "issue the collectives of different groups in one order on all ranks; post sends and receives together "
    "with batch_isend_irecv",
)
_PAIRING = Suspicion(
    "the pipeline schedule pairs sends and receives differently on the two sides, or the partner stopped "
    "before it posted its side",
    "check the schedule table of both stages; post pairs with batch_isend_irecv",
)
_NOT_COME = Suspicion(
    "the rank stopped in host code before it issued the operation: its loader ran out or raised, a branch "
    "that depends on the rank, a lock, or I/O",
    "look at its stack; give every rank the same number of batches (drop_last) and keep collectives out of "
    "rank-dependent branches",
)
_GPU_STUCK = Suspicion(
    "its GPU does not run what it was given: a hung kernel, a fallen GPU, or a dead link",
    "look for an XID in the kernel log of its host; take the host out, restart from the last checkpoint",
)
_FABRIC = Suspicion(
    "all members issued the same operation and none finishes: network, a GPU, or the communication library; "
    "the recorder cannot name a rank",
    "check XIDs, link counters and the fabric of this group's hosts; restart without the suspect host",
)
_BY_KIND = {
    "collective_type_mismatch": _BRANCH,
    "size_or_syntax_mismatch": _VARIABLE,
    "collective_dtype_mismatch": _DTYPE,
    "cycle": _ORDER,
    "p2p_unpaired": _PAIRING,
    "missing_ranks": _NOT_COME,
    "completion_laggard": _GPU_STUCK,
    "no_mismatch": _FABRIC,
}
_XID = Suspicion(
    "the GPU failed: the driver reported an XID of the kind that stops work",
    "take the host out, see to the GPU as the XID asks, restart from the last checkpoint",
)
_WATCHDOG_STUCK = Suspicion(
    "a CUDA call does not return, so that even its watchdog stands: a hung driver or GPU",
    "treat it as hardware: XIDs and the driver of its host; take the host out",
)
_DIED = Suspicion(
    "its process ended or raised; the others wait for it",
    "mend what its last exception or signal says, then restart from the last checkpoint",
)
_NO_MEMORY = Suspicion(
    "the kernel killed its process for want of memory on the host",
    "fewer or smaller loader workers and prefetches, a higher memory limit of the job; watch rss_bytes",
)
_GPU_MEMORY = Suspicion(
    "it ran out of GPU memory, which the others did not: longer input, or an uneven share of the model",
    "cap the input length or pad evenly; leave room for the largest batch; see mem_allocated_peak by rank",
)
_RAN_OUT = Suspicion(
    "its loader ran out (StopIteration) while the others' had more",
    "give every rank the same number of batches (drop_last, or a fixed number of steps per epoch)",
)
_KILLED = Suspicion(
    "its process was killed from outside (SIGKILL): the kernel for want of memory, or the scheduler",
    "look in the kernel log of its host for the out-of-memory killer, and at the scheduler's limits",
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
    "make the log handler asynchronous and log nothing in hooks; check the disk and what reads its output",
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
_COMPILES = Suspicion(
    "it compiles while the others go on: its input has a shape that only this rank met, or its compile "
    "cache is empty",
    "pad to the shapes that are compiled (or mark them dynamic), warm the cache on every rank, and compile "
    "before the first collective",
)
_IN_GC = Suspicion(
    "it collects garbage, which the others do at other steps",
    "collect on all ranks at the same step (gc.disable, then gc.collect every N steps)",
)
_IN_PROCESS = Suspicion(
    "it waits for a process that it started",
    "look at that process; start none in the training loop, or give the wait a timeout",
)
_IN_IO = Suspicion(
    "it waits for the network or a file system in its own code",
    "check that service or mount on its host; give the call a timeout and keep it out of the loop",
)
_LEFT = Suspicion(
    "it has left the training loop and tears its process groups down, while the others go on",
    "give every rank the same number of steps; see what made this one leave",
)
_HOLDS_GIL = Suspicion(
    "its thread keeps the interpreter's lock, in native code or a loop, so that no other thread of it runs",
    "look at its native stack (py-spy dump --native); release the lock around that call",
)
_BY_STAND: dict[Kind, Suspicion] = {
    "loader": _IN_LOADER,
    "checkpoint": _IN_CHECKPOINT,
    "log": _IN_LOG,
    "compile": _COMPILES,
    "gc": _IN_GC,
    "gpu": _IN_SYNC,
    "lock": _IN_LOCK,
    "process": _IN_PROCESS,
    "io": _IN_IO,
    "set_up": _IN_SET_UP,
    "tear_down": _LEFT,
}
_IN_CODE = frozenset(
    row.cause
    for row in (
        _BRANCH, _SKIPPED, _EXTRA, _SWAPPED, _EXHAUSTED, _RAN_OUT, _VARIABLE, _LAST_BATCH, _OTHER_TENSOR,
        _DTYPE, _ORDER, _PAIRING, _LEFT,
    )
)  # fmt: skip
_STOPPED = ("missing_ranks", "completion_laggard", "p2p_unpaired")
"""Kinds in which where the culprit stands says why; one that brought something else came all the same."""


def _by_gpu(signs: Signs) -> Suspicion | None:
    rank = signs.rank
    if rank is None or signs.kind not in (*_STOPPED, "no_mismatch"):
        return None
    if any(fault.level == "page" for fault in rank.gpu_faults):
        return _XID
    return _WATCHDOG_STUCK if rank.stuck and not rank.no_gil and not signs.fell else None


def _by_end(signs: Signs) -> Suspicion | None:
    rank = signs.rank
    if rank is not None and rank.no_memory:
        return _NO_MEMORY
    if not signs.fell or signs.kind not in _STOPPED:
        return None
    said = (rank.exception or "") if rank else ""
    if said.startswith("StopIteration"):
        return _RAN_OUT
    if "OutOfMemoryError" in said or "CUDA out of memory" in said:
        return _GPU_MEMORY
    return _KILLED if rank is not None and rank.signal == 9 and not said else _DIED


def _by_stand(signs: Signs) -> Suspicion | None:
    if signs.kind not in _STOPPED or signs.stand is None:
        return _HOLDS_GIL if signs.kind in _STOPPED and signs.rank and signs.rank.no_gil else None
    if signs.stand.kind in _BY_STAND:
        return _BY_STAND[signs.stand.kind]
    holds = "holds the interpreter's lock" in signs.stand.what
    return _HOLDS_GIL if holds or (signs.rank is not None and signs.rank.no_gil) else None


def _by_what_it_brought(signs: Signs) -> Suspicion | None:
    look = _LOOKS.get(signs.kind)
    return look(signs) if look else None


def _of_type(signs: Signs) -> Suspicion | None:
    if signs.op == "barrier" and signs.others_op not in (None, "barrier"):
        return _EXHAUSTED
    return {"skipped": _SKIPPED, "extra": _EXTRA, "swapped": _SWAPPED}.get(signs.shift or "")


def _of_size(signs: Signs) -> Suspicion | None:
    if signs.sizes is None:
        return None
    odd, usual = signs.sizes
    if [len(shape) for shape in odd] != [len(shape) for shape in usual]:
        return _OTHER_TENSOR
    differing = {
        axis
        for one, other in zip(odd, usual, strict=True)
        for axis, (mine, theirs) in enumerate(zip(one, other, strict=True))
        if mine != theirs
    }
    if all(len(shape) < 2 for shape in odd):
        return None  # a flat buffer: its length says nothing of what is in it
    if len(differing) > 1:
        return _OTHER_TENSOR
    return _LAST_BATCH if differing == {0} else _VARIABLE


_LOOKS: dict[str, Callable[[Signs], Suspicion | None]] = {
    "collective_type_mismatch": _of_type,
    "size_or_syntax_mismatch": _of_size,
}
