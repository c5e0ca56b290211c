"""How soon does the history of a long run stand on the page?

    python bench/history.py [--ranks 8] [--steps 500000] [--folder DIR]

Makes a run of so many ranks and steps, lets the keeper's history read it once from nothing, and then opens
it again from what was kept beside the run. One look is what the page asks for: the curves of all fields, 700
points an attempt, as JSON, and the strips of the ranks.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

from starlette.datastructures import QueryParams

from train_ledger.dash.page.plots import curves_json, strips_json
from train_ledger.run_dir import RunDir
from train_ledger.watch.history_keeping import HistoryKeeping, history_path

_START_T = 1_790_000_000.0
_LINE = (
    '{"t":%.2f,"step":%d,"rank":%d,"attempt":0,"loss":%.4f,"grad_norm":1.01,"lr":0.0003,"step_time_s":5.01,'
    '"compute_s":4.2,"comm_wait_s":0.5,"data_wait_s":0.01,"tps":1234.5,"mfu":41.2,"mem_reserved_peak":7e10}\n'
)


def make(run_dir: RunDir, ranks: int, steps: int) -> None:
    run_dir.signals.mkdir(parents=True)
    for rank in range(ranks):
        with run_dir.signals_of(rank).open("w") as file:
            for step in range(1, steps + 1):
                file.write(_LINE % (_START_T + 5 * step, step, rank, 2 + 1 / step))


def opened(run_dir: RunDir, lines: int) -> tuple[HistoryKeeping, float]:
    """A history that knows so many lines, and the seconds that took."""
    began_s = time.perf_counter()
    keeping = HistoryKeeping(run_dir)
    while _lines(keeping) < lines:
        time.sleep(0.01)
    return keeping, time.perf_counter() - began_s


def _lines(keeping: HistoryKeeping) -> int:
    with keeping.looked_at() as history:
        history.settle()
        return int(history.curves[0].count[0].sum()) if history.curves else 0


def look(keeping: HistoryKeeping) -> tuple[float, int]:
    """Seconds that one look of the page takes, and the bytes of its answers."""
    began_s = time.perf_counter()
    texts = (curves_json(keeping, QueryParams({"points": "700"})), strips_json(keeping))
    return time.perf_counter() - began_s, sum(map(len, texts))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--steps", type=int, default=500_000)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        run_dir = RunDir(Path(folder) / "run")
        make(run_dir, asked.ranks, asked.steps)
        size = sum(path.stat().st_size for path in run_dir.signals.iterdir())
        keeping, cold_s = opened(run_dir, asked.ranks * asked.steps)
        keeping.close()
        again, warm_s = opened(run_dir, asked.ranks * asked.steps)
        look_s, answer_bytes = look(again)
        again.close()
        kept = history_path(run_dir).stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{asked.ranks} ranks x {asked.steps} steps, {size / 1e6:,.0f} MB of signals")
    print(f"from nothing      {cold_s:6.1f} s (it rests half of the time), {kept / 1e6:.1f} MB kept")
    print(f"opened again      {warm_s:6.2f} s")
    print(f"one look          {look_s:6.2f} s, {answer_bytes / 1e3:,.0f} kB; {peak:,.0f} MiB at most")


if __name__ == "__main__":
    main()
