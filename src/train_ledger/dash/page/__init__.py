"""What does a person see who opens the page of a run?

Read-only, verdict first. The page reads what the keeper knows (`PageView`) and decides nothing itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train_ledger.dash.page.serving import DEFAULT_PORT, serve
    from train_ledger.dash.page.view import PageView
    from train_ledger.dash.page.web import RunPage, app

__all__ = ["DEFAULT_PORT", "PageView", "RunPage", "app", "serve"]

_HOME = {"DEFAULT_PORT": "serving", "PageView": "view", "RunPage": "web", "app": "web", "serve": "serving"}


def __getattr__(name: str) -> Any:
    """Each name from its module when it is asked for: a terminal shows the same view without a web server."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
