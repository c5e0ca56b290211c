"""Kernels are told apart by what profilers of all makers call them."""

from __future__ import annotations

import re

import pytest

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
        ("torch/utils/checkpoint.py(1112): unpack_hook", Doing.RECOMPUTE),
        ("torch/distributed/checkpoint/state_dict_saver.py(80): save", Doing.CHECKPOINT_SAVE),
        ("autograd::engine::evaluate_function: MmBackward0", Doing.BACKWARD),
    ],
)
def test_what_the_host_does(name: str, what: Doing) -> None:
    assert doing(name) is what
