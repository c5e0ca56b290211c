"""How long does it take to read a trace and to say where its time went, and in how much memory?

    python bench/trace_breakdown.py --traces FOLDER [--other-python PYTHON] [--made-mb 1000]

Each reading is a process of its own, so that its memory can be told: the median of three rounds, the two
tools in turn. PYTHON is one whose environment has HolisticTraceAnalysis and pandas 2; it does the same things
by its public interface: load, temporal breakdown, overlap of communication and computation. What it takes to
start Python and import is not counted; memory is that of the whole process at its largest. "s" is by the
wall's clock, "cpu" is the processor's time, which tells more on a machine that others use as well.

The large trace is made: steps of 400 operators of the host with their Python frames, launches and kernels.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

OURS = """
import sys, time, resource, json
from pathlib import Path
from train_ledger.headway import heard_by
from train_ledger.slow.trace.breakdown import breakdown
begin, cpu_begin = time.perf_counter(), time.process_time()
told = []
with heard_by(told.append):
    found = breakdown([Path(sys.argv[1])])
took, cpu = time.perf_counter() - begin, time.process_time() - cpu_begin
[rank] = found.ranks.values()
exact = all(sum(v or 0 for v in s.buckets_ns.values()) == s.window_ns for s in rank.steps)
print(json.dumps({"s": took, "cpu": cpu, "kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    "compute_us": rank.activity.compute_ns / 1000, "bytes": rank.trace.text_bytes, "told": len(told),
    "steps": len(rank.steps), "exact": exact, "kernels": len(rank.trace.gpu)}))
"""

THEIRS = """
import sys, time, resource, json, warnings, logging
warnings.simplefilter("ignore"); logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
begin, cpu_begin = time.perf_counter(), time.process_time()
found = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="")
temporal = found.get_temporal_breakdown(visualize=False)
overlap = found.get_comm_comp_overlap(visualize=False)
took, cpu = time.perf_counter() - begin, time.process_time() - cpu_begin
print(json.dumps({"s": took, "cpu": cpu, "kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    "compute_us": float(temporal["compute_time(us)"].iloc[0])}))
"""


def run(python: str, code: str, path: Path) -> dict[str, float]:
    told = subprocess.run(
        [python, "-c", code, str(path.resolve())],
        capture_output=True,
        text=True,
        check=True,
        cwd=tempfile.gettempdir(),
    )
    found: dict[str, float] = json.loads(told.stdout.splitlines()[-1])
    return found


def both(path: Path, python: str, rounds: int) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(run(sys.executable, OURS, path))
        theirs.append(run(python, THEIRS, path))
    return ours, theirs


def middle(rounds: list[dict[str, float]], key: str) -> float:
    return statistics.median(it[key] for it in rounds)


def compare(traces: Path, python: str, rounds: int) -> None:
    print(f"{'':22}text MB   ours s   cpu    HTA s   cpu   times faster (cpu)   ours MiB   HTA MiB   part")
    for path in sorted(traces.glob("*.json.gz")):
        try:
            ours, theirs = both(path, python, rounds)
        except subprocess.CalledProcessError as error:
            alone = run(sys.executable, OURS, path)
            why = error.stderr.strip().splitlines()[-1][:40]
            print(f"{path.name[:21]:22}{alone['bytes'] / 1e6:7.1f} {alone['s']:8.2f}   HTA stops: {why}")
            continue
        one, other = ({key: middle(it, key) for key in ("s", "cpu", "kib")} for it in (ours, theirs))
        print(
            f"{path.name[:21]:22}{ours[0]['bytes'] / 1e6:7.1f} {one['s']:8.2f} {one['cpu']:5.2f}"
            f" {other['s']:8.2f} {other['cpu']:5.2f}"
            f" {other['s'] / one['s']:14.1f} ({other['cpu'] / one['cpu']:.1f})"
            f" {one['kib'] / 1024:10.0f} {other['kib'] / 1024:9.0f} {one['kib'] / other['kib']:6.2f}"
        )


def make(path: Path, bytes_wanted: int) -> None:
    """A trace of so much text: steps of 400 operators, four Python frames, one launch, one kernel each."""
    with path.open("w") as file:
        file.write('{"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 8}, "traceEvents": [\n')
        step = correlation = 0
        t = 1_744_000_000_000_000_000
        while file.tell() < bytes_wanted:
            t, correlation = _step(file, step, t, correlation)
            step += 1
        file.write('{"ph": "M", "name": "process_name", "pid": 0, "ts": 0, "args": {"name": "python"}}\n]}\n')


def _step(file: IO[str], step: int, t: int, number: int) -> tuple[int, int]:
    begin = t
    for place in range(400):
        number += 1
        for depth in range(4):
            name = f"torch/nn/modules/module.py({1500 + depth}): _call_impl"
            args = f'"Python parent id": {number}, "Python id": {number + depth}'
            _write(file, "python_function", name, (4000, 4000), t + depth, 60_000 - 9 * depth, args)
        args = (
            f'"External id": {number}, "Sequence number": {number}, "Fwd thread id": 0, '
            '"Input Dims": [[4096, 8192], [8192, 8192]], "Input type": ["c10::BFloat16", "c10::BFloat16"]'
        )
        _write(file, "cpu_op", f"aten::mm_{place % 40}", (4000, 4000), t + 9000, 40_000, args)
        args = f'"External id": {number}, "cbid": 211, "correlation": {number}'
        _write(file, "cuda_runtime", "cudaLaunchKernel", (4000, 4000), t + 20_000, 6_123, args)
        stream = 20 if place % 20 == 19 else 7
        name = "ncclDevKernel_AllReduce_Sum_bf16" if stream == 20 else f"ampere_bf16_gemm_{place % 40}"
        args = (
            f'"External id": {number}, "queued": 0, "device": 0, "context": 1, "stream": {stream}, '
            f'"correlation": {number}, "registers per thread": 96, "grid": [24, 1, 1], "block": [640, 1, 1]'
        )
        _write(file, "kernel", name, (0, stream), t + 300_000, 61_777, args)
        t += 70_001
    _write(file, "user_annotation", f"ProfilerStep#{step}", (4000, 4000), begin, t - begin, '"Ev Idx": 1')
    return t, number


def _write(
    file: IO[str], cat: str, name: str, at: tuple[int, int], start: int, length: int, args: str
) -> None:
    file.write(
        f'{{"ph": "X", "cat": "{cat}", "name": "{name}", "pid": {at[0]}, "tid": {at[1]}, '
        f'"ts": {start // 1000}.{start % 1000:03}, "dur": {length // 1000}.{length % 1000:03}, '
        f'"args": {{{args}}}}},\n'
    )


def large(megabytes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.json"
        make(path, megabytes * 1_000_000)
        found = run(sys.executable, OURS, path)
    read = found["bytes"] / 1e6
    print(
        f"made, {read:,.0f} MB, {found['kernels']:,.0f} kernels, {found['steps']:.0f} steps: "
        f"{found['s']:.1f} s, "
        f"{read / found['s']:.0f} MB/s (of processor time {read / found['cpu']:.0f} MB/s), "
        f"{found['kib'] / 1024:.0f} MiB, progress told {found['told']:.0f} times, "
        f"sums exact: {bool(found['exact'])}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--traces", type=Path, help="folder of traces to compare on")
    parser.add_argument("--other-python", help="a Python with HolisticTraceAnalysis")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--made-mb", type=int, default=1000, help="0: none")
    asked = parser.parse_args()
    if asked.traces and asked.other_python:
        compare(asked.traces, asked.other_python, asked.rounds)
    if asked.made_mb:
        large(asked.made_mb)


if __name__ == "__main__":
    main()
