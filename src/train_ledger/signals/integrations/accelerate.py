"""How does a loop with Accelerate tell what it does?

    from train_ledger.signals.integrations.accelerate import TrainLedgerTracker

    accelerator = Accelerator(log_with=[TrainLedgerTracker("runs/r42")])
    accelerator.init_trackers("r42", config)
    ...
    accelerator.log({"loss": loss.item()}, step=step)

Every rank has a heartbeat where `accelerator.log` is called on every rank, as Accelerate has it. Made before
the Accelerator, which initialises torch.distributed, the tracker prepares the Flight Recorder, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from train_ledger.run_dir import RunDir, RunDirError
from train_ledger.signals.harmless.bounded import within
from train_ledger.signals.harmless.values import detail, whole
from train_ledger.signals.integrations.figures import host_numbers
from train_ledger.signals.integrations.session import Run, Session, unharmed
from train_ledger.signals.monitor import Monitor

__all__ = ["TrackerHooks", "TrainLedgerTracker"]

_PATIENCE_S = 5.0

TrainLedgerTracker: Any
"""`TrackerHooks` as an accelerate.tracking.GeneralTracker; made when it is first looked up."""


class TrackerHooks:
    """What is done at each call of Accelerate's trackers.

    Each new step that is logged is a line and a beat of the step clock, so log every step; what is logged of
    a step again goes with it. Without a step the call counts as the next one. The configuration goes into
    run.json under `config`; `save_state` and `load_state` are told as checkpoints. `tracker` is the monitor,
    for phases and evaluations. `run` and `options` are those of `train_ledger.start`, or `run` is a monitor
    that the script has started and closes itself.
    """

    name = "train_ledger"
    requires_logging_directory = False
    main_process_only = False
    """Accelerate's default is True: no rank but the first would have a heartbeat."""

    def __init__(self, run: Run, **options: Any) -> None:
        self.session = Session(run, options)
        self.started = False
        super().__init__()

    @property
    def tracker(self) -> Monitor:
        return self.session.monitor

    @unharmed
    def start(self) -> None:
        """The trackers are initialised: again, where a training has ended before."""
        self.started = True
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
        self.started = False
        self.session.end()


def _reach_every_rank(accelerator: Any) -> None:
    """Have the trackers of all ranks called, and told of checkpoints.

    Accelerate (1.15) calls trackers on the main process only, whatever `main_process_only` says.
    """
    for name, around in _AROUND.items():
        method = getattr(accelerator, name, None)
        if method is None:
            continue

        @functools.wraps(method)
        def surrounded(
            self: Any, *args: Any, _method: Any = method, _around: Any = around, **kwargs: Any
        ) -> Any:
            with_us = getattr(self, "log_with", ())
            ours = next((tracker for tracker in with_us if isinstance(tracker, TrackerHooks)), None)
            if ours is None:
                return _method(self, *args, **kwargs)
            return _around(ours, self, _method, *args, **kwargs)

        setattr(accelerator, name, surrounded)


def _is_called(tracker: TrackerHooks, accelerator: Any) -> bool:
    """Whether Accelerate itself calls the tracker on this rank."""
    return any(called is tracker for called in getattr(accelerator, "trackers", ()))


def _init(
    tracker: TrackerHooks, accelerator: Any, method: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    result = method(accelerator, *args, **kwargs)
    if not _is_called(tracker, accelerator):
        tracker.start()
    return result


def _log(
    tracker: TrackerHooks, accelerator: Any, method: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    result = method(accelerator, *args, **kwargs)
    if tracker.started and not _is_called(tracker, accelerator):
        values, step = (*args, kwargs.get("values"), kwargs.get("step"))[:2]
        tracker.log(values, kwargs.get("step", step))
    return result


def _end(
    tracker: TrackerHooks, accelerator: Any, method: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    if tracker.started and not _is_called(tracker, accelerator):
        tracker.finish()
    return method(accelerator, *args, **kwargs)


def _save(
    tracker: TrackerHooks, accelerator: Any, method: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    with tracker.tracker.checkpoint(tracker.tracker.last_step or 0):
        return method(accelerator, *args, **kwargs)


def _load(
    tracker: TrackerHooks, accelerator: Any, method: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    with tracker.tracker.checkpoint_load():
        return method(accelerator, *args, **kwargs)


_AROUND = {
    "init_trackers": _init,
    "log": _log,
    "end_training": _end,
    "save_state": _save,
    "load_state": _load,
}


def _merge(place: RunDir, keys: Mapping[str, Any]) -> bool:
    try:
        place.merge_run(keys)
    except RunDirError:
        return False
    return True


def __getattr__(name: str) -> Any:
    if name != "TrainLedgerTracker":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _reach_every_rank(import_module("accelerate").Accelerator)
    base = import_module("accelerate.tracking").GeneralTracker
    made = type(name, (TrackerHooks, base), {"__module__": __name__, "__doc__": TrackerHooks.__doc__})
    return globals().setdefault(name, made)
