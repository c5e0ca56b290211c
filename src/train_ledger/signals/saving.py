"""How is a checkpoint saved or loaded, or the model evaluated – long work that is not a hang?"""

from __future__ import annotations

import time
from types import TracebackType

from train_ledger.signals.ending.last_words import words
from train_ledger.signals.voice import Voice

__all__ = ["Evaluation", "Loading", "Saving"]


class Saving:
    """A checkpoint of one step while it is saved: ckpt_start, then ckpt_saved or ckpt_failed."""

    def __init__(self, monitor: Voice, step: int, asynchronous: bool) -> None:
        self._monitor = monitor
        self._step = step
        self._asynchronous = asynchronous
        self._phase = monitor.phase("checkpoint_save")
        self._begun = 0.0
        self._blocking_s = 0.0
        self._told = False

    def __enter__(self) -> Saving:
        self._begun = time.monotonic()
        self._monitor.event("ckpt_start", step=self._step)
        self._phase.__enter__()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        self._phase.__exit__(kind, error, trace)
        self._blocking_s = time.monotonic() - self._begun
        if error is not None:
            self.failed(error)
        elif not self._asynchronous:
            self.saved()

    def saved(self, durable: bool = True) -> None:
        """It lies on its storage; `durable` is False while only a local or memory copy exists."""
        if self._once():
            self._monitor.event(
                "ckpt_saved",
                step=self._step,
                duration_s=time.monotonic() - self._begun,
                blocking_s=self._blocking_s,
                durable=durable,
            )

    def failed(self, error: object) -> None:
        """It could not be saved."""
        if self._once():
            told = words(error) if isinstance(error, BaseException) else words(Exception(error))
            text = f"{type(error).__name__}: {told}" if isinstance(error, BaseException) else told
            self._monitor.event("ckpt_failed", step=self._step, error=text[:2000])

    def _once(self) -> bool:
        told, self._told = self._told, True
        return not told


class Loading:
    """A checkpoint while it is loaded: the phase checkpoint_load, then ckpt_loaded."""

    def __init__(self, monitor: Voice, step: int | None) -> None:
        self._monitor = monitor
        self._phase = monitor.phase("checkpoint_load")
        self._begun = 0.0
        self.step = step
        """May be set inside the block, where the step is known only after loading."""

    def __enter__(self) -> Loading:
        self._begun = time.monotonic()
        self._phase.__enter__()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        self._phase.__exit__(kind, error, trace)
        if error is None:
            self._monitor.event("ckpt_loaded", step=self.step, duration_s=time.monotonic() - self._begun)


class Evaluation:
    """An evaluation while it lasts: eval_start and eval_end around the phase evaluation."""

    def __init__(self, monitor: Voice) -> None:
        self._monitor = monitor
        self._phase = monitor.phase("evaluation")

    def __enter__(self) -> Evaluation:
        self._monitor.event("eval_start")
        self._phase.__enter__()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        self._phase.__exit__(kind, error, trace)
        self._monitor.event("eval_end")
