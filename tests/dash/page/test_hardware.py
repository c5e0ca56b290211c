"""Of cards and ports those are listed of which there is something to say, the worst first."""

from __future__ import annotations

from dataclasses import replace

from dash.page.views import HOSTILE, healthy
from train_ledger.dash.page import PageView
from train_ledger.dash.page.hardware import hardware_part
from train_ledger.ledger.hardware.records import GpuState, PortState, XidState

T = healthy().state.t


def seen(*gpus: GpuState, ports: tuple[PortState, ...] = ()) -> PageView:
    view = healthy()
    return replace(view, state=replace(view.state, gpus=gpus, ports=ports))


def test_where_none_is_read_that_is_said() -> None:
    assert "Not observed" in hardware_part(healthy())


def test_where_all_are_well_they_are_counted() -> None:
    html = hardware_part(seen(*(GpuState(f"n{host}", gpu) for host in range(2) for gpu in range(4))))
    assert "8 GPUs, 0 ports on 2 hosts" in html
    assert "Nothing to be seen of any of them." in html


def test_what_pages_stands_before_what_is_slow_and_what_is_on_record() -> None:
    slow = GpuState("n0", 1, low_since_t=T - 310, low_why="heat", usual_mhz=1980.0, ranks=(1,))
    slow = replace(slow, values={"DCGM_FI_DEV_SM_CLOCK": 1200.0, "DCGM_FI_DEV_GPU_TEMP": 88.0})
    dead = GpuState("n1", 5, xids=(XidState(79, "page", 2, T - 60, T - 30),))
    noted = GpuState("n0", 0, xids=(XidState(31, "record", 1, T - 60, T - 30),))
    html = hardware_part(seen(noted, slow, dead))
    assert html.index("XID 79 × 2") < html.index("clock low for 5 min 10 s: heat") < html.index("XID 31")
    assert "1200 of 1980 MHz" in html
    assert "88" in html


def test_an_xid_of_no_interest_is_not_shown() -> None:
    html = hardware_part(seen(GpuState("n0", 0, xids=(XidState(45, "ignore", 1, T, T),))))
    assert "XID" not in html


def test_a_port_that_is_down() -> None:
    port = PortState("n3", "mlx5_0", 1, down_since_t=T - 90, grown={"symbol_error_total": 7})
    html = hardware_part(seen(ports=(port,)))
    assert "link down for 1 min 30 s" in html
    assert "symbol_error_total +7" in html


def test_the_name_of_a_host_hides_nothing_and_figures_say_what_they_are() -> None:
    long = "gpu-worker-h100-sxm5-eu-north-1c-0042.internal.example-training.com"
    html = hardware_part(seen(GpuState(long, 1, low_since_t=T - 310, usual_mhz=1980.0, ranks=(1,))))
    assert f'<td title="{long}">…ker-h100-sxm5-eu-north-1c-0042</td>' in html
    assert "<td>rank 1</td>" in html
    assert '<td data-of="°C" class="none">–</td>' in html
    assert "1 GPU, 0 ports on 1 host<" in html


def test_of_a_thousand_cards_a_screen_is_listed() -> None:
    gpus = [GpuState(HOSTILE, number, sbe_grown=200.0) for number in range(1000)]
    html = hardware_part(seen(*gpus))
    assert html.count("<tr>") == 17
    assert "and 984 more" in html
    assert HOSTILE not in html
