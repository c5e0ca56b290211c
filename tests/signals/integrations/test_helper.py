"""What the process that holds a foreign library says when it ends."""

from __future__ import annotations

import subprocess
import sys

_RAISES = """
from train_ledger.signals.integrations.helper import Steps

for step, t, fields in Steps():
    raise OSError(28, "No space left on device")
"""


def test_why_it_ended_is_one_line_whatever_stood_above_it() -> None:
    """A traceback of many lines would be cut off where another thread ends the process meanwhile."""
    given = b'{}\n[1, 0.5, {"loss": 2.0}]\n'
    ended = subprocess.run([sys.executable, "-c", _RAISES], input=given, capture_output=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.decode().splitlines() == ["OSError: [Errno 28] No space left on device"]
