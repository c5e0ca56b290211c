"""`import train_ledger` happens in every training process: it may load nothing that could hurt there."""

from __future__ import annotations

import subprocess
import sys

_LOADED = """
import sys
before = set(sys.modules)
import train_ledger
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
