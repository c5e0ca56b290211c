"""Would everything that a long run needs hold, tried before it starts?

A job of this machine's own ranks and the drills, or the ranks of a cluster under the user's launcher; what
they find is judged by ops.preflight.
"""

from __future__ import annotations

from typing import Any

from train_ledger.chaos.preflight.trying import preflight
from train_ledger.chaos.preflight.wanted import Wanted

__all__ = ["Wanted", "measured_as_rank", "preflight"]


def __getattr__(name: str) -> Any:
    if name == "measured_as_rank":
        from train_ledger.chaos.preflight.as_rank import measured_as_rank

        return measured_as_rank
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
