"""How fast do signal lines become metrics, beside the seed's exporter and mtail, and what does a scrape wait?

    python bench/follow_lines.py                            8 ranks × 64 MB; minutes, for the seed's exporter
    python bench/follow_lines.py --ranks 1024 --mb 0.25 --fields 30
    python bench/follow_lines.py --only train-ledger

Lines are written first and lie in the page cache when they are read. Each program reads all of them once, one
program after the other: ours as `train-ledger export` does (told to read large files whole, too), mtail in
its one-shot mode with one regular expression for each of ten fields, and the seed's exporter, whose code is
taken from the article where that lies beside the repository, until its first pass is through. Then ours is
scraped over loopback: while it reads the same files, which grew behind its back, and while every rank writes
one line a second.
"""

from __future__ import annotations

import argparse
import http.client
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from process_tree import Run, run

from train_ledger.config import Config
from train_ledger.dash import exporter as exporter_module
from train_ledger.fields import FIELDS
from train_ledger.run_dir import RunDir

_SEED = Path(__file__).parents[2] / "shared" / "seed"
_SEED_BEGINS, _SEED_ENDS = "#!/usr/bin/env python3\n", "\n    tail(a.dir)\n"
_TO_ITS_END = """
import runpy, sys, time
def end(seconds): raise SystemExit
time.sleep = end
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""The seed's exporter sleeps when it has read all files, and only then."""

_T0 = time.time()
_STEP_S = 0.002
"""So the last line is of now, however many there are: figures of ranks that are silent are not shown."""

_BODIES = 97
_MTAIL_FIELDS = 10
_HEAD_LINES = 100
_NAMES = [field.name for field in FIELDS.values() if field.layer != "launcher"]
_USUAL = (
    "loss", "grad_norm", "param_norm", "lr", "step_time_s", "tps", "tflops", "mfu", "data_wait_s", "fwd_s",
    "bwd_s", "mem_allocated_peak", "mem_reserved_peak", "num_alloc_retries", "skipped", "consumed_samples",
)  # fmt: skip


def lines(rank: int, names: list[str], first: int, count: int) -> list[bytes]:
    """Step lines as the logger writes them."""
    bodies = [
        ", ".join(f'"{name}": {_value(name, place + 7 * rank)}' for name in names) for place in range(_BODIES)
    ]
    line = '{{"t": {t:.6f}, "step": {step}, "rank": {rank}, "attempt": 0, {body}}}\n'
    return [
        line.format(t=_T0 + step * _STEP_S, step=step, rank=rank, body=bodies[step % _BODIES]).encode()
        for step in range(first, first + count)
    ]


def _value(name: str, place: int) -> str:
    if name.startswith("mem_"):
        return str(64_424_509_440 + place * 4096)
    if FIELDS[name].kind == "counter":
        return str(place)
    return str(1.0 + place * 0.000_127_3) if name == "step_time_s" else repr(2.0 + place / 773.0)


def write_run(folder: Path, ranks: int, bytes_each: int, names: list[str]) -> int:
    """A run's signal files; how many lines there are."""
    run_dir = RunDir(folder)
    run_dir.signals.mkdir(parents=True)
    total = 0
    for rank in range(ranks):
        count = max(_HEAD_LINES + 1, bytes_each // len(lines(rank, names, 1, 1)[0]))
        start = {
            "t": _T0,
            "rank": rank,
            "event": "run_start",
            "host": f"node{rank // 8}",
            "world_size": ranks,
        }
        with run_dir.signals_of(rank).open("wb") as file:
            file.write(json.dumps(start).encode() + b"\n")
            file.writelines(lines(rank, names, 1, count))
        total += count + 1
    return total


# -- who reads


def commands(folder: Path, scratch: Path, names: list[str]) -> dict[str, list[str] | str]:
    """What is run, or why it is not, by what the table calls it."""
    signals = RunDir(folder).signals
    return {
        "train-ledger": [sys.executable, __file__, "--read", str(folder)],
        "seed's exporter": _seed(signals, scratch),
        "mtail": _mtail(signals, scratch, names),
    }


def _seed(signals: Path, scratch: Path) -> list[str] | str:
    for article in sorted(_SEED.glob("*.txt")) if _SEED.is_dir() else ():
        text = article.read_text(encoding="utf-8")
        start, end = text.find(_SEED_BEGINS), text.find(_SEED_ENDS)
        if 0 <= start < end:
            program = scratch / "exporter.py"
            program.write_text(text[start : end + len(_SEED_ENDS)], encoding="utf-8")
            return [sys.executable, "-c", _TO_ITS_END, str(program), "--dir", str(signals), "--port", "19466"]
    return "the article does not lie beside the repository"


def _mtail(signals: Path, scratch: Path, names: list[str]) -> list[str] | str:
    if shutil.which("mtail") is None:
        return "mtail is not installed"
    fields = names[:_MTAIL_FIELDS]
    gauges = "".join(f"gauge train_{name} by rank\n" for name in fields)
    takes = "".join(
        f'  /"{name}": (?P<value>[-+0-9.e]+)/ {{\n    train_{name}[$rank] = float($value)\n  }}\n'
        for name in fields
    )
    program = scratch / "signals.mtail"
    program.write_text(f'{gauges}/"rank": (?P<rank>\\d+)/ {{\n{takes}}}\n')
    return ["mtail", "--one_shot", "--progs", str(program), "--logs", f"{signals}/*.jsonl"]


def compare(folder: Path, scratch: Path, names: list[str], total: int, only: set[str]) -> None:
    """Each program once, and the table."""
    print(f"{'':16}    lines/s  lines/CPU s   CPU s  wall s   peak MB   ours / it, by CPU")
    ours: Run | None = None
    for name, command in commands(folder, scratch, names).items():
        if only and name not in only:
            continue
        if isinstance(command, str):
            print(f"{name:16}  skipped: {command}")
            continue
        done = run(command)
        ours = ours or done
        speeds = f"{total / done.wall_s:9,.0f}    {total / done.cpu_s:9,.0f}"
        times = f"{done.cpu_s:6.2f}  {done.wall_s:6.2f}  {done.peak_bytes / 1e6:8.0f}"
        print(f"{name:16}  {speeds}  {times}   {done.cpu_s / ours.cpu_s:6.1f}")
        if name == "train-ledger":
            print(f"{'':16}  {done.said.strip()}")


def read(folder: Path) -> None:
    """Read all files into metrics once; says how long that took without the start of the interpreter."""
    exporter = _exporter(folder)
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    while not exporter.poll():
        pass
    cpu_s, wall_s = time.process_time() - began_cpu_s, time.perf_counter() - began_s
    series = len((exporter.metrics() or "").splitlines())
    print(f"of these {cpu_s:.2f} s CPU and {wall_s:.2f} s in all for reading; {series:,} lines of metrics")


def _exporter(folder: Path) -> exporter_module.Exporter:
    exporter_module._WHOLE_BYTES = 1 << 62  # else only the ends of what is large are read
    return exporter_module.Exporter(RunDir(folder), Config())


# -- what a scrape waits


def serve(folder: Path) -> None:
    """Export until standard input ends, as the command line does; tells what each reading took."""
    exporter = _exporter(folder)
    while not exporter.poll():
        pass
    with exporter.serve(port=0) as url:
        print(url, flush=True)
        for _ in sys.stdin:
            began_s, began_cpu_s = time.perf_counter(), time.process_time()
            while not exporter.poll():
                pass
            print(time.perf_counter() - began_s, time.process_time() - began_cpu_s, _peak_mb(), flush=True)


def _peak_mb() -> float:
    status = Path("/proc/self/status").read_text()  # getrusage would count the process that forked us
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


class Scrapes:
    """Scrapes in a thread while the context lasts; `waits_s` is how long each took."""

    def __init__(self, url: str) -> None:
        self._address = urlsplit(url).netloc
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._scrape)
        self.waits_s: list[float] = []

    def __enter__(self) -> Scrapes:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _scrape(self) -> None:
        while not self._over.wait(0.02):
            began_s = time.perf_counter()
            connection = http.client.HTTPConnection(self._address, timeout=30)
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            size = len(answer.read())
            connection.close()
            if answer.status != 200 or not size:
                raise SystemExit(f"a scrape was answered with {answer.status}")
            self.waits_s.append(time.perf_counter() - began_s)

    def __str__(self) -> str:
        waits = sorted(self.waits_s)
        p50, p99 = waits[len(waits) // 2], waits[min(len(waits) - 1, len(waits) * 99 // 100)]
        figures = f"p50 {p50 * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms, longest {waits[-1] * 1e3:.1f} ms"
        return f"{figures} of {len(waits)} scrapes"


def scrape(folder: Path, scratch: Path, names: list[str], ranks: int, from_step: int, steady_s: int) -> None:
    """Scrapes while a backlog is read and while lines trickle in."""
    grown = RunDir(scratch / "grown")
    grown.signals.mkdir(parents=True)
    rests: dict[int, bytes] = {}
    for rank in range(ranks):
        content = RunDir(folder).signals_of(rank).read_bytes()
        head = content.find(b"\n", 20_000) + 1
        grown.signals_of(rank).write_bytes(content[:head])
        rests[rank] = content[head:]
    command = [sys.executable, __file__, "--serve", str(grown.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdin is None or process.stdout is None:
            raise SystemExit("no pipes")
        url = process.stdout.readline().strip()
        for rank, rest in rests.items():
            with grown.signals_of(rank).open("ab") as file:
                file.write(rest)
        rests.clear()
        with Scrapes(url) as reading:
            wall_s, cpu_s, peak = _turn(process)
        print(f"while reading a backlog ({wall_s:.1f} s, {cpu_s:.1f} s CPU, peak {peak:.0f} MB): {reading}")
        with Scrapes(url) as steady:
            for second in range(steady_s):
                began_s = time.perf_counter()
                for rank in range(ranks):
                    with grown.signals_of(rank).open("ab") as file:
                        file.writelines(lines(rank, names, from_step + second, 1))
                wall_s, cpu_s, peak = _turn(process)
                time.sleep(max(0.0, 1.0 - (time.perf_counter() - began_s)))
        print(f"at a line a rank and second (a look: {cpu_s * 1e3:.0f} ms CPU, peak {peak:.0f} MB): {steady}")
        process.stdin.close()


def _turn(process: subprocess.Popen[str]) -> tuple[float, float, float]:
    if process.stdin is None or process.stdout is None:
        raise SystemExit("no pipes")
    process.stdin.write("\n")
    process.stdin.flush()
    wall_s, cpu_s, peak = map(float, process.stdout.readline().split())
    return wall_s, cpu_s, peak


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--mb", type=float, default=64.0, help="MiB for each rank")
    parser.add_argument("--fields", type=int, default=len(_USUAL), help="besides t, step, rank and attempt")
    parser.add_argument("--only", action="append", default=[], help="a program of the table; may be repeated")
    parser.add_argument("--steady", type=int, default=10, help="seconds of one line a rank and second")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    sys.setswitchinterval(0.0005)  # whoever scrapes is not to wait for the lines that are made beside it
    if asked.read or asked.serve:
        read(asked.read) if asked.read else serve(asked.serve)
        return
    names = list(dict.fromkeys((*_USUAL, *_NAMES)))[: asked.fields]
    with tempfile.TemporaryDirectory() as name:
        folder, scratch = Path(name) / "run", Path(name) / "scratch"
        scratch.mkdir()
        total = write_run(folder, asked.ranks, int(asked.mb * (1 << 20)), names)
        size = len(lines(0, names, 1000, 1)[0])
        lines_are = f"{total:,} lines of {size} bytes, {len(names) + 4} fields"
        print(f"{asked.ranks} ranks × {asked.mb:g} MiB: {lines_are}")
        compare(folder, scratch, names, total, set(asked.only))
        if not asked.only or "train-ledger" in asked.only:
            scrape(folder, scratch, names, asked.ranks, total // asked.ranks, asked.steady)


if __name__ == "__main__":
    main()
