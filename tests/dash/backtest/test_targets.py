"""Which exporter tells what was recorded of the hardware."""

from __future__ import annotations

import pytest

from dash.backtest.made import START_T
from train_ledger.config import Alerts, Config
from train_ledger.dash.backtest import Known
from train_ledger.dash.backtest.prometheus import MetricsRead
from train_ledger.dash.backtest.targets import Targets
from train_ledger.dash.rules import RULES
from train_ledger.facts import HardwareReading
from train_ledger.ledger.state import RunState

DBE = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"


@pytest.mark.parametrize("by", ["dcgm", ""])
def test_a_reading_that_does_not_say_who_made_it_is_one_of_dcgm_exporter(by: str) -> None:
    """The line that is documented names DCGM's fields and nobody who read them."""
    targets = Targets(
        "r42", Config(), {}, hosts={"n0"}, wanted=MetricsRead(RULES, Alerts()), origin_t=START_T
    )
    card = HardwareReading(START_T, "n0", 3, "GPU-3", None, by=by, values={DBE: 1.0})
    port = HardwareReading(
        START_T,
        "n0",
        device="mlx5_0",
        port=1,
        by="sysfs" if by else "",
        values={"symbol_error_total": 7.0},
    )
    for reading in (card, port):
        targets.add(Known(START_T, reading, of_host=True))
    told = dict(targets.scrape(RunState("r42", START_T)))
    assert [(name.split("{")[0], value) for name, value in told["n0:9400"].items()] == [(DBE, 1.0)]
    (name,) = told["n0:9100"]
    assert name.startswith("node_infiniband_symbol_error_total{")
