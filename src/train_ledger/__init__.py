"""Says which rank hung a training job, where in its code it stands, and what to run next.

In the training script, three lines:

    import train_ledger
    monitor = train_ledger.start("runs/r42")
    ...
    monitor.step(step, loss=loss)

`import train_ledger` loads standard-library modules only. What writes a rank's signals is loaded, whole, when
the first of these names is asked for, so that the command, which needs none of it, starts without it.
"""

from __future__ import annotations

TYPE_CHECKING = False
"""As `typing` has it, which would take longer to load than all that is here."""

if TYPE_CHECKING:
    from train_ledger.signals import Monitor, SignalLogger, start

__all__ = ["Monitor", "SignalLogger", "__version__", "start"]

__version__ = "0.1.0"

if not TYPE_CHECKING:  # a type checker would take every name for one that is here

    def __getattr__(name: str) -> object:
        """What a training script uses, from its first use on."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from train_ledger import signals

        globals().update({it: getattr(signals, it) for it in signals.__all__})
        return globals()[name]

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
