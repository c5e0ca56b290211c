"""A spike is found as a look at every norm would find it."""

from __future__ import annotations

import math
from statistics import median

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.config import Alerts
from train_ledger.ledger.trends.grad_norms import GradNorms

_NORMS = st.lists(
    st.sampled_from([1.0, 1.1, 0.5, 9.0, 30.0, 0.0, -1.0, math.nan, math.inf, 1e308]), max_size=90
)


def plainly(norms: list[float], most: int, factor: float) -> int | None:
    """The place of the last spike."""
    known: list[float] = []
    found = None
    for place, norm in enumerate(norms):
        if not math.isfinite(norm):
            continue
        if len(known) >= 20 and norm > factor * median(known[-most:]) > 0:
            found = place
        known.append(norm)
    return found


@given(norms=_NORMS, cuts=st.lists(st.integers(0, 90)).map(sorted))
def test_what_is_a_spike(norms: list[float], cuts: list[int]) -> None:
    alerts = Alerts(grad_norm_steps=40)
    kept = GradNorms(alerts)
    for start, end in zip([0, *cuts], [*cuts, len(norms)], strict=True):
        steps = range(start, min(end, len(norms)))
        if steps:
            kept.add(list(steps), [float(it) for it in steps], norms[start:end], alerts.grad_norm_factor)
    assert (kept.spike.step if kept.spike else None) == plainly(norms, 40, alerts.grad_norm_factor)
