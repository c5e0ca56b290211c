"""What does the runbook speak of?"""

from __future__ import annotations

import re

__all__ = ["anchors", "metrics_named"]


def anchors(text: str) -> frozenset[str]:
    """The anchors of its headings, as GitHub and GitLab make them.

    >>> sorted(anchors("# Runbook\\n## TrainingStepStalled\\n### Five minutes: what now?"))
    ['five-minutes-what-now', 'runbook', 'trainingstepstalled']
    """
    headings = re.findall(r"^#{1,6} (.{1,200})$", text, re.MULTILINE)
    return frozenset(
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    )


def metrics_named(text: str) -> frozenset[str]:
    """Metrics that stand in it between back-ticks."""
    words = re.findall(r"`([A-Za-z_:][A-Za-z0-9_:]{2,100})(?:\{[^`]{0,200}\})?`", text)
    return frozenset(word for word in words if word.startswith(("train_", "DCGM_", "node_")))
