"""Is the memory that a rank takes what the account says, and is there room left? (item 4)

Mixed precision with Adam takes 16 bytes a parameter: two each for weight and gradient, and twelve for the
master weight and the two moments in 32 bits. Activations by Korthikanti and others, Reducing Activation
Recomputation in Large Transformer Models (2022), formula 2 and table 2. The logits are not in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from train_ledger.ops.preflight.records import Check, failed, not_possible, passed
from train_ledger.render import ranks_in_brief

__all__ = ["computed_bytes", "memory_checks"]

_NEAR = 0.10
_ROOM = 0.10
_STATE_BYTES = {"bf16": (2, 2, 12), "fp16": (2, 2, 12), "fp32": (4, 4, 8)}
_SHARDED = {"none": 0, "optimizer": 1, "gradients": 2, "full": 3}
_NEEDED = ("params", "layers", "heads", "head_dim", "seq_len", "micro_batch")
_GIB = float(1 << 30)


def computed_bytes(run: Mapping[str, Any]) -> float | str:
    """What a rank should allocate at its peak by run.json; in words what is missing for it.

    `model` tells params, layers, heads, head_dim, seq_len, micro_batch, dtype (bf16 if none), `sharding`
    (none, optimizer, gradients, full: what is divided over the data-parallel ranks) and `recompute` (none,
    selective, full). `memory_bytes` in it is an account of your own, and goes before.

    >>> computed_bytes({"model": {"memory_bytes": 5e9}})
    5000000000.0
    """
    model = run.get("model")
    model = model if isinstance(model, Mapping) else {}
    if (own := _positive(model.get("memory_bytes"))) is not None:
        return own
    if missing := [name for name in _NEEDED if _positive(model.get(name)) is None]:
        return f"model of run.json lacks {', '.join(missing)}"
    dtype, sharding = str(model.get("dtype", "bf16")), str(model.get("sharding", "none"))
    if dtype not in _STATE_BYTES or sharding not in _SHARDED:
        return f"no account is known for dtype {dtype}, sharding {sharding}"
    sizes = run.get("parallelism")
    sizes = sizes if isinstance(sizes, Mapping) else {}
    return _states(model, sizes, dtype, _SHARDED[sharding]) + _activations(model, sizes)


def _states(model: Mapping[str, Any], sizes: Mapping[str, Any], dtype: str, sharded: int) -> float:
    weights, gradients, optimizer = _STATE_BYTES[dtype]
    dp = _size(sizes, "dp")
    each = weights / (dp if sharded >= 3 else 1) + gradients / (dp if sharded >= 2 else 1)
    each += optimizer / (dp if sharded >= 1 else 1)
    return float(model["params"]) / (_size(sizes, "tp") * _size(sizes, "pp")) * each


def _activations(model: Mapping[str, Any], sizes: Mapping[str, Any]) -> float:
    heads, tokens = float(model["heads"]), float(model["seq_len"]) / _size(sizes, "cp")
    hidden = heads * float(model["head_dim"])
    one = tokens * float(model["micro_batch"]) * hidden
    kind = str(model.get("recompute", "selective"))
    attention = 5 * heads * float(model["seq_len"]) / hidden if kind == "none" else 0.0
    each = 2.0 if kind == "full" else (34.0 + attention) / _size(sizes, "tp")
    return (
        one * each * float(model["layers"])
    )  # a pipeline's first stage holds pp micro-batches of 1/pp layers


def _size(sizes: Mapping[str, Any], axis: str) -> float:
    return _positive(sizes.get(axis)) or 1.0


def _positive(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and value > 0 else None  # type: ignore[operator, arg-type]


def memory_checks(
    run: Mapping[str, Any],
    allocated: Mapping[int, float],
    reserved: Mapping[int, float],
    total_bytes: float | None,
) -> Iterator[Check]:
    """Of each rank the peak that was allocated and reserved (bytes), of which `total_bytes` a GPU has."""
    if not allocated:
        why = "no step of this run tells mem_allocated_peak: it has not trained on a GPU yet"
        yield not_possible("account", why, "let your training do a few steps in RUN, and run this again")
        return
    yield _account(computed_bytes(run), allocated)
    yield _room(reserved, total_bytes)


def _account(computed: float | str, allocated: Mapping[int, float]) -> Check:
    highest = max(allocated, key=lambda rank: allocated[rank])
    measured = allocated[highest]
    if isinstance(computed, str):
        why = f"{computed}; measured are {measured / _GIB:.2f} GiB on rank {highest}"
        return not_possible("account", why, "give it to start(model=…), or your own account as memory_bytes")
    off = measured / computed - 1
    told = f"{measured / _GIB:.2f} GiB on rank {highest} ({off:+.1%})"
    said = f"computed {computed / _GIB:.2f} GiB, measured {told}"
    if abs(off) > _NEAR:
        fix = "find what the account leaves out: train-ledger ask RUN memory_snapshot, then trace memory"
        return failed("account", said, fix)
    return passed("account", said)


def _room(reserved: Mapping[int, float], total: float | None) -> Check:
    if not reserved or not total:
        why = "how much memory the GPUs have is not known" if reserved else "no step tells mem_reserved_peak"
        return not_possible("room", why, "the item gpu measures it: leave it in, on the nodes")
    full = {rank: used / total for rank, used in reserved.items()}
    highest = max(full, key=lambda rank: full[rank])
    said = f"rank {highest} reserves {full[highest]:.1%} of {total / _GIB:.1f} GiB, the most"
    if full[highest] > 1 - _ROOM:
        tight = [rank for rank, share in full.items() if share > 1 - _ROOM]
        return failed(
            "room",
            f"{said}; {ranks_in_brief(tight)} keep less than 10 %",
            "a smaller micro-batch, or more recomputation",
        )
    return passed("room", said)
