"""Does any of a hundred thousand mutated log lines make a reader fail, stall or hoard?

    python bench/read_fuzz.py [LINES] [SEED]

Feeds mutated lines of every format through the reading, as one log and as files of one format, and prints the
time, the slowest line and how much memory was held at the end and at most. Ends with 1 where a line takes
longer than a second or memory grows with the number of lines.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from sources.mutated_lines import LINES, OWNED, mutated
from train_ledger.sources import FactReader

SLOWEST_S = 1.0
MOST_BYTES = 64 << 20


def fed(name: str, lines: tuple[str, ...], number: int, seed: int) -> tuple[int, float, bytes]:
    """Facts, and the slowest line with its time."""
    reader = FactReader(name, written_t=1_775_000_000.0)
    facts = len(reader.feed("".join(f"{it}\n" for it in lines).encode()))
    slowest_s, slowest = 0.0, b""
    for line in mutated(lines, number, seed):
        began = time.process_time()
        facts += len(reader.feed(line + b"\n"))
        took_s = time.process_time() - began
        if took_s > slowest_s:
            slowest_s, slowest = took_s, line
    return facts + len(reader.end()), slowest_s, slowest


def main(number: int, seed: int) -> int:
    """Prints a table; the exit status."""
    files = (("train.log", LINES, number), *((name, lines, number // 50) for name, lines in OWNED))
    bad = False
    for name, lines, share in files:
        tracemalloc.start()
        began = time.perf_counter()
        facts, slowest_s, slowest = fed(name, lines, share, seed)
        took_s = time.perf_counter() - began
        now, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        bad = bad or slowest_s > SLOWEST_S or now > MOST_BYTES
        print(
            f"{name}: {share} lines, {facts} facts, {took_s:.1f} s, slowest {slowest_s * 1e3:.1f} ms, "
            f"{now / 2**20:.1f} MiB held, {most / 2**20:.1f} MiB at most"
        )
        if slowest_s > SLOWEST_S:
            print(f"  {slowest[:200]!r}")
    return int(bad)


if __name__ == "__main__":
    given = [int(it) for it in sys.argv[1:]]
    sys.exit(main(*(given + [100_000, 1][len(given) :])))
