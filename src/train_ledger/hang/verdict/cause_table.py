"""What are the common causes of a hang, and what mends each?

One row a cause, in words for the person on call. Which row fits what is known is decided in `causes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from train_ledger.hang.stacks.stands import Kind

__all__ = [
    "BY_KIND",
    "BY_STAND",
    "DIED",
    "EXHAUSTED",
    "EXTRA",
    "GPU_MEMORY",
    "HOLDS_GIL",
    "IN_CODE",
    "KILLED",
    "LAST_BATCH",
    "NO_MEMORY",
    "OTHER_TENSOR",
    "RAN_OUT",
    "SKIPPED",
    "SWAPPED",
    "VARIABLE",
    "WATCHDOG_STUCK",
    "XID",
    "Suspicion",
]


@dataclass(frozen=True, slots=True)
class Suspicion:
    """One row: the cause and its fix."""

    cause: str
    fix: str


BRANCH = Suspicion(
    "a branch that depends on the rank or on its data issues a collective that the others do not, or leaves "
    "one out; or the ranks run different numbers of micro-batches",
    "issue collectives outside of such branches: compute the flag locally and all_reduce it on every rank; "
    "take the number of micro-batches from the global batch, not from local data",
)
SKIPPED = Suspicion(
    "the rank left out one call that the others make, and stands in the next: a branch that depends on the "
    "rank or its data (an early continue, a skipped step), or fewer micro-batches than the others",
    "make the call on every rank: compute the flag locally and all_reduce it first; take the number of "
    "micro-batches from the global batch",
)
EXTRA = Suspicion(
    "the rank makes one call more than the others: a branch that depends on the rank (logging, evaluation or "
    "a metric on one rank only), or more micro-batches than the others",
    "take the collective out of the branch, or into it on every rank; take the number of micro-batches from "
    "the global batch",
)
SWAPPED = Suspicion(
    "the rank issues two calls in the other order than its peers: an order that comes from something local, "
    "as of a set, of hooks as gradients become ready, or of threads",
    "issue the calls in one order on all ranks: sort what is gone through, and communicate from one thread",
)
EXHAUSTED = Suspicion(
    "its loader ran out one batch before the others', so it went on to what comes after the loop",
    "give every rank the same number of batches (drop_last, or a fixed number of steps per epoch), or "
    "all_reduce an end flag each step",
)
VARIABLE = Suspicion(
    "input of variable length that was not padded to one size on all ranks",
    "pad to one size, or exchange the sizes first (all_gather of the lengths)",
)
LAST_BATCH = Suspicion(
    "a batch of another size than on the other ranks: the last one of its loader, or unequal micro-batches",
    "drop or pad the last batch (drop_last), and split the global batch evenly over the ranks",
)
OTHER_TENSOR = Suspicion(
    "another tensor altogether under the same call: a parameter that only some ranks use, gradient buckets "
    "in another order, or a call before it that was left out",
    "see which call brought each size; same model and same unused parameters on all ranks "
    "(find_unused_parameters), and no collectives in rank-dependent branches",
)
DTYPE = Suspicion(
    "the ranks take different mixed-precision paths",
    "cast to one type before the collective; check autocast and per-rank configuration",
)
ORDER = Suspicion(
    "the ranks take their process groups, or their sends and receives, in different orders",
    "issue the collectives of different groups in one order on all ranks; post sends and receives together "
    "with batch_isend_irecv",
)
PAIRING = Suspicion(
    "the pipeline schedule pairs sends and receives differently on the two sides, or the partner stopped "
    "before it posted its side",
    "check the schedule table of both stages; post pairs with batch_isend_irecv",
)
NOT_COME = Suspicion(
    "the rank stopped in host code before it issued the operation: its loader ran out or raised, a branch "
    "that depends on the rank, a lock, or I/O",
    "look at its stack; give every rank the same number of batches (drop_last) and keep collectives out of "
    "rank-dependent branches",
)
GPU_STUCK = Suspicion(
    "its GPU does not run what it was given: a hung kernel, a fallen GPU, or a dead link",
    "look for an XID in the kernel log of its host; take the host out, restart from the last checkpoint",
)
FABRIC = Suspicion(
    "all members issued the same operation and none finishes: network, a GPU, or the communication library; "
    "the recorder cannot name a rank",
    "check XIDs, link counters and the fabric of this group's hosts; restart without the suspect host",
)
BY_KIND = {
    "collective_type_mismatch": BRANCH,
    "size_or_syntax_mismatch": VARIABLE,
    "collective_dtype_mismatch": DTYPE,
    "cycle": ORDER,
    "p2p_unpaired": PAIRING,
    "missing_ranks": NOT_COME,
    "completion_laggard": GPU_STUCK,
    "no_mismatch": FABRIC,
}
XID = Suspicion(
    "the GPU failed: the driver reported an XID of the kind that stops work",
    "take the host out, see to the GPU as the XID asks, restart from the last checkpoint",
)
WATCHDOG_STUCK = Suspicion(
    "a CUDA call does not return, so that even its watchdog stands: a hung driver or GPU",
    "treat it as hardware: XIDs and the driver of its host; take the host out",
)
DIED = Suspicion(
    "its process ended or raised; the others wait for it",
    "mend what its last exception or signal says, then restart from the last checkpoint",
)
NO_MEMORY = Suspicion(
    "the kernel killed its process for want of memory on the host",
    "fewer or smaller loader workers and prefetches, a higher memory limit of the job; watch rss_bytes",
)
GPU_MEMORY = Suspicion(
    "it ran out of GPU memory, which the others did not: longer input, or an uneven share of the model",
    "cap the input length or pad evenly; leave room for the largest batch; see mem_allocated_peak by rank",
)
RAN_OUT = Suspicion(
    "its loader ran out (StopIteration) while the others' had more",
    "give every rank the same number of batches (drop_last, or a fixed number of steps per epoch)",
)
KILLED = Suspicion(
    "its process was killed from outside (SIGKILL): the kernel for want of memory, or the scheduler",
    "look in the kernel log of its host for the out-of-memory killer, and at the scheduler's limits",
)
IN_LOADER = Suspicion(
    "its data loader does not deliver: a worker is dead-locked or died, or the storage does not answer",
    "look at the loader's worker processes and the storage; set a timeout on the DataLoader",
)
IN_LOCK = Suspicion(
    "its threads wait for each other or for a lock",
    "look at all threads of its stack for who holds it; give the wait a timeout",
)
IN_LOG = Suspicion(
    "it writes a log line that does not get through: a full disk or pipe, or a lock of the log handler",
    "make the log handler asynchronous and log nothing in hooks; check the disk and what reads its output",
)
IN_CHECKPOINT = Suspicion(
    "it reads or writes a checkpoint that the storage does not finish",
    "check the checkpoint storage; save on all ranks or on none, or raise the timeout around it",
)
IN_SYNC = Suspicion(
    "its host waits for its GPU at a synchronisation (.item(), print of a tensor, .cpu())",
    "take such calls out of the training loop; if the GPU does not answer, look for an XID on its host",
)
IN_SET_UP = Suspicion(
    "it stands in the set-up of communication: store, network interface or firewall",
    "check that the store is reachable, NCCL_SOCKET_IFNAME, and the network adapter of its host",
)
COMPILES = Suspicion(
    "it compiles while the others go on: its input has a shape that only this rank met, or its compile "
    "cache is empty",
    "pad to the shapes that are compiled (or mark them dynamic), warm the cache on every rank, and compile "
    "before the first collective",
)
IN_GC = Suspicion(
    "it collects garbage, which the others do at other steps",
    "collect on all ranks at the same step (gc.disable, then gc.collect every N steps)",
)
IN_PROCESS = Suspicion(
    "it waits for a process that it started",
    "look at that process; start none in the training loop, or give the wait a timeout",
)
IN_IO = Suspicion(
    "it waits for the network or a file system in its own code",
    "check that service or mount on its host; give the call a timeout and keep it out of the loop",
)
LEFT = Suspicion(
    "it has left the training loop and tears its process groups down, while the others go on",
    "give every rank the same number of steps; see what made this one leave",
)
HOLDS_GIL = Suspicion(
    "its thread keeps the interpreter's lock, in native code or a loop, so that no other thread of it runs",
    "look at its native stack (py-spy dump --native); release the lock around that call",
)
BY_STAND: dict[Kind, Suspicion] = {
    "loader": IN_LOADER,
    "checkpoint": IN_CHECKPOINT,
    "log": IN_LOG,
    "compile": COMPILES,
    "gc": IN_GC,
    "gpu": IN_SYNC,
    "lock": IN_LOCK,
    "process": IN_PROCESS,
    "io": IN_IO,
    "set_up": IN_SET_UP,
    "tear_down": LEFT,
}
IN_CODE = frozenset(
    row.cause
    for row in (
        BRANCH, SKIPPED, EXTRA, SWAPPED, EXHAUSTED, RAN_OUT, VARIABLE, LAST_BATCH, OTHER_TENSOR,
        DTYPE, ORDER, PAIRING, LEFT,
    )
)  # fmt: skip
