"""Which environment variables decide whether a hang leaves evidence?

After torch 2.13: ProcessGroupNCCL.hpp, FlightRecorder.hpp and FlightRecorder.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["DUMP_PREFIX", "VARIABLES", "Finding", "Variable", "found"]

DUMP_PREFIX = "RUN/comm_traces/rank_"


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable that decides whether a hang leaves evidence.

    `default` is torch's own; `ours` is what we set where nothing is set (None: left alone); `wrong` are
    values that lose evidence; `why` is said together with them.
    """

    name: str
    old_alias: str | None
    default: str
    ours: str | None
    wrong: tuple[str, ...]
    why: str


_OFF = ("0", "false", "False", "FALSE", "n", "no", "off")
_ON = ("1", "true", "True", "TRUE", "y", "yes", "on")

VARIABLES: tuple[Variable, ...] = (
    Variable(
        "TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE", "2000", "20000", ("0",),
        "entries of the ring: 2000 are a few steps of an FSDP job with hundreds of collectives each",
    ),
    Variable(
        "TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "~/.cache/torch/comm_lib_trace_rank_",
        DUMP_PREFIX, (),
        "prefix of the dumps, before the rank: the default lies in the container's home and goes with it",
    ),
    Variable(
        "TORCH_FR_CPP_STACK", "TORCH_NCCL_TRACE_CPP_STACK", "false", None, _ON,
        "takes the C++ stack of every collective, which is slow",
    ),
    Variable(
        "TORCH_NCCL_DUMP_ON_TIMEOUT", None, "true", "1", _OFF,
        "off, neither a timeout nor an exception leaves a dump",
    ),
    Variable(
        "TORCH_NCCL_ENABLE_MONITORING", None, "true", "1", _OFF,
        "the monitor thread writes the dump: off, nobody does",
    ),
    Variable(
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", None, "480", None, (),
        "how long the watchdog thread may be silent before the process is aborted",
    ),
    Variable(
        "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", None, "15000", None, ("0",),
        "time for a dump; the watchdog waits four times as long before it raises, for the other ranks' dumps",
    ),
    Variable(
        "TORCH_NCCL_COORD_CHECK_MILSEC", None, "1000", None, (),
        "how often a rank looks in the store whether another one asks for a dump",
    ),
    Variable(
        "TORCH_FR_DUMP_DYNAMIC_FILE_NAME", None, "false", None, (),
        "reads the prefix anew at every dump",
    ),
    Variable(
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE", None, "", None, (),
        "prefix of a named pipe that asks for a dump; a request in RUN/requests does the same for gloo too",
    ),
    Variable(
        "TORCH_INCLUDE_STACK_TRACE", None, "true", None, _OFF,
        "without stacks a dump names the collective but not the line of code",
    ),
    Variable(
        "TORCH_INCLUDE_ONLY_ACTIVE", None, "false", None, _ON,
        "leaves out what is finished, which shows where a rank went another way",
    ),
    Variable(
        "TORCH_NCCL_ENABLE_TIMING", None, "false", None, (),
        "start times for the price of an event a collective; without it a running kernel reads as scheduled",
    ),
    Variable(
        "TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING", "3", "3", ("1",),
        "1 (TearDown) aborts the communicator first, so that the other ranks cannot finish their dumps",
    ),
    Variable(
        "TORCH_NCCL_PROPAGATE_ERROR", None, "false", None, (),
        "tells the other ranks of an error by the store",
    ),
    Variable(
        "TORCH_NCCL_DESYNC_DEBUG", None, "false", None, _ON,
        "an older diagnosis beside the Flight Recorder, which costs time in every collective",
    ),
    Variable(
        "TORCH_DISTRIBUTED_DEBUG", None, "OFF", None, ("DETAIL",),
        "DETAIL checks every collective by another one first: for eight GPUs and an afternoon",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a variable that a person should know; an `error` loses evidence, a `note` does not."""

    level: Literal["error", "warning", "note"]
    about: str
    message: str


def found(variable: Variable, environ: Mapping[str, str]) -> tuple[str | None, str]:
    """Under which of its names a variable is set, and its value; (None, "") where it is not."""
    for name in (variable.name, variable.old_alias):
        if name is not None and name in environ:
            return name, environ[name].strip()
    return None, ""
