"""Whose is a GPU that dcgm-exporter tells of?

It calls the host Hostname or, since 2026, hostname, or "localhost" where it asks the engine of another host.
Here a GPU has the labels uuid, host, gpu and node – the target that told of it, without its port – and whose
it is follows from `train_rank_info`: by UUID, else by host or node and index; nothing has to be relabelled.
"""

from __future__ import annotations

from train_ledger.dash.rule import Recording
from train_ledger.dash.rules.recordings import of

__all__ = ["IDS", "PLACES", "PLACE_RECORDINGS", "dcgm", "gpus", "on_ranks", "several_on_ranks", "with_node"]

PLACES = "run_rank:train_rank:place"
"""Where each rank is (2), or was when it was last heard (1); of ranks that share a GPU the lowest alone."""

IDS = "uuid, host, gpu, node"

_OF_GPU = "gpu:train_rank:place"
_UNNAMED = f'{PLACES}{{uuid="",gpu!=""}}'
_CURRENT = "train_rank_info unless on (run, instance) run_instance:train_superseded:attempt"
_LABELS = "run, rank, host, gpu, uuid, node, instance"


def with_node(vector: str) -> str:
    """The vector with `node`, from its target's address."""
    return f'label_replace({vector}, "node", "$1", "instance", "(.*?)(?::[0-9]+)?")'


def dcgm(name: str) -> str:
    """A metric of whole GPUs; parts of one (MIG) are none of a training run."""
    return f'{name}{{GPU_I_ID=""}}'


def gpus(vector: str, *, more: str = "", aggregation: str = "max") -> str:
    """Series that dcgm-exporter or our own exporter tells, one a GPU, by the labels that GPUs have here."""
    named = vector
    for label, source in (("uuid", "UUID"), ("host", "Hostname"), ("host", "hostname")):
        named = f'label_replace({named}, "{label}", "$1", "{source}", "(.+)")'
    return of(f"{aggregation} by ({IDS}{more})", with_node(named))


def on_ranks(known: str) -> str:
    """What is known of GPUs, with the labels of the rank on each."""
    unnamed = f"0 * {_UNNAMED}"
    return of(
        "max by (run, rank, host, gpu)",
        f'0 * {PLACES}{{uuid!=""}} + on (uuid) group_left () max by (uuid) ({known})\n'
        f"or {unnamed} + on (host, gpu) group_left () max by (host, gpu) ({known})\n"
        f"or {unnamed} + on (node, gpu) group_left () max by (node, gpu) ({known})",
    )


def several_on_ranks(told: str) -> str:
    """The same of series of which a GPU has several; where two runs claim a GPU one of them is taken."""
    parts = (
        ("uuid", "run, rank, host, gpu", f"0 * {_OF_GPU}"),
        ("host, gpu", "run, rank", f"0 * topk by (host, gpu) (1, {_UNNAMED})"),
        ("node, gpu", "run, rank, host", f"0 * topk by (node, gpu) (1, {_UNNAMED})"),
    )
    return "\nor ".join(f"{told}\n  + on ({by}) group_left ({more}) ({one})" for by, more, one in parts)


PLACE_RECORDINGS: tuple[Recording, ...] = (
    Recording(
        PLACES,
        f"""(
  max by ({_LABELS}) (2 * {with_node(f"({_CURRENT})")})
  or max by ({_LABELS}) (
    {with_node("last_over_time(train_rank_info[$lookback])")}
    unless on (run, rank) ({_CURRENT})
  )
)
unless on (run, rank) last_over_time(train_gpu_shared[$lookback])
unless on (run) (run:train_run_finished:bool == 1)""",
    ),
    Recording(_OF_GPU, f'topk by (uuid) (1, {PLACES}{{uuid!=""}})'),
)
