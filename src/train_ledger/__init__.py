"""Says which rank hung a training job, where in its code it stands, and what to run next.

In the training script, three lines:

    import train_ledger
    monitor = train_ledger.start("runs/r42")
    ...
    monitor.step(step, loss=loss)

`import train_ledger` loads standard-library modules only.
"""

from __future__ import annotations

from train_ledger.signals import Monitor, SignalLogger, start

__all__ = ["Monitor", "SignalLogger", "__version__", "start"]

__version__ = "0.1.0"
