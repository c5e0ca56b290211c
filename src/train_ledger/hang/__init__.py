"""Who did not come?

From the Flight Recorder dumps of the ranks of a hung job to the rank at the root of it: which kind of fault,
in which process group, at which operation, who waits for whom, on what evidence. Dumps are read in processes
of their own under limits, and nothing in them is run. What else is known of a rank – its stack, its last
signal, its exception – is handed in.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train_ledger.hang import stacks
    from train_ledger.hang.analysis import Examination, analyse, examine
    from train_ledger.hang.dumps.misplaced import meant_instead
    from train_ledger.hang.fall import is_over, sure_of_fall
    from train_ledger.hang.knowledge import RankKnowledge, first_fallen, in_words
    from train_ledger.hang.stacks import RankStack, StackGroup
    from train_ledger.hang.verdict.causes import suspect_place
    from train_ledger.hang.verdict.next_commands import (
        REPRODUCE,
        SAID_AT_END,
        WHO_STANDS_WHERE,
        reproduced_by,
    )
    from train_ledger.hang.verdict.ruled_out import contradicts

__all__ = [
    "REPRODUCE",
    "SAID_AT_END",
    "WHO_STANDS_WHERE",
    "Examination",
    "RankKnowledge",
    "RankStack",
    "StackGroup",
    "analyse",
    "contradicts",
    "examine",
    "first_fallen",
    "in_words",
    "is_over",
    "meant_instead",
    "reproduced_by",
    "stacks",
    "sure_of_fall",
    "suspect_place",
]

_HOME = {
    "Examination": "analysis",
    "RankKnowledge": "knowledge",
    "RankStack": "stacks",
    "REPRODUCE": "verdict.next_commands",
    "SAID_AT_END": "verdict.next_commands",
    "WHO_STANDS_WHERE": "verdict.next_commands",
    "StackGroup": "stacks",
    "analyse": "analysis",
    "contradicts": "verdict.ruled_out",
    "examine": "analysis",
    "first_fallen": "knowledge",
    "in_words": "knowledge",
    "is_over": "fall",
    "meant_instead": "dumps.misplaced",
    "reproduced_by": "verdict.next_commands",
    "sure_of_fall": "fall",
    "suspect_place": "verdict.causes",
}


def __getattr__(name: str) -> Any:
    """Each name from its module when it is asked for: a process that only reads dumps must start at once."""
    if name == "stacks":
        return import_module(f"{__name__}.stacks")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
