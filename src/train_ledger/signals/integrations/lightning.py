"""How does a training by Lightning tell what it does?

    from train_ledger.signals.integrations.lightning import TrainLedgerCallback

    trainer = Trainer(..., callbacks=[TrainLedgerCallback("runs/r42")])

The callback runs on every rank, of `lightning` and of `pytorch_lightning`. Under torchrun or Slurm the Flight
Recorder is prepared, too, since the ranks are known when it is made; where Lightning starts the ranks itself
they are known once torch.distributed is initialised, which is too late for that.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from train_ledger.signals.harmless.values import whole
from train_ledger.signals.integrations.figures import host_number, known_numbers
from train_ledger.signals.integrations.session import Run, Session, unharmed

__all__ = ["LightningHooks", "TrainLedgerCallback"]

TrainLedgerCallback: Any
"""`LightningHooks` as a Callback of Lightning; made when it is first looked up."""

_NEXT_BATCH = ".train_dataloader_next"
_LAUNCHED = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


class LightningHooks:
    """What is done at each hook of Lightning's Callback.

    A line when `trainer.global_step` has grown, which counts the steps of all optimizers: with two of them
    the numbers go by twos. The loss is the mean of the step's batches where they lie in the host's memory;
    on a GPU it is what Lightning hands its loggers every `log_every_n_steps`, after it has synchronised for
    them: a line of its own. Validation, the sanity check too, is an evaluation. Saves are timed around
    `trainer.save_checkpoint`, and the wait for data where the trainer's profiler is told of it. `run` and
    `options` are those of `train_ledger.start`, or `run` is a monitor that the script has started and closes
    itself.
    """

    def __init__(self, run: Run, **options: Any) -> None:
        self.session = Session(run, options, at_once=any(name in os.environ for name in _LAUNCHED))
        self._step = 0
        self._told: dict[str, float] = {}
        self._losses: list[float | None] = []
        self._rates: list[float | None] = []
        self._undo: list[Callable[[], None]] = []

    @unharmed
    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if stage != "fit":
            return
        self.session.begin(0)
        self._undo = [
            _surround(trainer, "save_checkpoint", functools.partial(self._around_saving, trainer)),
            _surround(trainer.profiler, "start", self._before_batch),
            _surround(trainer.profiler, "stop", self._after_batch),
        ]
        if trainer.loggers:  # else Lightning itself would not synchronise for them
            self._undo.append(_surround(trainer.loggers[0], "log_metrics", self._beside))

    @unharmed
    def on_load_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Mapping[str, Any]) -> None:
        if trainer.state.fn == "fit":
            self.session.monitor.event("ckpt_loaded", step=whole(checkpoint.get("global_step")))

    @unharmed
    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._step = trainer.global_step

    @unharmed
    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self.session.turn_to(self.session.monitor.phase("forward"))

    @unharmed
    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        self.session.turn_to(self.session.monitor.phase("backward"))

    @unharmed
    def on_after_backward(self, trainer: Any, pl_module: Any) -> None:
        self.session.turn_to(None)

    @unharmed
    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self.session.turn_to(self.session.monitor.phase("optimizer"))
        self._rates.append(host_number(optimizer.param_groups[0]["lr"]))  # a scheduler changes it afterwards

    @unharmed
    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self.session.turn_to(None)
        self._losses.append(host_number(outputs.get("loss") if isinstance(outputs, Mapping) else outputs))
        step = trainer.global_step
        if step > self._step:
            self._step = step
            self._told = self._numbers(trainer, pl_module)
            self.session.monitor.step(step, **self._told)

    @unharmed
    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        if trainer.state.fn == "fit":
            self.session.turn_to(self.session.monitor.evaluation())

    @unharmed
    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if trainer.state.fn == "fit":
            self.session.turn_to(None)

    @unharmed
    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if stage == "fit" and self.session.live:
            self._restore()
            self.session.end()

    @unharmed
    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if trainer.state.fn == "fit" and self.session.live:
            self._restore()
            self.session.fail(exception)

    @unharmed
    def logged(self, metrics: Any) -> None:
        """Lightning hands its loggers these host numbers, just after the batch of the last step."""
        told = {name: value for name, value in known_numbers(metrics).items() if name not in self._told}
        if told and self._step and self.session.live:
            self._told |= told
            self.session.monitor.log(step=self._step, **told)

    def _numbers(self, trainer: Any, pl_module: Any) -> dict[str, float]:
        """The mean loss of the step's batches, where the host has them all; the first optimizer's lr."""
        found: dict[str, float] = {}
        losses = [loss for loss in self._losses if loss is not None]
        if losses and len(losses) == len(self._losses):
            # Of automatic optimization each loss comes divided by the number of batches that are accumulated.
            scale = trainer.accumulate_grad_batches if pl_module.automatic_optimization else 1
            found["loss"] = scale * sum(losses) / len(losses)
        if self._rates and self._rates[0] is not None:
            found["lr"] = self._rates[0]
        self._losses.clear()
        self._rates.clear()
        return found

    def _around_saving(self, trainer: Any, save: Callable[..., Any]) -> Callable[..., Any]:
        def save_checkpoint(*args: Any, **kwargs: Any) -> Any:
            with self.session.monitor.checkpoint(trainer.global_step, asynchronous=True) as saving:
                result = save(*args, **kwargs)
            saving.saved(durable=not _writes_later(trainer))
            return result

        return save_checkpoint

    def _before_batch(self, start: Callable[..., Any]) -> Callable[..., Any]:
        """Lightning tells its profiler, whichever it is, when it asks the loader for a batch and has it."""

        def started(*args: Any, **kwargs: Any) -> Any:
            if _is_next_batch(args, kwargs):
                self.session.turn_to(self.session.monitor.phase("data"))
            return start(*args, **kwargs)

        return started

    def _after_batch(self, stop: Callable[..., Any]) -> Callable[..., Any]:
        def stopped(*args: Any, **kwargs: Any) -> Any:
            if _is_next_batch(args, kwargs):
                self.session.turn_to(None)
            return stop(*args, **kwargs)

        return stopped

    def _beside(self, log_metrics: Callable[..., Any]) -> Callable[..., Any]:
        """Hear what the first logger is given, on the ranks, too, on which it writes nothing."""

        def heard(*args: Any, **kwargs: Any) -> Any:
            self.logged(args[0] if args else kwargs.get("metrics"))
            return log_metrics(*args, **kwargs)

        return heard

    def _restore(self) -> None:
        while self._undo:
            self._undo.pop()()


def _writes_later(trainer: Any) -> bool:
    return "Async" in type(trainer.strategy.checkpoint_io).__name__


def _is_next_batch(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    name = args[0] if args else kwargs.get("action_name")
    return isinstance(name, str) and name.endswith(_NEXT_BATCH)


def _surround(
    owner: Any, name: str, made: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[[], None]:
    """Replace a method on this one object; returns what puts back what was there."""
    before, method = vars(owner).get(name), getattr(owner, name)
    ours = functools.wraps(method)(made(method))
    setattr(owner, name, ours)

    def leave() -> None:
        if vars(owner).get(name) is not ours:
            return  # somebody has surrounded ours, which only passes on from now
        if before is None:
            delattr(owner, name)
        else:
            setattr(owner, name, before)

    return leave


def __getattr__(name: str) -> Any:
    if name != "TrainLedgerCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = type(name, (LightningHooks, _base()), {"__module__": __name__, "__doc__": LightningHooks.__doc__})
    return globals().setdefault(name, made)


def _base() -> Any:
    """The Callback of the Lightning that the script uses: of its two distributions the one it imported."""
    names = ("lightning.pytorch", "pytorch_lightning")
    imported = [name for name in names if name in sys.modules]
    installed = [name for name in names if find_spec(name.partition(".")[0])]
    return import_module((imported or installed or names)[0]).Callback
