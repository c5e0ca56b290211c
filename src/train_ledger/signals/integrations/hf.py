"""How does a training by Hugging Face's Trainer tell what it does?

    from train_ledger.signals.integrations.hf import TrainLedgerCallback

    trainer = Trainer(..., callbacks=[TrainLedgerCallback("runs/r42")])

The callback runs on every rank. Make it before the TrainingArguments, which initialise torch.distributed, and
the Flight Recorder is prepared, too.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from train_ledger.signals.integrations.figures import host_number, host_numbers
from train_ledger.signals.integrations.session import Run, Session, unharmed
from train_ledger.signals.saving import Evaluation

__all__ = ["TrainLedgerCallback", "TrainerHooks"]

TrainLedgerCallback: Any
"""`TrainerHooks` as a transformers.TrainerCallback; made when it is first looked up."""


class TrainerHooks:
    """What is done at each event of transformers.TrainerCallback.

    A line a step, when the optimizer has stepped. Where the Trainer is about to log, the line waits for what
    it logs – loss, grad_norm, lr and the other numbers, for which the Trainer itself has synchronised. Known
    between the events are the wait for data, the optimizer, evaluations and saves; between forward and
    backward there is no event. The wait for data holds the copy to the GPU, which waits for what the GPU has
    still to do: without `logging_nan_inf_filter`, by which the Trainer waits for each loss, that is the whole
    step, and `data_wait_s` is left out. A save that was not to be foreseen – one that a later callback asks
    for, or of the best model – has no duration. `run` and `options` are those of `train_ledger.start`, or
    `run` is a monitor that the script has started and closes itself.
    """

    def __init__(self, run: Run, **options: Any) -> None:
        self.session = Session(run, options)
        self._pending: tuple[int, float | None, dict[str, float]] | None = None
        self._tokens: float = 0
        self._skipped = 0
        self._data_counts = True

    @unharmed
    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The state has been restored: tokens and steps of earlier sessions are the baseline."""
        self._pending = None
        self.session.begin(state.global_step)
        self._tokens = state.num_input_tokens_seen
        self._skipped = 0
        self._data_counts = args.logging_nan_inf_filter or args.device.type == "cpu"
        if state.global_step:
            self.session.monitor.event("ckpt_loaded", step=state.global_step)
        if getattr(args, "eval_on_start", False):
            self.session.turn_to(self.session.monitor.evaluation())

    @unharmed
    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._turn_to_data()

    @unharmed
    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._write_pending()
        self.session.turn_to(None, in_place_of_it=not self._data_counts)

    @unharmed
    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.session.turn_to(self.session.monitor.phase("optimizer"))

    @unharmed
    def on_optimizer_step(
        self, args: Any, state: Any, control: Any, optimizer: Any = None, **kwargs: Any
    ) -> None:
        self.session.turn_to(None)
        self._skipped += getattr(optimizer, "step_was_skipped", False) is True

    @unharmed
    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._write_pending()
        self._pending = (state.global_step, *self._progress(args, state))
        if not control.should_log:
            self._write_pending()
            self._turn_to_next(state, control)

    @unharmed
    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Its averages over the session (train_…) are left out: what a step took is measured."""
        if not self.session.live or not logs:
            return
        numbers = host_numbers({name: logs[name] for name in logs if not name.startswith("train_")})
        if self._pending is not None:
            self._write_pending(numbers)
            self._turn_to_next(state, control)  # not before: the line of a step ends what a reader waits for
        elif "loss" in logs:  # at the end of an epoch
            self.session.monitor.log(step=state.global_step, **numbers)

    @unharmed
    def on_prediction_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Somebody evaluates when the Trainer itself was not about to."""
        if not self.session.live:
            return
        self._write_pending()
        if not isinstance(self.session.doing, Evaluation):
            self.session.turn_to(self.session.monitor.evaluation(), in_place_of_it=True)

    @unharmed
    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        if not self.session.live:
            return
        if metrics is not None and "eval_runtime" not in metrics:
            return  # one of several data sets: what follows, the next one or a save, its own events tell
        self.session.turn_to(None)
        if self.session.monitor.last_step is not None and args.save_strategy != "best":
            self._turn_to_next(state, control)

    @unharmed
    def on_predict(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
        if self.session.live:
            self.session.turn_to(None)

    @unharmed
    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The checkpoint lies on its storage: the Trainer saves while it waits."""
        if self.session.live:
            self._write_pending()
            self.session.saved(state.global_step)
            self._turn_to_data()

    @unharmed
    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._write_pending()
        self._turn_to_next(state, control)

    @unharmed
    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._write_pending()
        self.session.end()

    def _progress(self, args: Any, state: Any) -> tuple[float | None, dict[str, float]]:
        """Tokens of this rank's share of the step, and the counters; the Trainer counts for all ranks."""
        fields: dict[str, float] = {"skipped": self._skipped} if self._skipped else {}
        seen = host_number(state.num_input_tokens_seen)
        if not seen:
            return None, fields
        step_tokens, self._tokens = seen - self._tokens, seen
        fields["consumed_tokens"] = seen
        return step_tokens / max(1, args.world_size), fields

    def _write_pending(self, logged: dict[str, float] | None = None) -> None:
        if self._pending is not None:
            step, tokens, fields = self._pending
            self._pending = None
            self.session.monitor.step(step, tokens=tokens, **{**(logged or {}), **fields})

    def _turn_to_next(self, state: Any, control: Any) -> None:
        """What the Trainer does next, as `control` says once its own callback has decided."""
        monitor = self.session.monitor
        if control.should_evaluate:
            self.session.turn_to(monitor.evaluation())
        elif control.should_save:
            self.session.turn_to(monitor.checkpoint(state.global_step, asynchronous=True))
        else:
            self._turn_to_data()

    def _turn_to_data(self) -> None:
        self.session.turn_to(self.session.monitor.phase("data"))


def __getattr__(name: str) -> Any:
    if name != "TrainLedgerCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    base = import_module("transformers").TrainerCallback
    made = type(name, (TrainerHooks, base), {"__module__": __name__, "__doc__": TrainerHooks.__doc__})
    return globals().setdefault(name, made)
