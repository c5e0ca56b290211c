"""Which kind of place a rank stands in, told from frames as real stacks have them."""

from __future__ import annotations

import pytest

from train_ledger.hang.stacks import Frame, RankStack, Thread, stand_of

SITE = "/opt/venv/lib/python3.11/site-packages"
LIB = "/usr/lib/python3.11"
C10D = f"{SITE}/torch/distributed/distributed_c10d.py"
USER = ("/job/train.py", 90, "train_step")

Frames = list[tuple[str, int, str]]


def stand(*frames: tuple[str, int, str]) -> tuple[str, str]:
    found = stand_of(RankStack(0, 1, None, (Thread("MainThread", True, tuple(Frame(*it) for it in frames)),)))
    return found.where, found.kind


COLLECTIVES: dict[str, Frames] = {
    "Python": [(C10D, 3252, "all_reduce"), (f"{SITE}/torch/distributed/c10d_logger.py", 83, "wrapper"), USER],
    "short path": [("torch/distributed/distributed_c10d.py", 3252, "all_reduce"), USER],
    "functional": [(f"{SITE}/torch/distributed/_functional_collectives.py", 137, "wait_tensor"), USER],
    "gloo": [
        ("libc.so.6", 0, "pthread_cond_wait"),
        ("libtorch_cpu.so", 0, "gloo::transport::tcp::UnboundBuffer::waitRecv"),
        USER,
    ],
    "handle.wait()": [
        ("libc.so.6", 0, "clock_nanosleep"),
        ("libtorch_cuda.so", 0, "c10d::ProcessGroupNCCL::WorkNCCL::synchronizeInternal"),
        USER,
    ],
    "blocking wait": [
        ("libcudart.so.12", 0, "cudaStreamSynchronize"),
        ("libtorch_cuda.so", 0, "c10d::ProcessGroupNCCL::WorkNCCL::wait"),
        USER,
    ],
    "NCCL": [("libnccl.so.2", 0, "ncclGroupEnd"), USER],
    "torchcomms": [("libtorchcomms.so", 0, "torch::comms::TorchCommNCCL::all_reduce"), USER],
    "of a checkpoint": [
        (C10D, 3252, "all_gather_object"),
        (f"{SITE}/torch/distributed/checkpoint/state_dict_saver.py", 1, "save"),
        USER,
    ],
    "pipeline": [(f"{SITE}/megatron/core/pipeline_parallel/p2p_communication.py", 1, "_communicate"), USER],
}
SET_UPS: dict[str, Frames] = {
    "init": [(C10D, 1, "init_process_group"), USER],
    "group": [(C10D, 3252, "barrier"), (C10D, 5000, "new_group"), USER],
    "store": [
        ("libtorch_cpu.so", 0, "c10d::TCPStore::doWait"),
        (f"{SITE}/torch/distributed/rendezvous.py", 278, "_env_rendezvous_handler"),
        (C10D, 1, "init_process_group"),
        USER,
    ],
    "communicator": [("libnccl.so.2", 0, "ncclCommInitRankConfig"), (C10D, 3252, "all_reduce"), USER],
    "split": [("libnccl.so.2", 0, "ncclCommSplit"), (C10D, 1, "split_group"), USER],
}
HOST: dict[str, tuple[str, Frames]] = {
    "worker queue": (
        "loader",
        [
            (f"{LIB}/selectors.py", 415, "select"),
            (f"{LIB}/multiprocessing/connection.py", 930, "wait"),
            (f"{SITE}/torch/utils/data/dataloader.py", 1251, "_try_get_data"),
            USER,
        ],
    ),
    "in the data set": (
        "loader",
        [
            ("libc.so.6", 0, "clock_nanosleep"),
            ("/job/data.py", 8, "__getitem__"),
            (f"{SITE}/torch/utils/data/_utils/fetch.py", 52, "fetch"),
            USER,
        ],
    ),
    "HF datasets": ("loader", [(f"{SITE}/datasets/iterable_dataset.py", 9, "__iter__"), USER]),
    "webdataset": ("loader", [(f"{SITE}/webdataset/tariterators.py", 9, "url_opener"), USER]),
    "streaming": ("loader", [(f"{SITE}/streaming/base/dataset.py", 9, "prepare_shard"), USER]),
    "item": ("gpu", [("libtorch_cuda.so", 0, "at::native::_local_scalar_dense_cuda"), USER]),
    "synchronize": ("gpu", [(f"{SITE}/torch/cuda/__init__.py", 1, "synchronize"), USER]),
    "copy": ("gpu", [("libcuda.so.1", 0, "cuStreamSynchronize"), ("x.so", 0, "copy_kernel_cuda"), USER]),
    "lock": ("lock", [(f"{LIB}/threading.py", 327, "wait"), USER]),
    "queue": ("lock", [(f"{LIB}/queue.py", 171, "get"), USER]),
    "lock file": ("lock", [(f"{SITE}/filelock/_api.py", 1, "acquire"), USER]),
    "interpreter's lock": ("lock", [("python3.11", 0, "x"), ("libpython3.11.so", 0, "take_gil"), USER]),
    "handler": (
        "log",
        [(f"{LIB}/threading.py", 1, "acquire"), (f"{LIB}/logging/__init__.py", 1, "emit"), USER],
    ),
    "print to a pipe": ("log", [("libc.so.6", 0, "write"), ("libpython3.11.so", 0, "_Py_write"), USER]),
    "torch.save": ("checkpoint", [(f"{SITE}/torch/serialization.py", 1, "_save"), USER]),
    "DCP": ("checkpoint", [(f"{SITE}/torch/distributed/checkpoint/filesystem.py", 1, "_write_item"), USER]),
    "safetensors": ("checkpoint", [(f"{SITE}/safetensors/torch.py", 1, "save_file"), USER]),
    "Megatron": (
        "checkpoint",
        [(f"{SITE}/megatron/core/dist_checkpointing/serialization.py", 1, "save"), USER],
    ),
    "fsync": ("checkpoint", [("libc.so.6", 0, "fsync"), USER]),
    "garbage": ("gc", [("libpython3.11.so", 0, "gc_collect_main"), USER]),
    "compile": (
        "compile",
        [
            (f"{LIB}/subprocess.py", 1, "wait"),
            (f"{SITE}/torch/_inductor/codecache.py", 1, "compile_file"),
            (f"{SITE}/torch/_inductor/compile_fx.py", 1, "compile_fx_inner"),
            USER,
        ],
    ),
    "sleep": ("sleep", [("libc.so.6", 0, "clock_nanosleep"), ("timemodule.c", 1, "time_sleep"), USER]),
    "child": ("process", [(f"{LIB}/subprocess.py", 1, "wait"), USER]),
    "network": (
        "io",
        [(f"{LIB}/ssl.py", 1, "read"), (f"{SITE}/urllib3/connection.py", 1, "getresponse"), USER],
    ),
    "tear down": ("tear_down", [(C10D, 2300, "destroy_process_group"), USER]),
    "own": ("own", [USER]),
}


@pytest.mark.parametrize("frames", COLLECTIVES.values(), ids=COLLECTIVES)
def test_a_wait_for_other_ranks(frames: Frames) -> None:
    assert stand(*frames) == ("collective", "collective")


@pytest.mark.parametrize("frames", SET_UPS.values(), ids=SET_UPS)
def test_a_collective_in_the_set_up_is_set_up(frames: Frames) -> None:
    assert stand(*frames) == ("set_up", "set_up")


@pytest.mark.parametrize(("kind", "frames"), HOST.values(), ids=HOST)
def test_host_code_is_told_by_what_it_is_for(kind: str, frames: Frames) -> None:
    assert stand(*frames) == ("host", kind)


@pytest.mark.parametrize(
    "around",
    [
        (f"{SITE}/loguru/_logger.py", 1297, "catch_wrapper"),
        (f"{LIB}/threading.py", 1002, "_bootstrap"),
        (f"{SITE}/mpi4py/run.py", 208, "main"),
        ("/data/datasets/train.py", 1, "main"),
        (f"{LIB}/asyncio/base_events.py", 1, "run_forever"),
    ],
)
def test_what_lies_around_the_whole_training_is_no_place_to_wait_at(around: tuple[str, int, str]) -> None:
    assert stand(USER, around) == ("host", "own")


def test_frames_of_c_that_say_nothing_accuse_nobody() -> None:
    assert stand(("libc.so.6", 0, "poll"), ("", 0, "??"))[0] == "unknown"


def engine(*frames: tuple[str, int, str]) -> Thread:
    return Thread("pt_autograd_0", False, tuple(Frame(*it) for it in frames))


def test_the_backward_pass_is_looked_for_in_its_own_thread() -> None:
    """On GPUs autograd runs hooks in a thread of its own, which C++ started."""
    main = Thread("MainThread", True, (Frame(f"{SITE}/torch/autograd/graph.py", 1, "_engine_run_backward"),))
    logger = Thread(
        "Thread-1", False, (Frame(f"{LIB}/queue.py", 1, "get"), Frame(f"{LIB}/threading.py", 1, "_bootstrap"))
    )
    hook = engine((C10D, 3252, "all_reduce"), ("/job/hooks.py", 3, "average"))
    assert stand_of(RankStack(0, 1, None, (main, logger))).kind == "backward"
    found = stand_of(RankStack(0, 1, None, (main, logger, hook)))
    assert (found.where, str(found.frame)) == ("collective", "hooks.py:3 average")


def test_at_its_gpu_a_rank_may_wait_for_the_others() -> None:
    frames = (Frame("libcudart.so.12", 0, "cudaStreamSynchronize"), Frame(*USER))
    found = stand_of(RankStack(0, 1, None, (Thread("MainThread", True, frames),)))
    assert (found.where, found.waits_for_others) == ("host", True)
