"""The integrations require none of the frameworks, and load none before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from train_ledger.signals import integrations

NAMES = ("accelerate", "deepspeed", "hf", "lightning", "megatron", "torchtitan")
LOADED = """
import sys
from importlib import import_module
from train_ledger.signals import integrations
for name in {names}:
    assert getattr(integrations, name) is import_module(f"train_ledger.signals.integrations.{{name}}")
print(*sorted({{name.partition(".")[0] for name in sys.modules}}))
"""


def test_all_of_them_load_the_standard_library_only() -> None:
    printed = subprocess.run(
        [sys.executable, "-c", LOADED.format(names=NAMES)], capture_output=True, text=True, check=True
    ).stdout
    frameworks = {
        "torch",
        "transformers",
        "lightning",
        "pytorch_lightning",
        "accelerate",
        "deepspeed",
        "numpy",
    }
    assert frameworks.isdisjoint(printed.split())


def test_an_ecosystem_that_is_none_of_them() -> None:
    with pytest.raises(AttributeError, match="keras"):
        _ = integrations.keras


@pytest.mark.parametrize("name", ["accelerate", "hf", "lightning"])
def test_a_name_that_is_none_of_theirs(name: str) -> None:
    with pytest.raises(AttributeError, match="Callback2"):
        _ = getattr(integrations, name).Callback2
