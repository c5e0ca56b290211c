"""What does an hour of this run cost, and what did its incidents?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from train_ledger.answer import Impact
from train_ledger.dash.page.markup import Child, Safe, element, join, pairs
from train_ledger.dash.page.view import PageView
from train_ledger.ledger import impact
from train_ledger.ledger.accounts import Accounts
from train_ledger.render import duration, is_felt

__all__ = ["cost_part", "money"]

_BY_S = 10.0
"""What a run that stands costs is told anew so often."""
_SMALL = 100


def cost_part(view: PageView) -> Safe:
    """In money where a price is known, else in GPU-hours and how to set one; nothing before the accounts."""
    accounts = view.accounts
    if accounts is None or accounts.wall_s <= 0:
        return join([])
    heading = element("h2", "cost")
    if accounts.gpu_hours is None or not accounts.world_size:
        none = "Not told: its ranks say of no GPU, or how many there are is not known."
        return join((heading, element("p", none, class_="dim")))
    return join((heading, pairs(_told(view, accounts)), _without_a_price(accounts)))


def money(amount: float, currency: str) -> str:
    """Cents where there are few of the whole ones."""
    return f"{amount:,.{2 if amount < _SMALL else 0}f} {currency}".rstrip()


def _told(view: PageView, accounts: Accounts) -> Iterator[tuple[str, Child]]:
    hours, gpus = accounts.gpu_hours or {}, accounts.world_size or 0
    whole = sum(hours.values())
    lost, unknown = whole - hours.get("productive", 0.0), hours.get("unknown", 0.0)
    yield "an hour", _hour(gpus, accounts)
    yield "so far", _sum(whole, accounts)
    if whole:
        untold = f"; of {unknown / whole:.1%} nothing tells" if unknown else ""
        yield "of it lost", _sum(lost, accounts, f"{lost / whole:.1%}, not on steps that count{untold}")
    over = _over(view)
    if over:
        count = f"{len(over)} incident{'s' * (len(over) > 1)}"
        yield "earlier", _sum(sum(over), accounts, count)
    yield from _open(view, gpus, accounts)


def _hour(gpus: int, accounts: Accounts) -> Safe:
    price, some = accounts.price_per_gpu_hour, f"{gpus:,} GPU{'s' * (gpus != 1)}"
    if price is None:
        return element("b", f"{gpus:,} GPU-hours")
    each = element("span", f" {some} at {money(price, accounts.currency)}", class_="dim")
    return join((element("b", money(gpus * price, accounts.currency)), each))


def _over(view: PageView) -> Sequence[float]:
    """GPU-hours of each incident that is over."""
    still = {incident.id for incident in view.incidents}
    of_each = (it.gpu_hours for name, it in view.losses.items() if name not in still)
    return [hours for hours in of_each if hours is not None]


def _open(view: PageView, gpus: int, accounts: Accounts) -> Iterator[tuple[str, Child]]:
    """Of a run that stands: since its last step; of another in trouble what the verdict says."""
    state, diagnosis = view.state, view.current_diagnosis
    stands = state.stalled_for_s > state.stall_threshold_s and not state.finished
    if view.incidents and stands:
        stood_s = state.stalled_for_s // _BY_S * _BY_S
        hours = impact(stood_s, gpus).gpu_hours or 0.0
        yield "standing now", _sum(hours, accounts, f"{duration(stood_s)} so far")
    elif diagnosis is not None and diagnosis.impact is not None and is_felt(diagnosis.impact):
        yield "this incident", _impact(diagnosis.impact, accounts)


def _impact(told: Impact, accounts: Accounts) -> Child:
    if told.gpu_hours is None:
        return f"{duration(told.wall_s)} until its verdict; its GPU-hours are not known"
    return _sum(told.gpu_hours, accounts, f"{duration(told.wall_s)} until its verdict")


def _sum(gpu_hours: float, accounts: Accounts, note: str = "") -> Safe:
    """Money first, where there is a price; then the GPU-hours, and what they are of."""
    price = accounts.price_per_gpu_hour
    hours = f"{gpu_hours:,.{2 if gpu_hours < _SMALL else 0}f} GPU-hours"
    first = hours if price is None else money(gpu_hours * price, accounts.currency)
    rest = [*([] if price is None else [hours]), *([note] if note else [])]
    return join((element("b", first), element("span", " ", ", ".join(rest), class_="dim")))


def _without_a_price(accounts: Accounts) -> Safe | None:
    if accounts.price_per_gpu_hour is not None:
        return None
    keys = (element("code", "[cost] gpu_price_per_hour"), element("code", "gpu_price_per_hour"))
    said = ("No price is known: set ", keys[0], " in train-ledger.toml, or ", keys[1], " in run.json.")
    return element("p", *said, class_="dim")
