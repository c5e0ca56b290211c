"""How does a training by Megatron-LM tell what it does?

    import train_ledger.signals.integrations.megatron as train_ledger_megatron

    train_ledger_megatron.watch(megatron.training.training, "runs/r42")
    pretrain(...)

Megatron calls nobody back, but its loop calls `training_log` after each iteration on every rank, by its name
in the module: it is replaced there by one that calls it. Do so before `pretrain`, which initialises
torch.distributed, and the Flight Recorder is prepared, too.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from train_ledger.signals.harmless.values import whole
from train_ledger.signals.integrations.figures import host_number, known_numbers
from train_ledger.signals.integrations.session import Run, Session, unharmed
from train_ledger.signals.monitor import Monitor

__all__ = ["Megatron", "watch", "wrap"]

_FIELDS = {
    "learning_rate": "lr",
    "loss_scale": "loss_scale",
    "grad_norm": "grad_norm",
    "params_norm": "param_norm",
    "num_zeros_in_grad": "num_zeros_in_grad",
    "max_attention_logit": "max_attn_logit",
}


def watch(training: Any, run: Run, **options: Any) -> Monitor:
    """Have `training`, the module whose loop is run, tell of iterations, evaluations, saves and loads.

    It is `megatron.training.training`, or `megatron.training` of older versions; of its functions those that
    it has are replaced by ones that call them. `run` and `options` are those of `train_ledger.start`, or
    `run` is a monitor that the script has started.
    """
    megatron = Megatron(Session(run, options), getattr(training, "get_args", None), "parallelism" in options)
    for name, around in megatron.arounds.items():
        function = getattr(training, name, None)
        if function is not None:
            setattr(training, name, around(function))
    return megatron.session.monitor


def wrap(training_log: Callable[..., Any], run: Run, **options: Any) -> Callable[..., Any]:
    """`training_log` that tells of each iteration as well: the step clock alone, for a loop of one's own."""
    return Megatron(Session(run, options)).around_log(training_log)


class Megatron:
    """Surrounds Megatron's functions; what they return and raise is theirs.

    What `training_log` is given is bound by the names of its own parameters, whatever their order (2019 to
    2026, and forks). A number is taken where the host has it: Megatron itself fetches lr, loss scale and
    grad norm. Losses are tensors on the GPU and are not fetched: they are read from the lines of the log,
    which Megatron fetches them for. `get_args` are Megatron's arguments: from them come the position in the
    data and, where the `layout` of the ranks was told, the tokens of a step.
    """

    def __init__(
        self, session: Session, get_args: Callable[[], Any] | None = None, layout: bool = False
    ) -> None:
        self.session = session
        self._get_args = get_args
        self._layout = layout
        self._samples: int | None = None
        self.arounds: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
            "training_log": self.around_log,
            "evaluate_and_print_results": self.around_evaluation,
            "save_checkpoint": self.around_save,
            "load_checkpoint": self.around_load,
        }
        self._iteration: int | None = None
        self._skipped = 0

    def around_log(self, training_log: Callable[..., Any]) -> Callable[..., Any]:
        """Tell of the iteration once it is logged."""
        signature = inspect.signature(training_log)

        @functools.wraps(training_log)
        def surrounded(*args: Any, **kwargs: Any) -> Any:
            result = training_log(*args, **kwargs)
            self._tell_iteration(signature, args, kwargs)
            return result

        return surrounded

    def around_evaluation(self, evaluate: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(evaluate)
        def surrounded(*args: Any, **kwargs: Any) -> Any:
            with self.session.monitor.evaluation():
                return evaluate(*args, **kwargs)

        return surrounded

    def around_save(self, save: Callable[..., Any]) -> Callable[..., Any]:
        """An asynchronous save, and one that is not to persist, is not durable when the function returns."""
        signature = inspect.signature(save)

        @functools.wraps(save)
        def surrounded(*args: Any, **kwargs: Any) -> Any:
            given = _named(signature, args, kwargs)
            iteration = whole(given.get("iteration"))
            step = iteration if iteration is not None else self._iteration or 0
            with self.session.monitor.checkpoint(step, asynchronous=True) as saving:
                result = save(*args, **kwargs)
            later = getattr(self._arguments(), "async_save", False) or given.get("non_persistent_ckpt")
            saving.saved(durable=not later)
            return result

        return surrounded

    def around_load(self, load: Callable[..., Any]) -> Callable[..., Any]:
        """It returns the iteration, or a tuple that begins with it; 0 where there was no checkpoint."""

        @functools.wraps(load)
        def surrounded(*args: Any, **kwargs: Any) -> Any:
            with self.session.monitor.phase("checkpoint_load"):
                result = load(*args, **kwargs)
            first = whole(result[0] if isinstance(result, tuple) and result else result)
            if first:
                self.session.monitor.event("ckpt_loaded", step=first)
            return result

        return surrounded

    @unharmed
    def _tell_iteration(
        self, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        given = _named(signature, args, kwargs)
        iteration = whole(given.get("iteration"))
        if iteration is None:
            iteration = whole(given["global_state"].train_state.step)
        if iteration is None or iteration == self._iteration:
            return
        self._iteration = iteration
        fields = _numbers(given)
        skipped = host_number(given.get("skipped_iter"))
        if skipped is not None:
            self._skipped += int(skipped)
            fields["skipped"] = self._skipped
        self.session.monitor.step(iteration, tokens=self._tokens(fields), **fields)

    def _tokens(self, fields: dict[str, float]) -> float | None:
        """Those of the data-parallel share of this rank; adds the position in the data to `fields`."""
        arguments = self._arguments()
        samples = whole(getattr(arguments, "consumed_train_samples", None))
        if samples is None:
            return None
        fields["consumed_samples"] = samples
        before, self._samples = self._samples, samples
        if not self._layout or before is None:
            return None
        return (samples - before) * int(arguments.seq_length) / int(arguments.data_parallel_size)

    def _arguments(self) -> Any:
        """Megatron's arguments, or None before it has parsed them."""
        try:
            return self._get_args() if self._get_args is not None else None
        except AssertionError:
            return None


def _named(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """What a function was called with, by the names of its parameters."""
    named = dict(zip(signature.parameters, args, strict=False))
    return {**named, **kwargs}


def _numbers(given: Mapping[str, Any]) -> dict[str, float]:
    """What the host has."""
    fields = {field: host_number(given.get(name)) for name, field in _FIELDS.items()}
    losses = given.get("loss_dict")
    if isinstance(losses, Mapping):
        fields |= known_numbers(losses)
    return {name: value for name, value in fields.items() if value is not None}
