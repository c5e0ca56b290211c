"""Which alerts are open?"""

from __future__ import annotations

from train_ledger.dash.judge import Alert
from train_ledger.dash.page.markup import Safe, element, join, moment
from train_ledger.dash.page.view import PageView

__all__ = ["alerts_part"]

_ALERT_ROWS = 50


def alerts_part(view: PageView) -> Safe:
    """Pages before what is only on record, the newest first."""
    alerts = sorted(view.alerts, key=lambda alert: (alert.level != "page", alert.inhibited, -alert.fired_t))
    listed = [_alert(alert, view.state.run) for alert in alerts[:_ALERT_ROWS]]
    none = element("p", "No alert is open.", class_="dim")
    return join((element("h2", "alerts"), element("ul", *listed, class_="plain") if listed else none))


def _alert(alert: Alert, run: str) -> Safe:
    inhibited = element("span", "inhibited, nobody is told", class_="dim") if alert.inhibited else None
    head = (element("span", alert.level, class_=f"chip {alert.level}"), " ", element("b", alert.name), " ")
    since = element("span", moment(alert.fired_t), class_="dim")
    told = alert.summary.removeprefix(f"{run}: ")
    return element("li", *head, since, " ", inhibited, element("p", told), _gone(alert.gone_t))


def _gone(t: float | None) -> Safe | None:
    """The summary tells of the last moment at which the condition held."""
    if t is None:
        return None
    return element("p", "no longer so since ", moment(t, age=False), "; not resolved yet", class_="dim")
