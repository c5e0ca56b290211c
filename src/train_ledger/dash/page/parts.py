"""Of which parts is the page made?

Each part is a piece of HTML by its own name, so that only what changed is sent again. The order of the parts
is the order in which somebody who was just woken needs them: what is wrong, on what evidence, what to run
next; then how the run stands.
"""

from __future__ import annotations

from train_ledger.dash.page.accounts import accounts_part
from train_ledger.dash.page.again import state_since_t
from train_ledger.dash.page.alerts import alerts_part
from train_ledger.dash.page.clock import clock_part
from train_ledger.dash.page.cost import cost_part
from train_ledger.dash.page.earlier import earlier_part
from train_ledger.dash.page.hardware import hardware_part
from train_ledger.dash.page.headline import headline
from train_ledger.dash.page.incident import incident_part
from train_ledger.dash.page.journal import journal_part
from train_ledger.dash.page.markup import Safe, join
from train_ledger.dash.page.rank_rows import rank_rows
from train_ledger.dash.page.ranks import rank_list_part, ranks_part
from train_ledger.dash.page.stacks import stacks_part
from train_ledger.dash.page.timeline import timeline_part
from train_ledger.dash.page.unobserved import unobserved_part
from train_ledger.dash.page.verdict import verdict_part
from train_ledger.dash.page.view import PageView
from train_ledger.dash.page.waits import waits_part

__all__ = ["page_title", "parts"]


def page_title(view: PageView) -> str:
    """What a tab of the browser shows."""
    mark = {"trouble": "✖ ", "unsure": "? "}.get(headline(view).tone, "")
    return f"{mark}{view.state.run} – {view.state.state}"


def parts(view: PageView) -> dict[str, Safe]:
    """The HTML of every part by its name, and the page's title."""
    rows = rank_rows(view)
    return {
        "verdict": verdict_part(view),
        "clock": clock_part(view.state, state_since_t(view)),
        "incident": incident_part(view),
        "waits": waits_part(view),
        "stacks": stacks_part(view),
        "alerts": alerts_part(view),
        "earlier": earlier_part(view),
        "ranks": ranks_part(rows),
        "rank_list": rank_list_part(rows),
        "hardware": hardware_part(view),
        "cost": cost_part(view),
        "accounts": accounts_part(view),
        "timeline": timeline_part(view),
        "journal": journal_part(view.journal),
        "unobserved": unobserved_part(view),
        "title": join([page_title(view)]),
    }
