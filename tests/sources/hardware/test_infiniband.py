"""Ports by sysfs, one odd one among them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from train_ledger.sources.hardware.infiniband import read_ports

T = 1_770_000_000.0


def port(root: Path, device: str = "mlx5_0", number: int = 1, **files: str) -> Path:
    folder = root / device / "ports" / str(number)
    usual = {
        "state": "4: ACTIVE\n", "phys_state": "5: LinkUp\n", "rate": "400 Gb/sec (4X NDR)\n",
        "counters/link_downed": "2\n", "counters/port_rcv_errors": "0\n", "counters/symbol_error": "7\n",
        "counters/port_rcv_data": "250\n", "hw_counters/local_ack_timeout_err": "131\n",
    }  # fmt: skip
    for name, text in {**usual, **{name.replace("__", "/"): text for name, text in files.items()}}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_names_and_units_are_those_of_node_exporter(tmp_path: Path) -> None:
    port(tmp_path)
    (reading,) = read_ports(T, "n7", tmp_path)
    assert (reading.t, reading.host, reading.device, reading.port) == (T, "n7", "mlx5_0", 1)
    assert (reading.by, reading.gpu, reading.not_observed) == ("sysfs", None, ())
    assert reading.values == {
        "state_id": 4, "physical_state_id": 5, "rate_bytes_per_second": 50e9, "link_downed_total": 2,
        "port_errors_received_total": 0, "symbol_error_total": 7, "port_data_received_bytes_total": 1000,
        "local_ack_timeout_errors_total": 131,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("counters/port_xmit_discards", "port_discards_transmitted_total"),
        ("counters/link_error_recovery", "link_error_recovery_total"),
        ("counters/local_link_integrity_errors", "local_link_integrity_errors_total"),
        ("counters/excessive_buffer_overrun_errors", "excessive_buffer_overrun_errors_total"),
        ("hw_counters/out_of_sequence", "out_of_sequence_packets_received_total"),
        ("hw_counters/packet_seq_err", "packet_sequence_errors_total"),
        ("hw_counters/rnr_nak_retry_err", "rnr_nak_retry_packets_received_total"),
        ("hw_counters/roce_adp_retrans", "roce_adp_retransmits_total"),
    ],
)
def test_every_counter_of_trouble_has_its_name(tmp_path: Path, file: str, name: str) -> None:
    port(tmp_path, **{file.replace("/", "__"): "9\n"})
    assert read_ports(T, "n7", tmp_path)[0].values[name] == 9


def test_one_odd_port_spoils_only_itself(tmp_path: Path) -> None:
    port(tmp_path, "mlx5_0")
    odd = port(tmp_path, "mlx5_1", counters__link_downed="N/A (no PMA)\n", rate="?\n")
    (odd / "counters" / "symbol_error").unlink()
    os.mkfifo(odd / "counters" / "symbol_error")
    port(tmp_path, "mlx5_2", 2)
    good, odd_one, last = read_ports(T, "n7", tmp_path)
    assert good.values["link_downed_total"] == last.values["link_downed_total"] == 2
    assert odd_one.values["port_errors_received_total"] == 0
    assert odd_one.not_observed == ("link_downed_total", "rate_bytes_per_second", "symbol_error_total")
    assert (last.device, last.port) == ("mlx5_2", 2)


def test_a_link_that_is_down_and_slower_is_told(tmp_path: Path) -> None:
    port(tmp_path, state="1: DOWN\n", phys_state="3: Disabled\n", rate="2.5 Gb/sec (1X SDR)\n")
    values = read_ports(T, "n7", tmp_path)[0].values
    assert (values["state_id"], values["physical_state_id"]) == (1, 3)
    assert values["rate_bytes_per_second"] == 312_500_000


def test_a_host_without_such_a_card_has_no_ports(tmp_path: Path) -> None:
    assert read_ports(T, "n7", tmp_path / "nothing") == []
