"""Journals of alerts, as a keeper writes them."""

from __future__ import annotations

from typing import Any

from train_ledger.dash import Alert, Transition

__all__ = ["DAY_S", "T", "fired", "resolved"]

T = 1_800_057_600.0
"""A midnight, UTC."""
DAY_S = 86_400.0


def _alert(name: str, t: float, level: str, labels: dict[str, str], *, inhibited: bool = False) -> Alert:
    about = {"run": "r42", **labels}
    return Alert(name, level, about, t, f"r42: {name} at {t:.0f}", 1.0, inhibited)  # type: ignore[arg-type]


def fired(
    name: str, t: float, *, level: str = "record", inhibited: bool = False, **labels: str
) -> dict[str, Any]:
    """The entry of an alert that began at `t`."""
    transition = Transition("fired", _alert(name, t, level, labels, inhibited=inhibited), t)
    return {"t": t, "kind": "alert_fired", "transition": transition.to_json()}


def resolved(name: str, t: float, *, level: str = "record", **labels: str) -> dict[str, Any]:
    """The entry of its end at `t`."""
    transition = Transition("resolved", _alert(name, t, level, labels), t)
    return {"t": t, "kind": "alert_resolved", "transition": transition.to_json()}
