"""What is a job whose steps stop on purpose, for who wants to know whether the page comes?

One rank of it, without a model and without torch: it writes its signals as any training does, completes steps
until a file appears, and stands still from then on.

    RANK=0 WORLD_SIZE=2 python -m train_ledger.chaos.standing_job RUN STOP
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import train_ledger

__all__ = ["STEP_S", "main"]

STEP_S = 0.25


def main(arguments: list[str] | None = None) -> None:
    """Step until the file named by the second argument is there, then stand still until ended."""
    run_dir, stop = map(Path, sys.argv[1:] if arguments is None else arguments)
    monitor = train_ledger.start(run_dir)
    step = 0
    while not stop.exists():
        time.sleep(STEP_S)
        step += 1
        monitor.step(step, loss=2.0 + 8.0 / step)
    stand_still()


def stand_still() -> None:
    """What the page is about: alive, and nothing more comes."""
    while True:
        time.sleep(STEP_S)


if __name__ == "__main__":
    main()
