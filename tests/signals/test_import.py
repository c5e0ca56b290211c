"""`import train_ledger` happens in every training process: it may load nothing that could hurt there.

What writes signals is loaded by the first use, which is `train_ledger.start`.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

import train_ledger

_LOADED = """
import sys
before = set(sys.modules)
import train_ledger
train_ledger.start
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""


def test_loads_the_standard_library_only() -> None:
    printed = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True)
    loaded = set(printed.stdout.split())
    assert "train_ledger" in loaded
    foreign = {name for name in loaded - {"train_ledger"} if name not in sys.stdlib_module_names}
    assert foreign == set()


def test_loads_nothing_that_is_slow() -> None:
    printed = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True)
    assert not {"asyncio", "ctypes", "http", "multiprocessing"} & set(printed.stdout.split())


def test_the_names_are_there_at_first_use_and_from_then_on() -> None:
    script = """
import sys
import train_ledger
assert {"Monitor", "SignalLogger", "start"} <= set(dir(train_ledger))
assert "train_ledger.signals" not in sys.modules
train_ledger.start
assert {"Monitor", "SignalLogger", "start"} <= set(vars(train_ledger))
from train_ledger import *
from train_ledger.signals import Monitor as that
assert Monitor is that is train_ledger.Monitor
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_another_name_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'train_ledger' has no attribute 'stat'"):
        train_ledger.stat  # noqa: B018
