"""How long from dumps to the culprit, beside plainly unpickling them and beside torchfrtrace?

    python bench/hang_dumps.py                                    1024 ranks × 2000 entries, TP and DP groups
    python bench/hang_dumps.py --torchfrtrace --rounds 1          beside it torchfrtrace, which takes minutes
    python bench/hang_dumps.py --ranks 4096
    python bench/hang_dumps.py --ranks 64 --entries 20000 --frames
    python bench/hang_dumps.py --scale                            is the cost in proportion to the entries?

The dumps (see job_dumps.py) are written first; they lie in the page cache when they are read. Each round runs
each program once, as a person would start it. "plain" are two processes that do nothing but pickle.loads of
every second file each; "plain, no gc" the same without the collector of garbage, which we leave out, too.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

from job_dumps import CULPRIT, write_dumps
from process_tree import Run, run

_PLAIN = """
import gc, os, pickle, sys
if {no_gc}: gc.disable()
names = sorted(os.listdir(sys.argv[1]))
child = os.fork()
for name in names[child != 0 :: 2]:
    with open(os.path.join(sys.argv[1], name), "rb") as file:
        pickle.loads(file.read())
if child: os.waitpid(child, 0)
"""


def commands(folder: Path, with_torchfrtrace: bool) -> dict[str, list[str]]:
    """What is run in each round, by what the table calls it."""
    python = sys.executable
    run_by_name = {
        "plain": [python, "-c", _PLAIN.format(no_gc=False), str(folder)],
        "plain, no gc": [python, "-c", _PLAIN.format(no_gc=True), str(folder)],
        "train-ledger": [python, "-m", "train_ledger", "hang", str(folder)],
    }
    if with_torchfrtrace:
        trace = "torch.distributed.flight_recorder.fr_trace"
        run_by_name["torchfrtrace"] = [python, "-m", trace, str(folder), "-p", "rank_"]
    return run_by_name


def measure(
    ranks: int, entries: int, *, frames: bool, rounds: int, torchfrtrace: bool
) -> dict[str, list[Run]]:
    """The rounds of each program over one set of dumps; says what they are and what we answered."""
    with tempfile.TemporaryDirectory() as name:
        total = write_dumps(Path(name), ranks, entries, frames=frames)
        print(f"{ranks} ranks × {entries} entries{' with frames' if frames else ''}, {total / 1e6:.0f} MB")
        runs: dict[str, list[Run]] = {}
        for _ in range(rounds):
            for program, command in commands(Path(name), torchfrtrace).items():
                runs.setdefault(program, []).append(run(command))
    answers = {it.said.splitlines()[0] for it in runs["train-ledger"]}
    assert answers == {f"culprit: rank {CULPRIT}"}, answers
    return runs


def table(runs: dict[str, list[Run]]) -> None:
    """Best and median of the rounds; the ratios of the medians to ours."""
    ours = median(it.wall_s for it in runs["train-ledger"])
    print(f"{'':14}  best s  median s   CPU s   peak MB   ours / it   it / ours")
    for program, done in runs.items():
        wall = [it.wall_s for it in done]
        cpu, peak = median(it.cpu_s for it in done), max(it.peak_bytes for it in done) / 1e6
        middle = median(wall)
        print(
            f"{program:14} {min(wall):7.2f} {middle:9.2f} {cpu:7.2f} {peak:9.0f}"
            f" {ours / middle:11.2f} {middle / ours:11.1f}"
        )


def scale(rounds: int) -> None:
    """Our time over as many entries in many files and in few, the time to start taken off."""
    with tempfile.TemporaryDirectory() as name:
        write_dumps(Path(name), 8, 10)
        start = min(run(commands(Path(name), False)["train-ledger"]).wall_s for _ in range(rounds))
    print(f"start alone (8 ranks × 10 entries): {start:.2f} s; it is taken off below")
    for ranks, entries in [(256, 500), (256, 1000), (256, 2000), (512, 2000), (1024, 2000), (64, 20_000)]:
        runs = measure(ranks, entries, frames=False, rounds=rounds, torchfrtrace=False)["train-ledger"]
        best = min(it.wall_s for it in runs)
        million = ranks * entries / 1e6
        print(f"    {best:6.2f} s  {(best - start) / million:6.2f} s a million entries")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--entries", type=int, default=2000)
    parser.add_argument("--frames", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--torchfrtrace", action="store_true")
    parser.add_argument("--scale", action="store_true")
    options = parser.parse_args()
    if options.scale:
        scale(options.rounds)
        return
    table(
        measure(
            options.ranks,
            options.entries,
            frames=options.frames,
            rounds=options.rounds,
            torchfrtrace=options.torchfrtrace,
        )
    )


if __name__ == "__main__":
    main()
