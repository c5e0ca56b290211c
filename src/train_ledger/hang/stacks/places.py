"""What kind of place is one frame of a stack?

A table of files and functions, of torch and of what training jobs are made of, in Python and – for stacks
that were taken with the frames of C – in C. Which frame of a stack counts is decided in `stands`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from train_ledger.hang.stacks.frames import Frame

__all__ = ["Kind", "Place", "Where", "place_of"]

Where = Literal["collective", "host", "set_up", "unknown"]
Kind = Literal[
    "set_up", "collective", "store", "tear_down", "loader", "checkpoint", "log", "compile", "gc", "gpu",
    "lock", "process", "io", "sleep", "backward", "torch", "library", "own", "none",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """One kind of place. `weak`: what it is for shows further out – who sleeps in a loader waits for data."""

    kind: Kind
    where: Where
    what: str
    weak: bool = False


def _set_up(what: str) -> Place:
    return Place("set_up", "set_up", what)


_GROUP = _set_up("sets up a process group")
_COMMUNICATOR = _set_up("sets up an NCCL communicator")
_RENDEZVOUS = _set_up("waits at the rendezvous")
_SET_UP_NAMES = {
    "init_process_group": _set_up("sets up its process group"),
    "_new_process_group_helper": _GROUP,
    "_new_group_with_tag": _GROUP,
    "new_group": _GROUP,
    "new_subgroups": _GROUP,
    "new_subgroups_by_enumeration": _GROUP,
    "split_group": _GROUP,
    "_store_based_barrier": _GROUP,
    "init_device_mesh": _set_up("sets up its device mesh"),
    "rendezvous": _RENDEZVOUS,
    "_create_c10d_store": _RENDEZVOUS,
    "_tcp_rendezvous_handler": _RENDEZVOUS,
    "_env_rendezvous_handler": _RENDEZVOUS,
}
_COLLECTIVE = Place("collective", "collective", "waits in a collective")
_STORE = Place("store", "collective", "waits for a key of the store, which another rank is to set")
_TEAR_DOWN = Place("tear_down", "host", "has left the training and tears down its process groups")
_LOADER = Place("loader", "host", "waits for its data loader")
_CHECKPOINT = Place("checkpoint", "host", "reads or writes a checkpoint")
_SYNC = Place("checkpoint", "host", "waits for a disk (fsync), as for a checkpoint", weak=True)
_LOG = Place("log", "host", "writes a log line")
_LOG_LIBRARY = Place("log", "host", "writes a log line", weak=True)
"""Weak: loguru's and wandb's wrappers may lie around the whole training."""
_PIPE = Place(
    "log", "host", "writes a log line or the like, which its reader or its disk does not take", True
)
_COMPILE = Place("compile", "host", "compiles its model")
_GC = Place("gc", "host", "collects garbage", weak=True)
_GPU = Place("gpu", "host", "waits for its GPU", weak=True)
_ITEM = Place("gpu", "host", "waits for its GPU, in .item() or the like", weak=True)
_LOCK = Place("lock", "host", "waits for a lock or a thread", weak=True)
_GIL = Place(
    "lock", "host", "waits for the interpreter's lock, which another of its threads holds", weak=True
)
_LOCK_FILE = Place("lock", "host", "waits for a lock or a thread: the lock of a file", weak=True)
_PROCESS = Place("process", "host", "waits for a process that it started", weak=True)
_IO = Place("io", "host", "waits for the network or a file system", weak=True)
_SLEEP = Place("sleep", "host", "sleeps", weak=True)
_BACKWARD = Place(
    "backward", "unknown", "runs the backward pass; whether that waits in a collective does not show", True
)


_IsIn = Callable[[str], object]


def _in(*parts: str) -> _IsIn:
    """Whether a file lies in one of these packages; its path may be short, as in py-spy's text."""
    return re.compile("|".join(rf"(?:^|/){re.escape(part)}" for part in parts)).search


def _of_installed(*parts: str) -> _IsIn:
    """The same for packages whose name may be a user's own folder, too."""
    return re.compile("|".join(rf"(?:^|(?:site|dist)-packages/){re.escape(part)}" for part in parts)).search


_FILES: tuple[tuple[_IsIn, Place], ...] = (
    (
        _in(
            "torch/distributed/distributed_c10d", "torch/distributed/_functional_collectives.py",
            "torch/distributed/nn/functional.py", "deepspeed/comm/", "torchcomms/",
            "megatron/core/pipeline_parallel/p2p_communication.py", "train_ledger/signals/collectives.py",
        ),
        _COLLECTIVE,
    ),
    (
        _in(
            "torch/utils/data/", "webdataset/", "streaming/base/", "torchdata/", "litdata/", "nvidia/dali/",
            "megatron/core/datasets/", "megatron/energon/", "petastorm/", "ffcv/", "tensorflow_datasets/",
        ),
        _LOADER,
    ),
    (re.compile(r"/dataloader\.py$").search, _LOADER),
    (_of_installed("datasets/", "accelerate/data_loader.py", "grain/"), _LOADER),
    (
        _in(
            "torch/distributed/checkpoint/", "torch/serialization.py", "safetensors/",
            "megatron/core/dist_checkpointing/", "megatron/training/checkpointing.py",
            "megatron/checkpointing.py", "deepspeed/runtime/checkpoint_engine/", "torchsnapshot/",
            "nvidia_resiliency_ext/checkpointing/", "torchtitan/components/checkpoint.py",
        ),
        _CHECKPOINT,
    ),
    (
        _in(
            "torch/_dynamo/convert_frame.py", "torch/_dynamo/symbolic_convert.py",
            "torch/_dynamo/output_graph.py", "torch/_inductor/compile_fx", "torch/_inductor/graph.py",
            "torch/_inductor/scheduler.py", "torch/_inductor/codegen/", "torch/_inductor/async_compile.py",
            "torch/_inductor/select_algorithm.py", "torch/_inductor/autotune_process.py",
            "torch/_functorch/_aot_autograd/graph_c", "triton/compiler/", "triton/runtime/autotuner.py",
            "torch/utils/cpp_extension.py", "torch/utils/_cpp_extension_versioner.py",
        ),
        _COMPILE,
    ),
    (_in("torch/cuda/streams.py", "torch/_tensor_str.py"), _ITEM),
    (_of_installed("wandb/", "loguru/", "tensorboard/", "mlflow/", "tqdm/"), _LOG_LIBRARY),
    (_of_installed("filelock/", "fasteners/", "portalocker/"), _LOCK_FILE),
    (
        _of_installed(
            "requests/", "urllib3/", "botocore/", "boto3/", "s3fs/", "fsspec/", "gcsfs/", "httpx/",
            "httpcore/", "aiohttp/", "google/cloud/", "paramiko/", "huggingface_hub/",
        ),
        _IO,
    ),
)  # fmt: skip
_LIBRARY_FILES: tuple[tuple[str, Place], ...] = (
    ("logging/__init__.py", _LOG), ("logging/handlers.py", _LOG),
    ("threading.py", _LOCK), ("queue.py", _LOCK), ("selectors.py", _LOCK),
    ("multiprocessing/connection.py", _LOCK), ("multiprocessing/queues.py", _LOCK),
    ("multiprocessing/synchronize.py", _LOCK), ("multiprocessing/managers.py", _LOCK),
    ("concurrent/futures/_base.py", _LOCK), ("asyncio/base_events.py", _LOCK), ("subprocess.py", _PROCESS),
    ("multiprocessing/popen_fork.py", _PROCESS), ("multiprocessing/pool.py", _LOCK), ("socket.py", _IO),
    ("ssl.py", _IO), ("http/client.py", _IO), ("shutil.py", _IO),
)  # fmt: skip
_CHECKPOINT_NAMES = frozenset({"save_checkpoint", "load_checkpoint", "async_save"})
_LOADER_NAMES = re.compile(
    r"_?(?:try_get|get|next|load|fetch|read|wait_for)_(?:next_)?(?:data|batch|batches|sample|samples)"
)

_NATIVE: tuple[tuple[re.Pattern[str], Place], ...] = tuple(
    (re.compile(pattern), place)
    for pattern, place in (
        (r"^p?ncclComm(?:Init|Split)|bootstrapInit|ncclTransportP2pSetup", _COMMUNICATOR),
        (r"^p?ncclComm(?:Finalize|Destroy|Abort)|ProcessGroup\w*::(?:shutdown|abort)\b", _TEAR_DOWN),
        (r"c10d::(?:\w+::)*\w*Store\b|c10d::detail::TCP(?:Client|Server)|TCPStore::", _STORE),
        (
            r"^p?nccl(?:All|Reduce|Broadcast|Bcast|Send|Recv|Group|Gather|Scatter)|^gloo::|\bc10d::|"
            r"torch::comms::|^P?MPI_|^ucc_|^ucp_|^hccl|rccl",
            _COLLECTIVE,
        ),
        (r"_local_scalar_dense", _ITEM),
        (
            r"(?:cuda|cu|hip)(?:Stream|Device|Event|Ctx)Synchronize|cuda(?:Memcpy|Free|Malloc)|cuMemcpy|"
            r"copy_kernel_cuda|CUDACachingAllocator",
            _GPU,
        ),
        (r"\btake_gil$", _GIL),
        (r"gc_collect_|PyGC_Collect|gc_collect\b", _GC),
        (r"\b(?:fsync|fdatasync|sync_file_range|msync)$", _SYNC),
        (r"clock_nanosleep|\bnanosleep$|time_sleep|\bpysleep|\bsleep$|\busleep$", _SLEEP),
        (r"_io_TextIOWrapper_flush|buffered_?writer|\bwritev?$|^__write|_Py_write", _PIPE),
        (r"\bwait4$|\bwaitpid$|\bwaitid$", _PROCESS),
    )
)


@functools.lru_cache(maxsize=1 << 14)
def place_of(frame: Frame) -> Place | None:
    """The kind of place of one frame; None for one that says nothing, as the user's own code."""
    if frame.is_native:
        return next((place for pattern, place in _NATIVE if pattern.search(frame.function)), None)
    if frame.is_torch and (found := _of_torch(frame)):
        return found
    place = next((place for is_in, place in _FILES if is_in(frame.file)), None)
    return place or _of_library(frame) or _by_name(frame)


def _of_torch(frame: Frame) -> Place | None:
    if "torch/distributed/" in frame.file:
        if frame.name in _SET_UP_NAMES:
            return _SET_UP_NAMES[frame.name]
        if frame.name == "destroy_process_group":
            return _TEAR_DOWN
    if frame.name == "synchronize" and "torch/cuda/" in frame.file:
        return _GPU
    if frame.name == "_engine_run_backward":
        return _BACKWARD
    return None


def _of_library(frame: Frame) -> Place | None:
    if not frame.is_interpreter:
        return None
    return next((place for end, place in _LIBRARY_FILES if _ends(frame.file, end)), None)


def _ends(file: str, end: str) -> bool:
    return file == end or file.endswith("/" + end)


def _by_name(frame: Frame) -> Place | None:
    if _LOADER_NAMES.fullmatch(frame.name):
        return _LOADER
    if frame.name in _CHECKPOINT_NAMES:
        return _CHECKPOINT
    return _GC if "GarbageCollection" in frame.function else None
