"""How does a training by DeepSpeed's engine tell what it does?

    import train_ledger.signals.integrations.deepspeed as train_ledger_deepspeed

    engine, *_ = deepspeed.initialize(...)
    monitor = train_ledger_deepspeed.watch(engine, "runs/r42")

DeepSpeed calls nobody back, so the engine's own methods are surrounded, on the instance and not on its class;
what they return and raise is theirs. Call `train_ledger.start` before `deepspeed.initialize` and hand its
monitor in, and the Flight Recorder is prepared, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from train_ledger.signals.integrations.figures import host_number
from train_ledger.signals.integrations.session import Run, Session, unharmed
from train_ledger.signals.monitor import Monitor

__all__ = ["Watch", "watch"]

_MARK = "_train_ledger_watch"


def watch(engine: Any, run: Run, **options: Any) -> Monitor:
    """Tell of every step, save and load of `engine`, a DeepSpeedEngine or PipelineEngine, from now on.

    `run` and `options` are those of `train_ledger.start`, or `run` is a monitor that the script has started.
    Returns the monitor: a loss that lies on a GPU is not known here, so say it before `engine.step()` by
    `monitor.log(loss=…)` whenever the script has the number; evaluations by `with monitor.evaluation():`.
    """
    watching = vars(engine).get(_MARK)
    if watching is None:
        watching = Watch(engine, Session(run, options))
        vars(engine)[_MARK] = watching
    monitor: Monitor = watching.session.monitor
    return monitor


class Watch:
    """Surrounds the methods of one engine.

    A line when `engine.global_steps` has grown: at the boundaries of gradient accumulation, steps that the
    loss scaler skips included, which are counted as `skipped`. lr, loss scale, grad norm and loss are taken
    where the host has them; the loss, too, where DeepSpeed fetches it for its own monitor.
    """

    def __init__(self, engine: Any, session: Session) -> None:
        self.session = session
        self._engine = engine
        self._losses: list[float | None] = []
        self._fetched: dict[str, float] = {}
        self._steps = 0
        self._note_steps()
        if hasattr(type(engine), "train_batch"):  # of a pipeline, whose parts must not be called
            self._surround("train_batch", self._step)
        else:
            self._surround("forward", self._forward)
            self._surround("backward", self._backward)
            self._surround("step", self._step)
        self._surround("save_checkpoint", self._save)
        self._surround("load_checkpoint", self._load)
        if getattr(vars(engine).get("monitor"), "enabled", False):
            self._surround("write_events", self._write_events, engine.monitor)

    def _surround(self, name: str, around: Callable[..., Any], of: Any = None) -> None:
        owner = self._engine if of is None else of
        method = getattr(owner, name)

        @functools.wraps(method)
        def surrounded(*args: Any, **kwargs: Any) -> Any:
            return around(method, *args, **kwargs)

        vars(owner)[name] = surrounded

    def _forward(self, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if not self._engine.training:
            return forward(*args, **kwargs)
        with self.session.monitor.phase("forward"):
            return forward(*args, **kwargs)

    def _backward(self, backward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._note_loss(args[0] if args else kwargs.get("loss"))
        with self.session.monitor.phase("backward"):
            return backward(*args, **kwargs)

    def _step(self, step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if step.__name__ == "train_batch":
            result = step(*args, **kwargs)
            self._note_loss(result)
        else:
            with self.session.monitor.phase("optimizer"):
                result = step(*args, **kwargs)
        self._tell_step()
        return result

    def _write_events(self, write: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._note_fetched(args[0] if args else kwargs.get("event_list"))
        return write(*args, **kwargs)

    def _save(self, save: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with self.session.monitor.checkpoint(self._steps, asynchronous=True) as saving:
            result = save(*args, **kwargs)
        if result is False:
            saving.failed("DeepSpeed says that it did not save the checkpoint")
        else:
            saving.saved(durable=not self._commits_later())
        return result

    def _load(self, load: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with self.session.monitor.phase("checkpoint_load") as phase:
            result = load(*args, **kwargs)
        if isinstance(result, tuple) and result and result[0] is not None:
            self._note_steps()
            took_s = (phase.ended_t or phase.begun_t) - phase.begun_t
            self.session.monitor.event("ckpt_loaded", step=self._steps, duration_s=took_s)
        return result

    @unharmed
    def _note_steps(self) -> None:
        self._steps = self._engine.global_steps

    @unharmed
    def _note_loss(self, loss: Any) -> None:
        if self._engine.training:
            self._losses.append(host_number(loss))

    @unharmed
    def _note_fetched(self, events: Any) -> None:
        """DeepSpeed's monitor is handed triples of name, number and samples."""
        for name, number, _ in events:
            if name == "Train/Samples/train_loss" and host_number(number) is not None:
                self._fetched = {"loss": float(number)}

    @unharmed
    def _tell_step(self) -> None:
        steps = self._engine.global_steps
        if steps == self._steps:
            return  # within a gradient accumulation
        self._steps = steps
        losses, self._losses = self._losses, []
        fields, self._fetched = self._fetched, {}
        fields |= {name: number for name, number in self._figures().items() if number is not None}
        known = [loss for loss in losses if loss is not None]
        if known and len(known) == len(losses):
            fields["loss"] = sum(known) / len(known)
        self.session.monitor.step(steps, **fields)

    def _figures(self) -> dict[str, float | None]:
        engine = self._engine
        rates = engine.get_lr()
        scale = getattr(engine.optimizer, "cur_scale", None) if engine.fp16_enabled() else None
        return {
            "lr": host_number(rates[0]) if rates else None,
            "grad_norm": host_number(engine.get_global_grad_norm()),
            "loss_scale": host_number(scale),
            "skipped": host_number(engine.skipped_steps),
            "consumed_samples": host_number(engine.global_samples),
        }

    def _commits_later(self) -> bool:
        decoupled = getattr(getattr(self._engine, "checkpoint_engine", None), "is_decoupled", None)
        return bool(decoupled and decoupled())
