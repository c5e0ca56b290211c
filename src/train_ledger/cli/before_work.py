"""What does Ctrl-C do while a command still loads?"""

from __future__ import annotations

import os

__all__ = ["INTERRUPTED", "interrupted"]

INTERRUPTED = 130
"""Exit status after Ctrl-C, and where nobody reads our output any more."""


def interrupted(_: int, __: object) -> None:
    """Nothing was begun that would have to be ended; an exception could be lost in what is being imported."""
    os._exit(INTERRUPTED)
