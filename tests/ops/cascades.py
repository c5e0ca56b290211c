"""Made runs in which one thing leads to another: logs of several hosts, kernels' lines, signals.

Everything is written as the programs themselves write it; times are real, so that order in a file and order
in time can differ.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from train_ledger.run_dir import RunDir

START_T = 1_790_000_000.0
"""2026-09-21 14:13:20 UTC."""


def stamp(t: float) -> str:
    """As torch's and torchrun's lines carry it: I0921 14:13:20.000000, by the local time."""
    return time.strftime("%m%d %H:%M:%S", time.localtime(t)) + f".{int(t % 1 * 1e6):06d}"


def glog(t: float) -> str:
    """As ProcessGroupNCCL's lines carry it: 921 14:13:20.000000000 (the month is not padded)."""
    return stamp(t).lstrip("0") + "000"


def traceback(rank: int, error: str, host: str = "", *, frame: str = "train.py") -> str:
    front = (f"{host}: " if host else "") + f"[rank{rank}]: "
    lines = (
        "Traceback (most recent call last):",
        f'  File "/job/{frame}", line 88, in <module>',
        "    go()",
        error,
    )
    return "".join(f"{front}{line}\n" for line in lines)


def timed_out(rank: int, t: float, host: str = "", *, seq: int = 2, ran_s: int = 600) -> str:
    front = (f"{host}: " if host else "") + f"[rank{rank}]:"
    return (
        f"{front}[E{glog(t)} ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog caught collective operation "
        f"timeout: WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran "
        f"for {ran_s * 1000 + 31} milliseconds before timing out.\n"
        f"{front}[E{glog(t)} ProcessGroupNCCL.cpp:2210] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  failure "
        f"detected by watchdog at work sequence id: {seq} PG status: last enqueued work: {seq}, last "
        f"completed work: {seq - 1}\n"
    )


def lost_peer(rank: int, host: str = "") -> str:
    return traceback(
        rank,
        "RuntimeError: [pair.cc:537] Read error [10.0.0.1]:16025: Connection reset by peer. This is "
        "typically caused by a remote worker hanging",
        host,
    )


def agent_ends(t: float, pids: dict[int, int], *, root: int, code: int, host: str = "n1") -> str:
    """torchrun's agent: one of its ranks failed, the others are ended, and the table at the end."""
    name = {-9: "Signal 9 (SIGKILL)", 1: "exit code 1"}.get(code, str(code))
    front = f"W{stamp(t)} 4 torch/distributed/elastic/multiprocessing/api.py:1028] "
    text = "".join(
        f"{front}Sending process {pid} closing signal SIGTERM\n" for rank, pid in pids.items() if rank != root
    )
    text += (
        f"E{stamp(t + 0.1)} 4 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: "
        f"{code}) local_rank: {root} (pid: {pids[root]}) of binary: /opt/python\n"
    )
    table = "".join(
        _row(number, rank, -15, pid, t, host)
        for number, (rank, pid) in enumerate(pids.items(), 1)
        if rank != root
    )
    return (
        f"{text}============\ntrain.py FAILED\n------------\nFailures:\n{table}------------\n"
        f"Root Cause (first observed failure):\n{_row(0, root, code, pids[root], t, host)}"
        f"  traceback : {name}\n"
    )


def _row(number: int, rank: int, code: int, pid: int, t: float, host: str) -> str:
    at = time.strftime("%Y-%m-%d_%H:%M:%S", time.localtime(t))
    return (
        f"[{number}]:\n  time      : {at}\n  host      : {host}\n  rank      : {rank} (local_rank: {rank})\n"
        f"  exitcode  : {code} (pid: {pid})\n  error_file: <N/A>\n"
    )


def iteration(step: int, t: float, loss: str = "2.5E+00", *, host: str = "") -> str:
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(t))
    return (
        (f"{host}: " if host else "")
        + f" [{at}] iteration {step:8d}/   90000 | consumed samples: {step * 64:12d} | elapsed time per "
        f"iteration (ms): 1000.0 | learning rate: 1.5E-04 | lm loss: {loss} | grad norm: 1.250 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def put_log(run: RunDir, text: str, written_t: float, name: str = "train.log") -> Path:
    path = run.logs / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (written_t, written_t))
    return path


def put_kernel_log(run: RunDir, host: str, lines: list[tuple[float, str]]) -> None:
    run.hardware.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{t:.6f} {host} kernel: {line}\n" for t, line in lines)
    (run.hardware / f"{host}.kern.log").write_text(text)


class Ranks:
    """The signals of a few ranks, written in the order of time."""

    def __init__(self, run: RunDir, world: int, hosts: int = 1, start_t: float = START_T) -> None:
        self.run, self.world, self.hosts, self.t = run, world, hosts, start_t
        self.attempt, self.step = 0, 0
        run.signals.mkdir(parents=True, exist_ok=True)
        self._files = [run.signals_of(rank).open("a") for rank in range(world)]

    def host(self, rank: int) -> str:
        return f"n{rank * self.hosts // self.world + 1}"

    def line(self, rank: int, *, late_s: float = 0.0, **content: object) -> None:
        told = {"t": self.t + late_s, "rank": rank, "attempt": self.attempt, "step": self.step, **content}
        self._files[rank].write(json.dumps(told) + "\n")
        self._files[rank].flush()

    def start(self, attempt: int = 0, step: int = 0) -> None:
        self.attempt, self.step = attempt, step
        for rank in range(self.world):
            here = {"host": self.host(rank), "pid": 1000 + rank, "gpu": rank % 8, "world_size": self.world}
            self.line(rank, event="run_start", pci=f"0000:{rank + 1:02x}:00", **here)

    def steps(self, count: int, *, loss: object = 2.0, each_s: float = 1.0, **own: object) -> None:
        for _ in range(count):
            self.step += 1
            self.t += each_s
            for rank in range(self.world):
                samples = {"consumed_samples": self.step * 64}
                self.line(rank, loss=loss, step_time_s=each_s, **samples, **own)

    def event(self, name: str, ranks: list[int] | None = None, **details: object) -> None:
        for rank in range(self.world) if ranks is None else ranks:
            self.line(rank, event=name, **details)

    def save(self, *, durable: bool = True) -> None:
        self.event("ckpt_start", [0])
        self.t += 2
        self.event("ckpt_saved", [0], duration_s=2.0, blocking_s=2.0, durable=durable)
