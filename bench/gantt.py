"""How long does the Gantt of thousands of ranks take, how much memory, how large is it?

    python bench/gantt.py                          4096 ranks × 50 steps, and 1024 × 500
    python bench/gantt.py --ranks 512 --steps 100
    python bench/gantt.py --scale                  does memory grow with the steps? 64 ranks × 100 to 1600

The signal files (of `chaos.fleet`, about 430 bytes a line) are written first and lie in the page cache. The
command runs as a person would start it; its peak memory is that of its process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from process_tree import run

SIZES = ((4096, 50), (1024, 500))
SCALE = ((64, 100), (64, 400), (64, 1600))
_WRITE = "import sys; from pathlib import Path; from train_ledger.chaos import fleet; "
_FLEET = "fleet.write(Path(sys.argv[1]), hosts={hosts}, steps={steps}, checkpoint_every=20)"


def measure(ranks: int, steps: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "run")
        program = _WRITE + _FLEET.format(hosts=max(1, ranks // 8), steps=steps)
        subprocess.run([sys.executable, "-c", program, str(folder)], check=True)
        read_bytes = sum(it.stat().st_size for it in (folder / "signals").iterdir())
        output = Path(name, "gantt.json.gz")
        command = [sys.executable, "-m", "train_ledger", "gantt", str(folder), "-o", str(output), "--json"]
        ended = run(command)
        answer = json.loads(ended.said)
        print(
            f"{ranks:5} ranks × {steps:4} steps: {ended.wall_s:6.1f} s, {ended.cpu_s:.1f} s of a processor, "
            f"{read_bytes / 1e6 / ended.cpu_s:5.1f} MB/s of {read_bytes / 1e6:5.0f} MB read, "
            f"{answer['events'] / ended.cpu_s / 1e3:5.0f} k events/s, {answer['events'] / 1e6:.2f} M events "
            f"in {answer['bytes'] / 1e6:.1f} MB, peak {ended.peak_bytes / 1e6:.0f} MB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, help="so many ranks, a multiple of 8")
    parser.add_argument("--steps", type=int, default=50, help="so many steps of each (default: 50)")
    parser.add_argument("--scale", action="store_true", help="does memory grow with the number of steps?")
    arguments = parser.parse_args()
    sizes = ((arguments.ranks, arguments.steps),) if arguments.ranks else SCALE if arguments.scale else SIZES
    for ranks, steps in sizes:
        measure(ranks, steps)


if __name__ == "__main__":
    main()
