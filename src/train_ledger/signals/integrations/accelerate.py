"""How does a loop with Accelerate tell what it does?

    from train_ledger.signals.integrations.accelerate import TrainLedgerTracker

    accelerator = Accelerator(log_with=[TrainLedgerTracker("runs/r42")])
    accelerator.init_trackers("r42", config)
    ...
    accelerator.log({"loss": loss.item()}, step=step)

The tracker runs on every rank, so call `log` on every rank. Made before the Accelerator, which initialises
torch.distributed, it prepares the Flight Recorder, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from train_ledger.run_dir import RunDir, RunDirError
from train_ledger.signals.bounded import within
from train_ledger.signals.integrations.figures import host_numbers
from train_ledger.signals.integrations.session import Run, Session, unharmed
from train_ledger.signals.monitor import Monitor
from train_ledger.signals.values import detail, whole

__all__ = ["TrackerHooks", "TrainLedgerTracker"]

_PATIENCE_S = 5.0

TrainLedgerTracker: Any
"""`TrackerHooks` as an accelerate.tracking.GeneralTracker; made when it is first looked up."""


class TrackerHooks:
    """What is done at each call of Accelerate's trackers.

    Each new step that is logged is a line and a beat of the step clock, so log every step; what is logged of
    a step again goes with it. Without a step the call counts as the next one. The configuration goes into
    run.json under `config`. `accelerator.get_tracker("train_ledger", unwrap=True)` is the monitor, for
    phases, checkpoints and evaluations. `run` and `options` are those of `train_ledger.start`, or `run` is
    a monitor that the script has started and closes itself.
    """

    name = "train_ledger"
    requires_logging_directory = False
    main_process_only = False
    """Accelerate's default is True: no rank but the first would have a heartbeat."""

    def __init__(self, run: Run, **options: Any) -> None:
        self.session = Session(run, options)
        super().__init__()

    @property
    def tracker(self) -> Monitor:
        return self.session.monitor

    @unharmed
    def start(self) -> None:
        """The trackers are initialised: again, where a training has ended before."""
        self.session.begin(self.session.monitor.last_step or 0)

    @unharmed
    def store_init_configuration(self, values: Mapping[str, Any]) -> None:
        """Into run.json, by rank 0."""
        monitor = self.session.monitor
        config = {"config": detail(dict(values))}
        if monitor.rank == 0 and not within(_PATIENCE_S, lambda: _merge(monitor.run_dir, config), False):
            monitor.warn("run.json", "the configuration could not be written into it")

    @unharmed
    def log(self, values: Mapping[str, Any], step: int | None = None, **kwargs: Any) -> None:
        monitor = self.session.monitor
        numbers = host_numbers(values)
        number = (monitor.last_step or 0) + 1 if step is None else whole(step)
        if number is not None and number == monitor.last_step:
            monitor.log(step=number, **numbers)
        else:
            monitor.step(step if number is None else number, **numbers)  # type: ignore[arg-type]

    @unharmed
    def finish(self) -> None:
        self.session.end()


def _merge(place: RunDir, keys: Mapping[str, Any]) -> bool:
    try:
        place.merge_run(keys)
    except RunDirError:
        return False
    return True


def __getattr__(name: str) -> Any:
    if name != "TrainLedgerTracker":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    base = import_module("accelerate.tracking").GeneralTracker
    made = type(name, (TrackerHooks, base), {"__module__": __name__, "__doc__": TrackerHooks.__doc__})
    return globals().setdefault(name, made)
