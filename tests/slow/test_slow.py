"""Each name of the room comes from its module, and only when it is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from train_ledger import slow


@pytest.mark.parametrize("name", slow.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(slow, name) is not None


def test_who_reads_a_trace_does_not_load_what_judges_ranks() -> None:
    code = (
        "import sys, train_ledger.slow.trace.breakdown; print([it for it in sys.modules if 'ledger.' in it])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "train_ledger.slow.trace.steps" in told
    assert "train_ledger.slow.peers" not in told
    assert "train_ledger.ledger" not in told
