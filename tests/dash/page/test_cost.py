"""What an hour, the run and its incidents cost."""

from __future__ import annotations

from dataclasses import replace

from dash.page.nights import accounts, night
from dash.page.read import Read
from dash.page.views import diagnosis, healthy, hung
from dash.states import T0, running
from train_ledger.answer import Impact
from train_ledger.dash.page.cost import cost_part, money


def test_in_money_where_there_is_a_price() -> None:
    text = Read(cost_part(night(1024, culprit=700))).text
    assert "an hour2,560 USD 1,024 GPUs at 2.50 USD" in text
    assert "so far25,600 USD 10,240 GPU-hours" in text
    assert "of it lost2,560 USD 1,024 GPU-hours, 10.0%, not on steps that count" in text
    assert "earlier427 USD 171 GPU-hours, 1 incident" in text
    assert "standing now64.00 USD 25.60 GPU-hours, 1 min 30 s so far" in text


def test_without_a_price_in_gpu_hours_and_how_to_set_one() -> None:
    view = replace(night(), accounts=accounts(price_per_gpu_hour=None))
    text = Read(cost_part(view)).text
    assert "an hour8 GPU-hours" in text
    assert "set [cost] gpu_price_per_hour in train-ledger.toml" in text
    assert "USD" not in text


def test_of_a_run_that_goes_on_the_verdict_says_what_it_cost() -> None:
    view = replace(night(), state=running(t=T0 + 5000, ranks=8))
    assert "this incident0.55 USD 0.22 GPU-hours, 1 min 37 s until its verdict" in Read(cost_part(view)).text


def test_what_nobody_knows_is_no_figure() -> None:
    hours = {"productive": 60.0, "stalled": 15.0, "unknown": 25.0}
    view = replace(night(), accounts=accounts(gpu_hours=hours), state=running(t=T0 + 5000, ranks=8))
    assert "40.0%, not on steps that count; of 25.0% nothing tells" in Read(cost_part(view)).text
    of_no_gpu = replace(view, diagnosis=replace(diagnosis(), impact=Impact(97.0, None, None)))
    text = Read(cost_part(of_no_gpu)).text
    assert "this incident1 min 37 s until its verdict; its GPU-hours are not known" in text


def test_a_run_without_gpus_has_no_bill() -> None:
    for told in (accounts(gpu_hours=None), accounts(world_size=None)):
        assert "Not told: its ranks say of no GPU" in cost_part(replace(night(), accounts=told))


def test_before_the_accounts_nothing_is_said() -> None:
    assert cost_part(healthy()) == ""
    assert cost_part(hung()) == ""


def test_small_sums_have_cents() -> None:
    assert [money(it, "EUR") for it in (0.5, 99.99, 100.4, 25_600.0)] == [
        "0.50 EUR",
        "99.99 EUR",
        "100 EUR",
        "25,600 EUR",
    ]
