"""The numbers of every step in TensorBoard and Weights & Biases, too, from the one rank that has the loss.

    pip install tensorboard wandb
    WANDB_MODE=offline python examples/tensorboard_and_wandb.py runs/example
    tensorboard --logdir runs/example/tensorboard

Each library runs in a process of its own: whether it is slow, broken or not installed at all, the training
does not wait for it. Run it twice: the second attempt goes back to a checkpoint, and both stay in sight.
"""

from __future__ import annotations

import math
import sys
import time

import train_ledger


def main(run_dir: str, steps: int = 100) -> None:
    monitor = train_ledger.start(run_dir, tensorboard=True, wandb={"project": "train-ledger-example"})
    first = 0 if monitor.attempt == 0 else steps // 2
    for step in range(first, first + steps):
        with monitor.phase("forward"):
            time.sleep(0.01)
        loss = 2.0 + 8.0 * math.exp(-step / 30)
        monitor.step(step, loss=loss, lr=3e-4)
    monitor.close()


if __name__ == "__main__":
    main(*sys.argv[1:2] or ["runs/example"])
