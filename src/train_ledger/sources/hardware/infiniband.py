"""What do the ports of this host's network cards say?

/sys/class/infiniband/DEVICE/ports/PORT as the kernel's documentation (ABI/stable/sysfs-class-infiniband)
describes it, under the names that node_exporter gives to these files. A file that cannot be read, or says
"N/A (no PMA)", spoils itself alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from train_ledger.facts import HardwareReading

__all__ = ["SYSFS", "read_ports"]

SYSFS = Path("/sys/class/infiniband")

_COUNTERS: Mapping[str, tuple[str, float]] = {
    "link_downed": ("link_downed_total", 1),
    "link_error_recovery": ("link_error_recovery_total", 1),
    "symbol_error": ("symbol_error_total", 1),
    "local_link_integrity_errors": ("local_link_integrity_errors_total", 1),
    "excessive_buffer_overrun_errors": ("excessive_buffer_overrun_errors_total", 1),
    "port_rcv_errors": ("port_errors_received_total", 1),
    "port_rcv_discards": ("port_discards_received_total", 1),
    "port_xmit_discards": ("port_discards_transmitted_total", 1),
    "port_rcv_constraint_errors": ("port_constraint_errors_received_total", 1),
    "port_xmit_constraint_errors": ("port_constraint_errors_transmitted_total", 1),
    "port_rcv_remote_physical_errors": ("port_receive_remote_physical_errors_total", 1),
    "port_rcv_switch_relay_errors": ("port_receive_switch_relay_errors_total", 1),
    "port_xmit_wait": ("port_transmit_wait_total", 1),
    "VL15_dropped": ("vl15_dropped_total", 1),
    "port_rcv_data": ("port_data_received_bytes_total", 4),
    "port_xmit_data": ("port_data_transmitted_bytes_total", 4),
    "port_rcv_packets": ("port_packets_received_total", 1),
    "port_xmit_packets": ("port_packets_transmitted_total", 1),
}
"""File in counters/ → node_exporter's name, and its factor: data is counted in words of 4 bytes."""

_HW_COUNTERS: Mapping[str, str] = {
    "local_ack_timeout_err": "local_ack_timeout_errors_total",
    "out_of_sequence": "out_of_sequence_packets_received_total",
    "out_of_buffer": "out_of_buffer_drops_total",
    "packet_seq_err": "packet_sequence_errors_total",
    "implied_nak_seq_err": "implied_nak_seq_errors_total",
    "rnr_nak_retry_err": "rnr_nak_retry_packets_received_total",
    "req_cqe_error": "req_cqes_errors_total",
    "req_remote_access_errors": "req_remote_access_errors_total",
    "req_remote_invalid_request": "req_remote_invalid_request_errors_total",
    "resp_cqe_error": "resp_cqes_errors_total",
    "resp_local_length_error": "resp_local_length_errors_total",
    "resp_remote_access_errors": "resp_remote_access_errors_total",
    "roce_adp_retrans": "roce_adp_retransmits_total",
    "roce_adp_retrans_to": "roce_adp_retransmits_timeout_total",
    "roce_slow_restart": "roce_slow_restart_used_total",
    "np_cnp_sent": "np_cnp_packets_sent_total",
    "np_ecn_marked_roce_packets": "np_ecn_marked_roce_packets_received_total",
    "rp_cnp_handled": "rp_cnp_packets_handled_total",
    "rx_icrc_encapsulated": "rx_icrc_encapsulated_errors_total",
}
"""File in hw_counters/ → node_exporter's name. Completions flushed with an error are left out: whoever closes
a connection makes some."""

_MOST_PORTS = 256
_SHORT_BYTES = 256
_BYTES_PER_GBIT = 125_000_000.0
_STATE = re.compile(r"\s*(\d{1,3}):")
_RATE = re.compile(r"\s*(\d{1,6}(?:\.\d{1,3})?) Gb/sec")
_WHOLE = re.compile(r"\s*(\d{1,20})\s*\Z", re.ASCII)


def read_ports(t: float, host: str, root: Path = SYSFS) -> list[HardwareReading]:
    """One reading a port, by device and port; none where there is no such card. Never raises.

    `not_observed` are the names of files that are there and do not say a number.
    """
    ports = ((device, port) for device in _below(root) for port in _below(root / device / "ports"))
    found = [_port(t, host, root, device, port) for device, port in ports if port.isdecimal()]
    return found[:_MOST_PORTS]


def _below(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _port(t: float, host: str, root: Path, device: str, port: str) -> HardwareReading:
    folder = root / device / "ports" / port
    read = dict(_figures(folder))
    return HardwareReading(
        t,
        host,
        device=device,
        port=int(port),
        by="sysfs",
        values={name: value for name, value in read.items() if value is not None},
        not_observed=tuple(sorted(name for name, value in read.items() if value is None)),
    )


def _figures(folder: Path) -> Iterator[tuple[str, float | None]]:
    yield "state_id", _number(folder / "state", _STATE, 1)
    yield "physical_state_id", _number(folder / "phys_state", _STATE, 1)
    yield "rate_bytes_per_second", _number(folder / "rate", _RATE, _BYTES_PER_GBIT)
    for file in _below(folder / "counters"):
        if file in _COUNTERS:
            name, factor = _COUNTERS[file]
            yield name, _number(folder / "counters" / file, _WHOLE, factor)
    for file in _below(folder / "hw_counters"):
        if file in _HW_COUNTERS:
            yield _HW_COUNTERS[file], _number(folder / "hw_counters" / file, _WHOLE, 1)


def _number(file: Path, shape: re.Pattern[str], factor: float) -> float | None:
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return None
    try:
        text = os.read(fd, _SHORT_BYTES).decode("ascii", "replace")
    except OSError:  # EINVAL, EOPNOTSUPP: of a port that does not count this
        return None
    finally:
        os.close(fd)
    match = shape.match(text)
    return float(match[1]) * factor if match else None
