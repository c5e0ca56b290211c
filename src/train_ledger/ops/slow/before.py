"""Had somebody dragged before the run stood still?

Who was slow is not for that the one who hangs: it is told beside the cause, and makes it no surer.
"""

from __future__ import annotations

from dataclasses import replace

from train_ledger.answer import Diagnosis
from train_ledger.ops.seen import Seen
from train_ledger.ops.slow.cause import slow_answer
from train_ledger.render import harmless, ranks_in_brief

__all__ = ["with_pace_before"]

_LEAST_STEPS = 40


def with_pace_before(seen: Seen, found: Diagnosis) -> Diagnosis:
    """The diagnosis of a hang, with who dragged until it stood; runs that tell it in their signals alone."""
    state = seen.state
    is_told = not state.by_logs and state.last_step_t is not None and (state.step or 0) >= _LEAST_STEPS
    if not is_told or not found.cause.startswith(("hang.", "hardware.", "unknown")):
        return found
    answer = slow_answer(seen.run_dir, seen.run, seen.config, state, at=seen.at)
    if answer.verdict != "slow" or not answer.culprits:
        return found
    since = f" since step {answer.since_step}" if answer.since_step is not None else ""
    line = f"before it stood, {ranks_in_brief(answer.culprits)} dragged the others{since} ({answer.cause})"
    return replace(found, evidence=(*found.evidence, harmless(line, longest=300)))
