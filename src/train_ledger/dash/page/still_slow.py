"""Does a run whose incident is over still take longer for a step than before it?

A run is compared with its own last hours. Once these hold nothing but slow steps nothing is said to have
become slower any more and the alert goes, though nobody has mended anything.
"""

from __future__ import annotations

from train_ledger.answer import SlowAnswer
from train_ledger.dash.page.view import PageView
from train_ledger.render import still_slow as in_words

__all__ = ["still_slow"]


def still_slow(view: PageView) -> str | None:
    """What a step took before the last incident and takes now; None where it does not, or after a restart."""
    diagnosis, found_t = view.last_verdict[1], view.verdict_t
    details = diagnosis.details if diagnosis is not None else None
    if not isinstance(details, SlowAnswer) or not details.slower or found_t is None or view.incidents:
        return None
    attempts = view.state.attempts
    if attempts and attempts[-1].started_t > found_t:
        return None
    return in_words(details.before_s, view.state.p50_step_time_s)
