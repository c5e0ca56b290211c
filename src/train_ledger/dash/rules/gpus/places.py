"""Whose is a GPU that dcgm-exporter tells of?

It calls the host Hostname or, since 2026, hostname, or "localhost" where it asks the engine of another host.
Here a GPU has the labels uuid, host, gpu and node – the target that told of it, without its port – and whose
it is follows from `train_rank_info`: by UUID, else by node or host and index; nothing has to be relabelled.

Where a rank has no UUID, nobody is named rather than somebody else: by its node only where one host's ranks
are told of there, by its host's short name only where that is one machine's and no exporter at its own node
tells of the GPU. No name, and "localhost", are no host.
"""

from __future__ import annotations

from train_ledger.dash.rule import Recording
from train_ledger.dash.rules.recordings import of

__all__ = [
    "IDS",
    "NAMED_HOST",
    "PLACES",
    "PLACE_RECORDINGS",
    "dcgm",
    "gpus",
    "of_one",
    "on_ranks",
    "several_on_ranks",
    "with_key",
    "with_node",
]

PLACES = "run_rank:train_rank:place"
"""Where each rank is (2), or was when it was last heard (1); of ranks that share a GPU the lowest alone."""

IDS = "uuid, host, gpu, node"

NAMED_HOST = 'host!~"|localhost([.].*)?"'

_OF_GPU = "gpu:train_rank:place"
_BY_NODE, _BY_KEY = "run_rank:train_rank:place_by_node", "run_rank:train_rank:place_by_host"
_CURRENT = "train_rank_info unless on (run, instance) run_instance:train_superseded:attempt"
_LABELS = "run, rank, host, gpu, uuid, node, instance"


def with_node(vector: str) -> str:
    """The vector with `node`, from its target's address."""
    return f'label_replace({vector}, "node", "$1", "instance", "(.*?)(?::[0-9]+)?")'


def with_key(vector: str) -> str:
    """The vector with `key`: its host's name without the domain, or its host's address."""
    whole = f'label_replace({vector}, "key", "$1", "host", "(.+)")'
    return f'label_replace({whole}, "key", "$1", "host", "([^.]*[^.0-9][^.]*)[.].+")'


def of_one(label: str, other: str, vector: str) -> str:
    """The values of a label that stand with more than one of another label, to be left out."""
    return f"(count by ({label}) (group by ({label}, {other}) ({vector})) > 1)"


def dcgm(name: str) -> str:
    """A metric of whole GPUs; parts of one (MIG) are none of a training run."""
    return f'{name}{{GPU_I_ID=""}}'


def gpus(vector: str, *, more: str = "", aggregation: str = "max") -> str:
    """Series that dcgm-exporter or our own exporter tells, one a GPU, by the labels that GPUs have here."""
    named = vector
    for label, source in (("uuid", "UUID"), ("host", "Hostname"), ("host", "hostname")):
        named = f'label_replace({named}, "{label}", "$1", "{source}", "(.+)")'
    return of(f"{aggregation} by ({IDS}{more})", with_node(named))


def on_ranks(known: str, of_index: str = "") -> str:
    """What is known of GPUs, with the labels of the rank on each; `of_index` of those without a UUID."""
    by_index = of_index or known
    return of(
        "max by (run, rank, host, gpu)",
        f'0 * {PLACES}{{uuid!=""}} + on (uuid) group_left () max by (uuid) ({known})\n'
        f"or 0 * {_BY_KEY} + on (key, gpu) group_left () max by (key, gpu) ({with_key(by_index)})\n"
        f"or 0 * {_BY_NODE} + on (node, gpu) group_left () max by (node, gpu) ({by_index})",
    )


def several_on_ranks(told: str) -> str:
    """The same of series of which a GPU has several; where two runs claim a GPU one of them is taken."""
    parts = (
        (told, "uuid", "run, rank, host, gpu", _OF_GPU),
        (with_key(told), "key, gpu", "run, rank, host", f"topk by (key, gpu) (1, {_BY_KEY})"),
        (told, "node, gpu", "run, rank, host", f"topk by (node, gpu) (1, {_BY_NODE})"),
    )
    return "\nor ".join(f"{it}\n  + on ({by}) group_left ({more}) (0 * {one})" for it, by, more, one in parts)


_UNNAMED = f'{PLACES}{{uuid="",gpu!=""}}'
_UNNAMED_ON_HOST = with_key(f'{PLACES}{{uuid="",gpu!="",{NAMED_HOST}}}')

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
    Recording(_BY_NODE, f"{_UNNAMED} unless on (node) {of_one('node', 'host', PLACES)}"),
    Recording(
        _BY_KEY,
        f"""{_UNNAMED_ON_HOST}
unless on (key) {of_one("key", "node", with_key(PLACES))}
unless on (run, rank) ({_BY_NODE} and on (node, gpu) gpu:known:bool)
unless on (key, gpu) {of_one("key, gpu", "uuid", with_key("last_over_time(gpu:seen:bool[$lookback])"))}""",
    ),
)
