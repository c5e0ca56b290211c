"""What is wrong with the network ports of a run's hosts?

By node_exporter's metrics. A port is of a run where the address of its target, without the port number, is
the one of the run's exporter there, and only one host's ranks are told of there; else where its `host`, or
that address, is the name of one host of the run. A card that several runs share is told of with one of them.
"""

from __future__ import annotations

from train_ledger.dash.rule import Recording
from train_ledger.dash.rules.gpus.places import NAMED_HOST, PLACES, of_one, with_key, with_node
from train_ledger.ledger.hardware.port import PORT_ERRORS

__all__ = ["PORT_RECORDINGS"]

_ERRORS = [f"node_infiniband_{name}" for name in PORT_ERRORS]
_GREW = "\n  or ".join(f"{it} - min_over_time({it}[$link_window:1m]) > 0" for it in _ERRORS)
_STATE, _RATE = "node_infiniband_state_id", "node_infiniband_rate_bytes_per_second"
_BEST_STATE, _BEST_RATE = "node_port:infiniband_state:highest", "node_port:infiniband_rate:highest"
_BAD = "node_port:infiniband:bad"
_NAMED = f"""{_BAD}{{host!=""}}
    or label_replace({_BAD}{{host=""}}, "host", "$1", "node", "(.+)")"""
_HOSTS = f"max by (run, host, node) ({PLACES}{{{NAMED_HOST}}})"
_BY_NODE = f"({_HOSTS} unless on (node) {of_one('node', 'host', PLACES)})"
_BY_KEY = f"""(
    {with_key(f"({_HOSTS})")}
    unless on (key) {of_one("key", "node", with_key(PLACES))}
    unless on (run, host) ({_BY_NODE} and on (node) {with_node(_STATE)})
  )"""

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
  {with_key(f"({_NAMED})")}
    + on (key) group_left (run, host) (0 * topk by (key) (1, {_BY_KEY}))
  or {_BAD} + on (node) group_left (run, host) (0 * topk by (node) (1, {_BY_NODE}))
)""",
    ),
)
