"""What can the watchdog, a dump's progress or a check of collectives say?

Records of what the lines mean that `watchdog` reads, without a word of how they are written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Brought", "Kind", "Said"]

Kind = Literal[
    "timeout",
    "failure",
    "dump_asked",
    "dump_begun",
    "dump_done",
    "dump_failed",
    "dump_slow",
    "setting",
    "teardown",
    "stuck",
    "no_gil",
    "store_gone",
    "mismatch",
    "barrier",
    "absent",
    "unfinished",
    "peer_gone",
    "gloo_timeout",
]


@dataclass(frozen=True, slots=True)
class Brought:
    """What one rank came with, as DETAIL compares it; `rank` counts within the group."""

    rank: int
    op: str | None = None
    seq: int | None = None
    shape: str | None = None
    dtypes: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """One statement; what the line does not say is None.

    `rank` is global (from the line's front or the file), `rank_in_group` counts within `group`, the group's
    name ("0" is the default group; `desc` where printed). `last_enqueued`, `last_started`, `last_completed`
    are sequence numbers in that group. `others` are ranks within the group that the line names: of `absent`
    those that did not come to the collective, of `unfinished` those that came and did not finish it. `text`
    is a file (dump_*), or "NAME=value" (setting).
    """

    kind: Kind
    rank: int | None = None
    rank_in_group: int | None = None
    group: str | None = None
    desc: str | None = None
    seq: int | None = None
    op: str | None = None
    numel_in: int | None = None
    numel_out: int | None = None
    timeout_ms: int | None = None
    ran_ms: int | None = None
    last_enqueued: int | None = None
    last_started: int | None = None
    last_completed: int | None = None
    others: tuple[int, ...] = ()
    brought: tuple[Brought, ...] = ()
    text: str | None = None
    t: float | None = None
    host: str | None = None
    source: str = ""
