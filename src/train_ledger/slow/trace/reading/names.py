"""What is an activity, by its category and its name?

By category first and then by name, and never by stream: host work carries a stream, too, where Triton
launches it. Names of the older profilers ("Kernel", "Runtime", "Operator") mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum

__all__ = ["Category", "Doing", "GpuClass", "category", "doing", "gpu_class", "is_sync_collective"]


class Category(IntEnum):
    """Of whom an event tells; `OTHER` is nobody that is looked at."""

    OTHER = 0
    KERNEL = 1
    MEMORY = 2
    LAUNCH = 3
    HOST = 4
    MARK = 5
    STREAM_WAIT = 6
    COLLECTIVE = 7


class GpuClass(IntEnum):
    """What a GPU does in an activity."""

    COMPUTE = 0
    COMMUNICATION = 1
    MEMORY = 2


class Doing(IntEnum):
    """What the host does in a span that says something of why its GPU is idle."""

    NOTHING = 0
    DATA = 1
    CHECKPOINT_SAVE = 2
    GARBAGE_COLLECTION = 3
    ALLOCATOR = 4
    SYNC = 5
    RECOMPUTE = 6
    BACKWARD = 7
    RECEIVE = 8
    FORWARD = 9
    """Work of a forward pass, by its sequence number and not by its name."""


_CATEGORIES = {
    "kernel": Category.KERNEL,
    "gpu_memcpy": Category.MEMORY,
    "memcpy": Category.MEMORY,
    "gpu_memset": Category.MEMORY,
    "memset": Category.MEMORY,
    "cuda_runtime": Category.LAUNCH,
    "cuda_driver": Category.LAUNCH,
    "hip_runtime": Category.LAUNCH,
    "hip_driver": Category.LAUNCH,
    "runtime": Category.LAUNCH,
    "xpu_runtime": Category.LAUNCH,
    "xpu_driver": Category.LAUNCH,
    "mtia_runtime": Category.LAUNCH,
    "privateuse1_runtime": Category.LAUNCH,
    "privateuse1_driver": Category.LAUNCH,
    "mtia_ccp_events": Category.KERNEL,
    "hpu_op": Category.KERNEL,
    "collective_comm": Category.COLLECTIVE,
    "cpu_op": Category.HOST,
    "operator": Category.HOST,
    "python_function": Category.HOST,
    "user_annotation": Category.MARK,
    "cuda_sync": Category.STREAM_WAIT,
}


def category(name: str) -> Category:
    """The category of an event by its `cat`."""
    return _CATEGORIES.get(name) or _CATEGORIES.get(name.lower(), Category.OTHER)


_COMMUNICATION = re.compile(
    r"nccl(?:dev)?kernel|nccl:|nccl_|ncclsym|rccl|msccl|nvshmem|oneccl|hccl|xccl|nvls_|"
    r"cross_device_reduce|custom_all_?reduce|multimem_all|symm_mem|two_shot_all|one_shot_all|all2all_kernel|"
    r"deep_ep|internode::|intranode::|userbuffers|"
    r"\b(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|send_?recv)_kernel",
    re.IGNORECASE,
)


_COMMUNICATION_STEMS = (
    "ccl", "nvshmem", "nvls_", "cross_device", "custom_all", "multimem", "symm_mem", "two_shot", "one_shot",
    "all2all", "deep_ep", "internode::", "intranode::", "userbuffers", "reduce_kernel", "gather_kernel",
    "scatter_kernel", "all_kernel", "toall_kernel", "recv_kernel",
)  # fmt: skip


def gpu_class(kind: Category, name: str, collective: object, own: Iterable[re.Pattern[str]] = ()) -> GpuClass:
    """What a GPU does in a kernel or a copy; `own` are patterns of a team's own collectives' kernels.

    >>> gpu_class(Category.KERNEL, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*)", None).name
    'COMMUNICATION'
    """
    if kind is Category.MEMORY:
        return GpuClass.MEMORY
    if kind is Category.COLLECTIVE or collective or any(pattern.search(name) for pattern in own):
        return GpuClass.COMMUNICATION
    lowered = name.lower()
    if any(stem in lowered for stem in _COMMUNICATION_STEMS) and _COMMUNICATION.search(lowered):
        return GpuClass.COMMUNICATION
    return GpuClass.MEMORY if name.startswith(("Memcpy ", "Memset ")) else GpuClass.COMPUTE


_WORDS: tuple[tuple[Doing, tuple[str, ...]], ...] = (
    (
        Doing.DATA,
        (
            r"enumerate\(DataLoader\)",
            r"DataLoader\w{0,40}\.__next__",
            r"dataloader\.py\(\d+\): (?:__next__|_next_data)",
            r"\b(?:get_batch|next_batch|fetching_batch|data_loading|load_batch)\b",
        ),
    ),
    (
        Doing.CHECKPOINT_SAVE,
        (
            r"distributed/checkpoint/\w{1,40}\.py\(\d+\): (?:async_)?save",
            r"save_checkpoint|checkpoint_save",
            r"serialization\.py\(\d+\): save\b",
        ),
    ),
    (
        Doing.GARBAGE_COLLECTION,
        (r"gc\.collect|^gc:", r"garbage.?collection", r"built-in (?:method|function) collect\b"),
    ),
    (
        Doing.ALLOCATOR,
        (
            r"^(?:cuda|hip)(?:Malloc|Free|HostAlloc|HostRegister|MemUnmap|MemMap|MemCreate)\w{0,20}$",
            r"^cuMem(?:Alloc|Free|Map|Unmap|Create|Release)\w{0,20}$",
        ),
    ),
    (
        Doing.SYNC,
        (
            r"^(?:cuda|hip)(?:Stream|Device|Event)Synchronize\w{0,20}$",
            r"^cuCtxSynchronize$",
            r"aten::item$|_local_scalar_dense",
            r"^(?:cuda|hip)Memcpy(?:_spt)?$",
        ),
    ),
    (
        Doing.RECOMPUTE,
        (
            r"^CheckpointFunctionBackward$",
            r"checkpoint\.py\(\d+\): (?:recompute_fn|unpack_hook|recompute)",
            r"^(?:activation_)?recompute\b|_recompute$",
        ),
    ),
    (
        Doing.BACKWARD,
        (r"^autograd::engine::evaluate_function", r"torch/autograd/__init__\.py\(\d+\): backward"),
    ),
    (
        Doing.RECEIVE,
        (r"(?:nccl|gloo|c10d)::?\w{0,4}recv", r"^recv_(?:forward|backward)\b", r"p2p_communication"),
    ),
)
_DOINGS = tuple((kind, re.compile("|".join(words), re.IGNORECASE)) for kind, words in _WORDS)


def doing(name: str) -> Doing:
    """What the host does in a span of this name; `NOTHING` where the name says nothing of it.

    >>> doing("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__").name, doing("aten::mm").name
    ('DATA', 'NOTHING')
    """
    lowered = name.lower()
    if not lowered.startswith(_PREFIXES) and not any(stem in lowered for stem in _STEMS):
        return Doing.NOTHING
    return next((kind for kind, pattern in _DOINGS if pattern.search(name)), Doing.NOTHING)


_PREFIXES = ("cuda", "hip", "cu")
_STEMS = (
    "dataloader", "_batch", "data_loading", "checkpoint", "serialization.py", "gc.", "gc:", "garbage",
    "method collect", "function collect", "aten::item", "_local_scalar_dense", "recompute",
    "evaluate_function", "autograd/__init__", "recv", "p2p_communication",
)  # fmt: skip
"""One of these is in every name that a pattern fits: of a hundred thousand names few are worth a search."""


_SYNCHRONOUS = re.compile(r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|barrier", re.IGNORECASE)


def is_sync_collective(name: str) -> bool:
    """Whether a collective of this name ends at the same moment on all ranks."""
    return bool(_SYNCHRONOUS.search(name))
