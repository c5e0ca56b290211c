"""Kernels are told apart by what profilers of all makers call them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.slow.trace.reading import names
from train_ledger.slow.trace.reading.names import Category, Doing, GpuClass, category, doing, gpu_class


@pytest.mark.parametrize(
    "name",
    [
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",
        "nccl:all_reduce",
        "rcclGenericKernel<1, false>",
        "msccl_kernel_all_reduce",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>",
        "nvshmemi_proxy_kernel",
    ],
)
def test_kernels_that_communicate(name: str) -> None:
    assert gpu_class(Category.KERNEL, name, None) is GpuClass.COMMUNICATION


@pytest.mark.parametrize(
    "name", ["ampere_bf16_s16816gemm", "triton_per_fused_sum", "void cutlass::Kernel<reduce>"]
)
def test_kernels_that_compute(name: str) -> None:
    assert gpu_class(Category.KERNEL, name, None) is GpuClass.COMPUTE


def test_what_its_arguments_call_a_collective_is_one_and_so_is_what_a_team_says() -> None:
    assert gpu_class(Category.KERNEL, "generic", "allreduce") is GpuClass.COMMUNICATION
    assert gpu_class(Category.KERNEL, "my_ring", None, [re.compile("my_ring")]) is GpuClass.COMMUNICATION


def test_copies_are_copies_in_whichever_category() -> None:
    assert gpu_class(Category.MEMORY, "Memset (Device)", None) is GpuClass.MEMORY
    assert gpu_class(Category.KERNEL, "Memcpy DtoD (Device -> Device)", None) is GpuClass.MEMORY


@pytest.mark.parametrize(
    ("cat", "kind"),
    [("Kernel", Category.KERNEL), ("hip_runtime", Category.LAUNCH), ("Trace", Category.OTHER)],
)
def test_categories_of_all_profilers(cat: str, kind: Category) -> None:
    assert category(cat) is kind


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("torch/utils/data/dataloader.py(701): __next__", Doing.DATA),
        ("cudaMalloc", Doing.ALLOCATOR),
        ("hipFree", Doing.ALLOCATOR),
        ("cudaMemcpyAsync", Doing.NOTHING),
        ("cudaStreamSynchronize", Doing.SYNC),
        ("CheckpointFunctionBackward", Doing.RECOMPUTE),
        ("<built-in function collect>", Doing.GARBAGE_COLLECTION),
        ("torch/utils/checkpoint.py(1112): unpack_hook", Doing.RECOMPUTE),
        ("torch/distributed/checkpoint/state_dict_saver.py(80): save", Doing.CHECKPOINT_SAVE),
        ("autograd::engine::evaluate_function: MmBackward0", Doing.BACKWARD),
    ],
)
def test_what_the_host_does(name: str, what: Doing) -> None:
    assert doing(name) is what


PARTS = [
    "enumerate(DataLoader)#", "DataLoader_x.__next__", "dataloader.py(9): ", "__next__", "_next_data",
    "get_batch", "next_batch", "fetching_batch", "data_loading", "load_batch", "save_checkpoint",
    "distributed/checkpoint/a.py(3): ", "save", "async_save", "checkpoint_save", "serialization.py(3): save",
    "gc.collect", "gc:", "garbage collection", "built-in function collect", "cudaMalloc", "hipFreeAsync",
    "cuMemMap", "cuCtxSynchronize", "cudaStreamSynchronize", "aten::item", "aten::_local_scalar_dense",
    "hipMemcpy", "CheckpointFunctionBackward", "checkpoint.py(3): recompute_fn", "recompute",
    "autograd::engine::evaluate_function", "torch/autograd/__init__.py(3): backward", "nccl:recv",
    "c10d::recv", "recv_forward", "p2p_communication", " ", "aten::mm", "_",
]  # fmt: skip
KERNELS = [
    "ncclDevKernel", "nccl:", "RCCL", "mscclKernel", "nvshmem", "oneccl", "hccl", "xccl", "nvls_", "gemm",
    "all2all_kernel", "cross_device_reduce", "custom_all_reduce", "custom_allreduce", "multimem_all",
    "symm_mem", "two_shot_all", "one_shot_all", "deep_ep", "internode::", "intranode::", "userbuffers",
    "all_reduce_kernel", "allgather_kernel", "reduce_scatter_kernel", "alltoall_kernel", "all_to_all_kernel",
    "sendrecv_kernel", "send_recv_kernel", " ",
]  # fmt: skip


@given(st.lists(st.sampled_from(KERNELS), min_size=1, max_size=3), st.booleans())
def test_no_kernel_that_communicates_is_passed_over(parts: list[str], upper: bool) -> None:
    name = "".join(parts).upper() if upper else "".join(parts)
    communicates = gpu_class(Category.KERNEL, name, None) is GpuClass.COMMUNICATION
    assert communicates is bool(names._COMMUNICATION.search(name))


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=3), st.booleans())
def test_no_name_that_a_pattern_fits_is_passed_over(parts: list[str], upper: bool) -> None:
    name = "".join(parts).upper() if upper else "".join(parts)
    fits = [kind for kind, pattern in names._DOINGS if pattern.search(name)]
    assert doing(name) is (fits[0] if fits else Doing.NOTHING)
