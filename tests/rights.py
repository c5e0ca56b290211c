"""The command as one who may not read everything: root may, and what nobody may read is no test for him."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_AS_ROOT = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
_IS_ROOT = os.geteuid() == 0

needs_locks = pytest.mark.skipif(_IS_ROOT and not shutil.which("setpriv"), reason="root reads everything")


def train_ledger_without_rights(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*(_AS_ROOT if _IS_ROOT else []), sys.executable, "-m", "train_ledger", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
