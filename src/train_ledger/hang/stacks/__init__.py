"""Where does each rank stand in its code?

Stacks are taken by py-spy, read from files, and ranks with equal stacks are merged: in a hang most ranks wait
in the same collective, and the few that stand elsewhere are the ones to look at.
"""

from __future__ import annotations

from train_ledger.hang.stacks.frames import Frame, user_frame
from train_ledger.hang.stacks.merged import StackGroup, merge
from train_ledger.hang.stacks.py_spy import take
from train_ledger.hang.stacks.stack_files import RankStack, Thread, read
from train_ledger.hang.stacks.stands import Kind, Stand, Where, frame_of, main_thread, stand_of

__all__ = [
    "Frame",
    "Kind",
    "RankStack",
    "StackGroup",
    "Stand",
    "Thread",
    "Where",
    "frame_of",
    "main_thread",
    "merge",
    "read",
    "stand_of",
    "take",
    "user_frame",
]
