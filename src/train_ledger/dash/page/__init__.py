"""What does a person see who opens the page of a run?

Read-only, verdict first. The page reads what the keeper knows (`PageView`) and decides nothing itself.
"""

from __future__ import annotations

from train_ledger.dash.page.serving import DEFAULT_PORT, serve
from train_ledger.dash.page.view import PageView
from train_ledger.dash.page.web import RunPage, app

__all__ = ["DEFAULT_PORT", "PageView", "RunPage", "app", "serve"]
