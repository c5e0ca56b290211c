"""How are the costs of a run told to a person?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from train_ledger.ledger.accounts.records import PARTS
from train_ledger.ledger.costs import FIGURES, Costs, Figure, HangCost, Priority, SavingCost
from train_ledger.render import duration
from train_ledger.render.accounts import CATEGORY_LETTERS
from train_ledger.render.bars import Bar, Bars
from train_ledger.render.figures import Figures
from train_ledger.render.report import Point, Report, Row, Section, pairs, points

__all__ = ["report_of_costs"]


def report_of_costs(costs: Costs) -> Report:
    """What it costs, what a hang and an interval cost, what to mend first, and on what all that rests."""
    sections = [
        *pairs("", _run(costs)),
        *_gone(costs),
        *pairs("rates", _rates(costs)),
        *pairs("one point of MFU", _point(costs)),
        Section("one hang", tuple(_hang(costs.hang, costs.currency))),
        *pairs("the interval between checkpoints", _saving(costs.saving, costs.currency)),
        *points(_heading(costs), _priorities(costs.priorities, costs.currency)),
        *pairs("on what this rests", ((name, _figure(name, it)) for name, it in costs.figures.items())),
        *points("not observed", costs.not_observed),
    ]
    is_told = costs.run is None or costs.run.is_known
    return Report(_verdict(costs), "fine" if is_told else "unsure", tuple(sections))


def _verdict(costs: Costs) -> str:
    rate = f"{_money(costs.rates['hour'], costs.currency)} an hour"
    name = f"{costs.run_name}: " if costs.run_name else ""
    gpus = f"{costs.figures['world_size'].value:,.0f} GPUs"
    if costs.run is not None and not costs.run.is_known:
        said = f"{name}nothing is known of it by then; a job of {gpus} would cost {rate}"
    elif costs.run is not None and costs.run.gpu_hours is None:
        said = f"{name}no GPU-hours are known of it; {gpus} would cost {rate}"
    else:
        said = f"{name}{gpus} cost {rate}"
    return f"{said}{_by(costs.figures['price'])}"


def _by(price: Figure) -> str:
    return " at a price that is assumed" if price.origin == "assumed" else ""


def _run(costs: Costs) -> Iterable[tuple[str, str | None]]:
    run = costs.run
    if run is None or not run.is_known:
        return
    yield "the run so far", f"{duration(run.wall_s)} of wall time"
    if run.gpu_hours is not None:
        shares = ", ".join(f"{name} {hours:,.1f}" for name, hours in run.gpu_hours.items() if hours)
        yield "GPU-hours", f"{sum(run.gpu_hours.values()):,.1f}: {shares}"
    if run.cost is not None and run.wasted_cost is not None:
        wasted = _money(run.wasted_cost, costs.currency)
        yield "cost", f"{_money(run.cost, costs.currency)}, of which {wasted} went into no step that counts"


def _rates(costs: Costs) -> Iterable[tuple[str, str | None]]:
    names = {"gpu_hour": "a GPU-hour", "hour": "an hour", "day": "a day", "month": "30 days"}
    for name, said in names.items():
        yield said, _money(costs.rates[name], costs.currency)


def _point(costs: Costs) -> Iterable[tuple[str, str | None]]:
    point = costs.mfu_point
    days = costs.figures["job"].value / 86_400
    yield "share", f"{point.share * 100:.1f} % of the throughput at {point.of_mfu:.3g} %"
    yield "time", f"{point.saved_s / 86_400:.2f} days of a job of {days:.3g} days"
    yield "worth", f"{point.gpu_hours:,.0f} GPU-hours, {_money(point.cost, costs.currency)}"


def _gone(costs: Costs) -> Iterable[Section]:
    """Into which category the run's GPU-hours went, as a bar for a page."""
    hours = costs.run.gpu_hours if costs.run else None
    if hours and sum(hours.values()) > 0:
        bar = Bar("GPU-hours", tuple(hours.values()), f"{sum(hours.values()):,.1f} h")
        letters = "".join(CATEGORY_LETTERS[name] for name in hours)
        yield Section("", (Bars("where the GPU-hours went", tuple(hours), letters, (bar,)),))


def _hang(hang: HangCost, currency: str) -> Iterable[Row]:
    seen = bool(hang.in_run)
    heads = ("", "without", "with alert and runbook", *(["this run's own"] if seen else []))
    rows = []
    for part in PARTS:
        cells = (part, duration(hang.without[part]), duration(hang.with_alert[part]))
        rows.append((*cells, *([_length(hang.in_run.get(part))] if seen else [])))
    totals = ("in all", duration(sum(hang.without.values())), duration(sum(hang.with_alert.values())))
    rows.append((*totals, *([_length(_total(hang.in_run))] if seen else [])))
    yield Figures(heads, tuple(rows), left=frozenset(range(len(heads))))
    yield _recoveries(hang)
    saved = f"{hang.saved_gpu_hours:,.0f} GPU-hours, {_money(hang.saved_cost, currency)}"
    yield Point(f"alert and runbook save {duration(abs(hang.saved_s))} a hang: {saved}")
    if hang.saved_cost_a_month is None:
        yield Point("in 30 days: not told, since the run was interrupted sooner than a recovery takes")
    else:
        month = _money(hang.saved_cost_a_month, currency)
        yield Point(f"at {hang.failures_per_day:.3g} interruptions a day: {month} in 30 days")


def _recoveries(hang: HangCost) -> Bars:
    """The parts of a recovery side by side, for a page; a part that was not observed has no length."""
    of: dict[str, Mapping[str, float | None]] = {"without": hang.without, "with alert": hang.with_alert}
    if hang.in_run:
        of["this run"] = hang.in_run
    bars = [
        Bar(name, tuple(lengths.get(part) or 0.0 for part in PARTS), _length(_total(lengths)))
        for name, lengths in of.items()
    ]
    letters = "".join(str(number) for number, _ in enumerate(PARTS, 1))
    return Bars("how long a hang stops the run, part by part", tuple(PARTS), letters, tuple(bars))


def _total(lengths: Mapping[str, float | None]) -> float | None:
    """Of all parts; None where one of them was not observed."""
    known = [length_s for length_s in lengths.values() if length_s is not None]
    return sum(known) if len(known) == len(PARTS) else None


def _length(length_s: float | None) -> str:
    return "not observed" if length_s is None else duration(length_s)


def _saving(saving: SavingCost | None, currency: str) -> Iterable[tuple[str, str | None]]:
    if saving is None:
        yield (
            "not told",
            "a save costs nothing, or the run fails sooner than it recovers: no formula holds",
        )
        return
    yield "now", f"{duration(saving.now_s)}: {_waste(saving.waste_now, saving.ettr_now)}"
    yield "by Young", f"{duration(saving.young_s)}: {_waste(saving.waste_young, saving.ettr_young)}"
    yield "by Daly", duration(saving.daly_s)
    more = "less" if saving.redo_saved_s >= 0 else "more"
    hours = abs(saving.gpu_hours_per_failure)
    yield (
        "a failure",
        f"{duration(abs(saving.redo_saved_s))} {more} to do again at Young's: {hours:,.0f} GPU-hours",
    )
    per_day = f"{abs(saving.gpu_hours_per_day):,.0f} GPU-hours, {_money(abs(saving.cost_per_day), currency)}"
    yield "a day", f"{per_day} {more} to do again, for {saving.more_saves_per_day:+.0f} saves"
    net = f"{saving.net_gpu_hours_per_day:,.0f} GPU-hours, {_money(saving.net_cost_per_day, currency)}"
    yield "of that is left", f"{net} a day when these saves are paid for"


def _waste(share: float, ettr: float) -> str:
    return (
        f"{share * 100:.1f} % of all time goes into saves, redoing and recovery; {ettr * 100:.1f} % is useful"
    )


def _heading(costs: Costs) -> str:
    over = "this run would have saved" if costs.run and costs.run.is_known else "the job would save"
    return f"what to mend first, by what {over}"


def _priorities(rows: Sequence[Priority], currency: str) -> Iterable[str]:
    """A point each, which a narrow terminal can wrap."""
    for it in rows:
        yield f"{_saved(it, currency)}{it.measure} (effort: {it.effort}) – {it.counted}"


def _saved(it: Priority, currency: str) -> str:
    if it.saved_s is None:
        return ""
    hours = "" if it.gpu_hours is None else f", {it.gpu_hours:,.1f} GPU-hours"
    money = "" if it.cost is None else f", {_money(it.cost, currency)}"
    return f"{_signed(it.saved_s)}{hours}{money}: "


def _signed(length_s: float) -> str:
    return f"-{duration(-length_s)}" if length_s < 0 else duration(length_s)


def _figure(name: str, figure: Figure) -> str:
    known = FIGURES[name]
    value = duration(figure.value) if known.unit == "s" else f"{figure.value:,.6g} {known.unit}"
    by = f", {figure.by}" if figure.by else ""
    return f"{value} ({figure.origin}{by}): {known.meaning}"


def _money(value: float, currency: str) -> str:
    return f"{value:,.2f} {currency}" if abs(value) < 1000 else f"{value:,.0f} {currency}"
