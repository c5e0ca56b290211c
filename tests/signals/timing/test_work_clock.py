"""Work and waiting on CUDA, by events that are asked and never waited for; stand-ins are all we have here."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from train_ledger.signals.timing import work_clock
from train_ledger.signals.timing.collectives import Collectives
from train_ledger.signals.timing.timeline import CudaTimeline, WallTimeline, timeline


class Stream:
    """torch.cuda.Stream as far as it is used."""

    def __init__(self, number: int) -> None:
        self.cuda_stream = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.cuda_stream == self.cuda_stream

    __hash__ = None  # type: ignore[assignment]

    def wait_event(self, event: Any) -> None:
        event()

    def wait_stream(self, stream: Stream) -> None:
        stream.drain()

    def drain(self) -> None:
        """What is left to do on it."""


class Event:
    gpu: Gpu

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing
        self.gpu.made += 1

    def record(self) -> None:
        if self.gpu.broken:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        self.at = self.gpu.now_ms

    def query(self) -> bool:
        return self.at <= self.gpu.finished_ms

    def elapsed_time(self, end: Any) -> float:
        assert self.query(), "an event that the GPU has not passed must not be read"
        assert end.query(), "an event that the GPU has not passed must not be read"
        return float(end.at - self.at)

    def synchronize(self) -> None:
        raise AssertionError("the training was made to wait for the GPU")


class Group:
    """A process group whose collectives take 30 ms of the stream on which they run."""

    gpu: Gpu

    def __init__(self) -> None:
        self.number = 0

    def _get_sequence_number_for_group(self) -> int:
        return self.number

    def allreduce(self, tensors: list[Any], opts: Any) -> Work:
        self.number += 1
        work = Work(30.0 if opts.asyncOp else 0.0)
        if not opts.asyncOp and self.gpu.stream == Stream(0):
            self.gpu.work(30.0)
        return work


class Work:
    gpu: Gpu

    def __init__(self, left_ms: float) -> None:
        self.left_ms = left_ms

    def wait(self) -> bool:
        self.gpu.work(self.left_ms)
        return True


class Gpu:
    """The device, and torch.cuda; `now_ms` is when it does what is put on the training stream next."""

    def __init__(self) -> None:
        self.now_ms = self.finished_ms = 0.0
        self.stream = Stream(0)
        self.capturing = self.broken = False
        self.made = 0
        self.Stream = type(
            "Stream", (Stream,), {it: vars(Stream)[it] for it in ("wait_event", "wait_stream")}
        )
        self.Event = type("Event", (Event,), {"gpu": self})

    def work(self, took_ms: float) -> None:
        self.now_ms += took_ms

    def finish(self) -> None:
        """All that was asked for is done; what comes next takes a little."""
        self.finished_ms = self.now_ms
        self.work(1.0)

    def is_initialized(self) -> bool:
        return True

    def current_stream(self) -> Stream:
        return self.stream

    def is_current_stream_capturing(self) -> bool:
        return self.capturing


@pytest.fixture(autouse=True)
def every_step_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """However short the steps of a test are."""
    monkeypatch.setattr(work_clock, "_SHARE", 1e9)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    made = Gpu()
    group, work = type("ProcessGroup", (Group,), dict(vars(Group))), type("Work", (Work,), dict(vars(Work)))
    group.gpu = Work.gpu = work.gpu = made  # type: ignore[attr-defined]
    the_group = made.group = group()  # type: ignore[attr-defined]
    torch = SimpleNamespace(
        cuda=made,
        _C=SimpleNamespace(_current_graph_task_id=lambda: -1),
        compiler=SimpleNamespace(is_compiling=lambda: False),
    )
    modules = {
        "torch": torch,
        "torch._C": torch._C,
        "torch.distributed": SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True),
        "torch._C._distributed_c10d": SimpleNamespace(ProcessGroup=group, Work=work),
        "torch.distributed.distributed_c10d": SimpleNamespace(_world=SimpleNamespace(pg_map={the_group: 0})),
        "torch.nn.modules.module": SimpleNamespace(),
        "torch.nn.parallel.distributed": SimpleNamespace(),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sys.modules[__name__], "Work", work)
    return made


def all_reduce(gpu: Gpu, asynchronous: bool = False) -> Any:
    work = gpu.group.allreduce([], SimpleNamespace(asyncOp=asynchronous))  # type: ignore[attr-defined]
    if not asynchronous:
        work.wait()
    return work


@pytest.fixture
def collectives(gpu: Gpu) -> Any:
    made = Collectives(lambda about, message: None)
    made.step()
    yield made
    made.close()


def seconds(work: float, waited: float) -> dict[str, float]:
    return pytest.approx({"compute_s": work, "comm_wait_s": waited})  # type: ignore[return-value]


def test_a_step_is_read_a_step_later(gpu: Gpu, collectives: Collectives) -> None:
    gpu.work(100)
    all_reduce(gpu)
    assert collectives.step() == {}
    gpu.finish()
    assert collectives.step() == seconds(0.100, 0.030)
    assert collectives.method == "cuda_events"


def test_an_asynchronous_one_counts_where_it_is_waited_for(gpu: Gpu, collectives: Collectives) -> None:
    work = all_reduce(gpu, asynchronous=True)
    gpu.work(100)
    work.left_ms = 5.0  # the rest ran beside the work
    work.wait()
    collectives.step()
    gpu.finish()
    assert collectives.step() == seconds(0.100, 0.005)


def test_a_gpu_that_is_behind_is_asked_later_for_the_newest_step(gpu: Gpu, collectives: Collectives) -> None:
    for took in (100, 200, 300):
        gpu.work(took)
        assert collectives.step() == {}
    gpu.finish()
    assert collectives.step() == seconds(0.300, 0.0)


def test_data_is_no_work_of_the_step(gpu: Gpu, collectives: Collectives) -> None:
    assert collectives.clock.enter_apart()
    gpu.work(40)  # the GPU has nothing to do while the host waits for data
    collectives.clock.leave_apart()
    gpu.work(100)
    collectives.step()
    gpu.finish()
    assert collectives.step() == seconds(0.100, 0.0)


def test_what_runs_aside_counts_where_the_training_stream_waits_for_it(
    gpu: Gpu, collectives: Collectives
) -> None:
    training, aside = gpu.Stream(0), gpu.Stream(7)
    gpu.stream = aside
    all_reduce(gpu)
    gpu.stream = training
    gpu.work(100)
    aside.drain = lambda: gpu.work(20)
    training.wait_stream(aside)
    collectives.step()
    gpu.finish()
    assert collectives.step() == seconds(0.100, 0.020)


def test_who_waits_for_what_runs_aside_was_not_seen_has_no_figures(
    gpu: Gpu, collectives: Collectives
) -> None:
    gpu.stream = gpu.Stream(7)
    all_reduce(gpu)
    gpu.stream = gpu.Stream(0)
    gpu.work(100)
    collectives.step()
    gpu.finish()
    assert collectives.step() == {}


def test_another_stream_that_only_copies_is_no_wait_for_ranks(gpu: Gpu, collectives: Collectives) -> None:
    copying = gpu.Stream(9)
    copying.drain = lambda: gpu.work(20)
    gpu.Stream(0).wait_stream(copying)
    collectives.step()
    gpu.finish()
    assert collectives.step() == seconds(0.020, 0.0)


def test_nothing_is_recorded_into_a_graph(gpu: Gpu, collectives: Collectives) -> None:
    gpu.capturing = True
    made = gpu.made
    all_reduce(gpu)
    assert gpu.made == made
    gpu.capturing = False


def test_a_cuda_error_is_the_trainings_to_meet(gpu: Gpu, collectives: Collectives) -> None:
    gpu.broken = True
    all_reduce(gpu)
    assert collectives.step() == {}
    gpu.broken = False
    all_reduce(gpu)
    gpu.finish()
    assert collectives.step() == {}


def test_a_thread_beside_the_training_is_not_timed(gpu: Gpu, collectives: Collectives) -> None:
    thread = threading.Thread(target=all_reduce, args=(gpu, False))
    thread.start()
    thread.join()
    collectives.step()
    gpu.finish()
    assert collectives.step() == {}, "the training may have waited for the thread"


def test_a_step_of_a_thousand_waits_has_no_figures(gpu: Gpu, collectives: Collectives) -> None:
    for _ in range(2000):
        all_reduce(gpu)
    collectives.step()
    gpu.finish()
    assert collectives.step() == {}
    assert gpu.made < 3000


def test_many_waits_in_short_steps_are_timed_in_some_of_them(
    gpu: Gpu, collectives: Collectives, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_clock, "_SHARE", 0.0005)
    now_s = iter(number * 0.02 for number in range(1_000))
    monkeypatch.setattr(work_clock, "time", SimpleNamespace(perf_counter=lambda: next(now_s)))
    told = []
    for _ in range(60):
        for _ in range(100):  # stamps of 2 ms in a step of 20 ms: one step in fifty or so may have them
            all_reduce(gpu)
        gpu.finish()
        told.append(collectives.step())
    measured = [it for it in told if it]
    assert 1 <= len(measured) <= 5
    assert measured == [seconds(0.001, 3.0)] * len(measured)


def test_a_synchronous_one_is_timed_as_a_whole(gpu: Gpu, collectives: Collectives) -> None:
    made = gpu.made
    all_reduce(gpu)
    assert gpu.made == made + 2


def test_events_are_used_again(gpu: Gpu, collectives: Collectives) -> None:
    for _ in range(50):
        all_reduce(gpu)
        gpu.finish()
        collectives.step()
    assert gpu.made <= 12


def test_an_accelerator_that_is_none_of_cudas_has_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    def torch_of(kind: str | None) -> Any:
        device = None if kind is None else SimpleNamespace(type=kind)
        accelerator = SimpleNamespace(current_accelerator=lambda: device)
        return SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: False), accelerator=accelerator)

    for kind, made in ((None, WallTimeline), ("cuda", WallTimeline), ("xpu", type(None))):
        monkeypatch.setitem(sys.modules, "torch", torch_of(kind))
        assert isinstance(timeline(), made)


def test_cuda_is_taken_where_it_is_initialised(gpu: Gpu) -> None:
    assert isinstance(timeline(), CudaTimeline)


def test_ranks_that_rest_for_different_times_still_time_the_same_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else one rank has figures of the odd steps, its peers of the even ones, and nobody stands out."""
    now_s = iter(number * 0.03 for number in range(1_000_000))
    monkeypatch.setattr(work_clock, "time", SimpleNamespace(perf_counter=lambda: next(now_s)))
    monkeypatch.setattr(work_clock, "_SHARE", 0.0005)
    monkeypatch.setattr(work_clock, "_STEP_S", 4e-5)
    timed = []
    for pair_s, begins_at in ((0.0, 0), (2.5e-5, 1), (1.2e-4, 2)):
        clock = work_clock.WorkClock()
        steps = set()
        for step in range(1, 201):
            if step == 5 + begins_at:  # each rank finds out on its own which clock it has
                clock.line = SimpleNamespace(
                    now=lambda: 0.0, passed=lambda stamp: True, between=lambda start, end: 1.0, pair_s=pair_s
                )
            clock.end_wait(clock.begin_wait())
            if "compute_s" in clock.step(whole=True):
                steps.add(step)
        timed.append(steps)
    most, some, fewest = sorted(timed, key=len, reverse=True)
    assert len(most) > len(some) > len(fewest) > 10
    assert fewest - {min(fewest)} <= some
    assert some - {min(some)} <= most
