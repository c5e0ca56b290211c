"""Writes docs/python.md from the signatures and docstrings of what a training script calls.

python tools/python_page.py            writes it
python tools/python_page.py --check    says by its exit status whether it is current
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from page import DOCS, write_or_check

import train_ledger
from train_ledger.signals.monitor import Monitor

PAGE = DOCS / "python.md"

_HEAD = """# What training code calls

<!-- Written by tools/python_page.py from the docstrings of src/train_ledger/signals; change it there. -->

`import train_ledger` loads modules of the standard library only. Nothing here waits for a disk, another rank
or a GPU, and nothing raises for what the machine does; what could not be written is dropped and counted. What
it costs, and how a loop is best told of: [signals](signals.md). What stands in a line: [fields](metrics.md).
"""
_METHODS = [
    "step",
    "log",
    "phase",
    "loader",
    "checkpoint",
    "checkpoint_load",
    "evaluation",
    "event",
    "warn",
    "watch",
    "also_to",
    "close",
]
_LONGEST = 100
_INTEGRATIONS = {
    "hf": "Hugging Face Trainer",
    "lightning": "Lightning",
    "accelerate": "Accelerate",
    "deepspeed": "DeepSpeed",
    "megatron": "Megatron-LM",
    "torchtitan": "torchtitan",
}


def page() -> str:
    """The whole page."""
    return "\n".join((_HEAD, *_calls(), "## In your framework\n", *_frameworks()))


def _calls() -> Iterator[str]:
    yield _call("train_ledger.start", train_ledger.start)
    for name in _METHODS:
        yield _call(f"monitor.{name}", getattr(Monitor, name))


def _call(name: str, called: Callable[..., Any]) -> str:
    signature = inspect.signature(called)
    told = [it for it in signature.parameters.values() if it.name != "self"]
    shown = str(signature.replace(parameters=told, return_annotation=inspect.Signature.empty))
    shown = name + re.sub(r"'([^']*)'(?=[,)]| =)", r"\1", shown)  # annotations, which are kept as text
    if len(shown) > _LONGEST:
        shown = re.sub(r", (?=\*|\w+: )", ",\n    ", shown.replace("(", "(\n    ", 1)) + "\n"
        shown = shown.replace(")\n", ",\n)")
    return f"## {name}\n\n```text\n{shown}\n```\n\n{inspect.getdoc(called)}\n"


def _frameworks() -> Iterator[str]:
    for name, title in _INTEGRATIONS.items():
        module = importlib.import_module(f"train_ledger.signals.integrations.{name}")
        _, _, text = inspect.cleandoc(module.__doc__ or "").partition("\n")
        yield f"### {title}\n{text}\n"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page(), sys.argv[1:]))
