"""Who did not come?

From the Flight Recorder dumps of the ranks of a hung job to the rank at the root of it: which kind of fault,
in which process group, at which operation, who waits for whom, on what evidence. Dumps are read in processes
of their own under limits, and nothing in them is run. What else is known of a rank – its stack, its last
signal, its exception – is handed in.
"""

from __future__ import annotations

from train_ledger.hang import stacks
from train_ledger.hang.analysis import Examination, analyse, examine
from train_ledger.hang.causes import suspect_place
from train_ledger.hang.knowledge import RankKnowledge, first_fallen, in_words
from train_ledger.hang.misplaced import meant_instead
from train_ledger.hang.next_commands import REPRODUCE, reproduced_by
from train_ledger.hang.stacks import RankStack, StackGroup

__all__ = [
    "REPRODUCE",
    "Examination",
    "RankKnowledge",
    "RankStack",
    "StackGroup",
    "analyse",
    "examine",
    "first_fallen",
    "in_words",
    "meant_instead",
    "reproduced_by",
    "stacks",
    "suspect_place",
]
