"""Why is what somebody outside asks for not done?"""

from __future__ import annotations

__all__ = ["CannotError"]


class CannotError(Exception):
    """What is asked cannot be done in this process; the text says why."""
