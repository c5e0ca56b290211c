"""What is wrong with the network ports of a run's hosts?

By node_exporter's metrics. A port is of a run where its `host`, or the address of its target without the port
number, is a host of the run, or that address is the one of the run's exporter there. A card that several runs
share is told of with one of them.
"""

from __future__ import annotations

from train_ledger.dash.rule import Recording
from train_ledger.dash.rules.gpus.places import PLACES, with_node
from train_ledger.ledger.hardware.port import PORT_ERRORS

__all__ = ["PORT_RECORDINGS"]

_ERRORS = [f"node_infiniband_{name}" for name in PORT_ERRORS]
_GREW = "\n  or ".join(f"{it} - min_over_time({it}[$link_window:1m]) > 0" for it in _ERRORS)
_STATE, _RATE = "node_infiniband_state_id", "node_infiniband_rate_bytes_per_second"
_BEST_STATE, _BEST_RATE = "node_port:infiniband_state:highest", "node_port:infiniband_rate:highest"
_BAD = "node_port:infiniband:bad"
_HOSTS = f"max by (run, host, node) ({PLACES})"

PORT_RECORDINGS: tuple[Recording, ...] = (
    Recording(_BEST_STATE, f"max_over_time({_STATE}[1d:10m])", group="slow"),
    Recording(_BEST_RATE, f"max_over_time({_RATE}[1d:10m])", group="slow"),
    Recording(
        _BAD,
        f"""max by (host, node, device) ({
            with_node(f'''(
  {_GREW}
  or {_STATE} != 4 and (max_over_time({_STATE}[15m]) >= 4 or {_BEST_STATE} >= 4)
  or {_RATE} < (max_over_time({_RATE}[15m]) > {_BEST_RATE} or {_BEST_RATE} or max_over_time({_RATE}[15m]))
)''')
        })""",
    ),
    Recording(
        "run_host_port:infiniband:bad",
        f"""max by (run, host, device) (
  {_BAD} + on (host) group_left (run) (0 * topk by (host) (1, {_HOSTS}))
  or label_replace({_BAD}, "host", "$1", "node", "(.+)")
    + on (host) group_left (run) (0 * topk by (host) (1, {_HOSTS}))
  or {_BAD} + on (node) group_left (run, host) (0 * topk by (node) (1, {_HOSTS}))
)""",
    ),
)
