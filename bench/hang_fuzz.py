"""Does any change to a dump crash, hang or fool the reader?

    python bench/hang_fuzz.py                         100,000 mutated dumps, some minutes
    python bench/hang_fuzz.py --count 2000 --seed 7

Batches of dumps – those of the tests' recorder, and real ones where ../shared lies beside the repository –
with bytes, opcodes and values changed (tests/hang/mutations.py) go the whole way from files to the answer as
text, page and JSON (tests/hang/fuzz.py). Each file must be read or refused with a reason; no reader may crash
or raise or run out of its time. A batch that fails is kept, and the run ends with status 1.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
SHARED = REPOSITORY.parent / "shared"
sys.path.insert(0, str(REPOSITORY / "tests"))

from hang.fuzz import check_batch, write_batch  # noqa: E402
from hang.mutations import Files, jobs, may_be_loaded  # noqa: E402

BATCH = 500


def real_jobs() -> dict[str, Files]:
    """The collected dumps, where they are to be found."""
    found: dict[str, Files] = {}
    for folder in sorted({path.parent for path in SHARED.glob("*/*/*/dumps/*")}):
        files = [path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()]
        if files and max(map(len, files)) < 1 << 20:
            found[str(folder)] = tuple(files)
            may_be_loaded(files)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so many, whatever was done")
    options = parser.parse_args()
    os.nice(10)
    seeds = jobs() | real_jobs()
    became: Counter[str] = Counter()
    done = batch = failed = 0
    longest_s, started = 0.0, time.perf_counter()
    while done < options.count and time.perf_counter() - started < 60 * options.minutes:
        folder = Path(tempfile.mkdtemp(prefix="hang-fuzz-"))
        spans, changed = write_batch(folder, seeds, BATCH, random.Random(f"{options.seed}.{batch}"))
        began = time.perf_counter()
        try:
            became += check_batch(folder, spans)
            shutil.rmtree(folder)
        except Exception:  # noqa: BLE001 – any at all is what is looked for
            failed += 1
            print(f"batch {batch}, kept in {folder}:\n{traceback.format_exc(limit=-4)}", file=sys.stderr)
        longest_s = max(longest_s, time.perf_counter() - began)
        done, batch = done + changed, batch + 1
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        f"{done} mutated dumps of {len(seeds)} jobs in {batch} batches, {time.perf_counter() - started:.0f} s"
    )
    print(f"failed batches {failed}; longest batch {longest_s:.1f} s; largest reader {peak:.0f} MiB resident")
    for what, count in became.most_common():
        print(f"{count:8} {what}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
