"""What do we set, so that the Flight Recorder holds enough and its dumps lie where somebody finds them?"""

from __future__ import annotations

import sys
from collections.abc import MutableMapping
from pathlib import Path

from train_ledger.signals.flight.variables import DUMP_PREFIX, VARIABLES, Finding, Variable, found

__all__ = ["apply"]

# Values that are refused: the evidence would be lost for certain, and nobody sets them for another reason.
_REFUSED = {"TORCH_NCCL_ASYNC_ERROR_HANDLING"}


def apply(environ: MutableMapping[str, str], traces: Path | None) -> list[Finding]:
    """Set the variables that are unset; replace a value only where it would lose every dump, and say so.

    `traces` is the folder for the dumps, None where it cannot be written: then torch's own place is better
    than ours. To be called before the first process group is made: torch reads the variables once.
    """
    findings = []
    for variable in VARIABLES:
        ours = _our_value(variable, traces)
        if ours is None:
            continue
        name, value = found(variable, environ)
        if name is None or _SET_BY_US.get(name) == value:
            name = name or variable.name
            environ[name] = _SET_BY_US[name] = ours
        elif variable.name in _REFUSED and value in variable.wrong:
            environ[name] = ours
            findings.append(
                Finding("warning", name, f"{name}={value} was replaced by {ours}: {variable.why}")
            )
    if _process_group_exists():
        findings.append(Finding("warning", "start", _TOO_LATE))
    return findings


_SET_BY_US: dict[str, str] = {}
_TOO_LATE = (
    "train_ledger.start() came after init_process_group(): torch may have read the Flight Recorder's "
    "variables already, so call start() first"
)


def _our_value(variable: Variable, traces: Path | None) -> str | None:
    if variable.ours != DUMP_PREFIX:
        return variable.ours
    return None if traces is None else str(traces / "rank_")


def _process_group_exists() -> bool:
    distributed = sys.modules.get("torch.distributed")
    return distributed is not None and distributed.is_available() and distributed.is_initialized()
